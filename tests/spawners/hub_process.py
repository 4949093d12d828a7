"""A real JupyterHub in its own process, without a proxy, with the spawner under test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from carrel.spawners.processes.lease_processes import scan

from ..fake_service import HUB_TOKEN, FakeService, eventually
from ..ports import free_port

ROOT = Path(__file__).parents[2]
API_TOKEN = "an-administrators-token"

CONFIG = """
import sys
from jupyterhub.proxy import Proxy
from carrel.spawners.sessions.local import LocalSession

class NoProxy(Proxy):
    routes = {}
    should_start = False
    async def add_route(self, routespec, target, data):
        self.routes[routespec] = {"routespec": routespec, "target": target, "data": data}
    async def delete_route(self, routespec):
        self.routes.pop(routespec, None)
    async def get_all_routes(self):
        return dict(self.routes)

c = get_config()
c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.bind_url = "http://127.0.0.1:%(port)d/"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:%(port)d/"
c.JupyterHub.spawner_class = LocalSession
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = "secret"
c.Authenticator.allow_all = True
c.JupyterHub.allow_named_servers = True
c.JupyterHub.cleanup_servers = False
c.JupyterHub.concurrent_spawn_limit = 0
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 0}
c.JupyterHub.services = [{"name": "tests", "api_token": "%(token)s", "admin": True},
    {"name": "carrel", "url": "%(service)s"[:-16], "api_token": "x" * 32}]
c.JupyterHub.custom_scopes = {
    "custom:carrel:read": {"description": "read"},
    "custom:carrel:submit": {"description": "submit"},
}
c.JupyterHub.load_roles = [{"name": "user", "scopes": [
    "self", "access:services!service=carrel", "custom:carrel:read", "custom:carrel:submit"]}]
c.Spawner.start_timeout = %(start_timeout)d
c.Spawner.consecutive_failure_limit = 5
c.LeaseMixin.service_url = "%(service)s"
c.LeaseMixin.hub_token = "%(hub_token)s"
c.LeaseMixin.carrel_url = "http://127.0.0.1:8000/services/carrel"
c.LeaseMixin.carrel_public_url = "https://carrel.example.org/services/carrel"
c.LeaseMixin.state_root = "%(state)s"
c.LeaseMixin.service_timeout = 8
c.LocalSession.homes = "%(state)s/homes"
c.LocalSession.logs = "%(state)s/logs"
c.LocalSession.cmd = %(cmd)r
c.Spawner.environment = {"CUDA_VISIBLE_DEVICES": "all", "NVIDIA_VISIBLE_DEVICES": "all"}
"""


class HubProcess:
    """Starts, kills and calls a JupyterHub."""

    def __init__(
        self,
        state: Path,
        service: FakeService,
        *,
        cmd: list[str] | None = None,
        start_timeout: int = 60,
        more: str = "",
    ) -> None:
        self.state = state
        self.port = free_port()
        self.config = state / "config.py"
        self.config.write_text(CONFIG % {
            "port": self.port, "token": API_TOKEN, "hub_token": HUB_TOKEN, "state": state,
            "service": service.url, "start_timeout": start_timeout,
            "cmd": cmd or [sys.executable, "-m", "jupyterhub.tests.mocksu"],
        } + more)  # fmt: skip  # grouped by meaning
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}/hub/api/",
            headers={"Authorization": f"token {API_TOKEN}"},
            timeout=90,
            trust_env=False,
        )
        self.start()

    def start(self) -> None:
        self.log = (self.state / "hub.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(self.config)],
            cwd=self.state,
            env=os.environ | {"CARREL_TEST_SECRET": "of-the-hub"},
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        eventually(self._answers, 120)

    def _answers(self) -> bool:
        assert self.process.poll() is None, (self.state / "hub.log").read_text()[-3000:]
        try:
            return self.http.get("info").is_success
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(90)
        self.log.close()

    def add_user(self, name: str) -> None:
        self.http.post(f"users/{name}").raise_for_status()

    def spawn(self, user: str, server: str = "", options: object = None) -> httpx.Response:
        return self.http.post(
            f"users/{user}/servers/{server}", json={"user_options": options or {}}
        )

    def cancel(self, user: str, server: str = "") -> httpx.Response:
        return self.http.request("DELETE", f"users/{user}/servers/{server}")

    def server(self, user: str, server: str = "") -> dict[str, Any]:
        servers = self.http.get(f"users/{user}", params={"include_stopped_servers": "1"}).json()
        found: dict[str, Any] = servers["servers"].get(server, {})
        return found

    def ready(self, user: str, server: str = "") -> bool:
        return bool(self.server(user, server).get("ready"))

    def progress(self, user: str, server: str = "") -> Iterator[dict[str, Any]]:
        path = (
            f"users/{user}/servers/{server}/progress" if server else f"users/{user}/server/progress"
        )
        with self.http.stream("GET", path) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))


def kill_lease(lease_id: str) -> None:
    """Kill all processes of a session's lease."""
    for process in scan({lease_id: None})[lease_id]:
        process.kill()
