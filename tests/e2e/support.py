"""A complete installation under test: three real processes with their own state folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil

from carrel.hub.client import login
from carrel.hub.config.state_folder import StateFolder

from .. import plain_http
from ..ports import free_port

ROOT = Path(__file__).resolve().parents[2]
CARREL = Path(sys.prefix) / "bin" / "carrel"

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.3
"""Seconds between two polls of ``eventually``."""

_T = TypeVar("_T")


def eventually(
    check: Callable[[], _T | None], what: str, *, within: float = 60.0, every: float | None = None
) -> _T:
    """Return the first true value; fail with ``what`` after ``within`` seconds.

    It polls a system of several processes from outside, where there is nothing to await. The
    time-outs allow for slow machines. It polls often at first, then less often, to leave time for
    the system; ``every`` is a constant pause where timing matters.
    """
    deadline = time.monotonic() + within
    pause = every or FIRST_PAUSE
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within} s: {what} (last answer: {found!r})")
        time.sleep(pause)
        pause = every or min(LONGEST_PAUSE, 1.5 * pause)


@dataclass
class Installation:
    """``carrel up`` as a child process, and its output when it was ready."""

    state: Path
    port: int
    arguments: tuple[str, ...] = ("--demo",)
    via_make: bool = False
    base_url: str = "/"
    program: tuple[str, ...] = (str(CARREL),)
    process: subprocess.Popen[str] | None = None
    ready: dict[str, Any] = field(default_factory=dict)
    passwords: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def service(self) -> str:
        return f"{self.url}{self.base_url}services/carrel"

    @property
    def hub_api(self) -> str:
        """JupyterHub itself, without the proxy."""
        hub = f"http://{self.setting('internal_ip')}:{self.setting('hub_port')}"
        return f"{hub}{self.base_url}hub/api"

    def up(self) -> None:
        flags = ["--port", str(self.port), "--json", "--state", str(self.state), *self.arguments]
        if self.via_make:
            flags.remove("--demo")  # `make up` is `carrel up --demo`
            command = ["make", "-s", "up", f"ARGS={' '.join(flags)}"]
            folder = ROOT
        else:
            command = [*self.program, "up", *flags]
            folder = self.state / "started-in"
        # Modules of the folder in which it is called do not replace those of Python.
        (self.state / "started-in").mkdir(parents=True, exist_ok=True)
        for name in ("json", "random", "types"):
            (self.state / "started-in" / f"{name}.py").write_text("raise RuntimeError")
        log = (self.state / "up.log").open("a")
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"carrel up said nothing; its log:\n{(self.state / 'up.log').read_text()}"
        self.ready = json.loads(line)
        for user in self.ready["users"]:
            if user.get("password"):
                self.passwords[user["name"]] = user["password"]

    def interrupt(self) -> None:
        """Ctrl-C: the control plane stops, work continues."""
        if self.process is not None:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGINT)
            self.process.wait(timeout=120)
            self.process = None

    def down(self) -> str:
        """``carrel down``: everything stops."""
        done = subprocess.run(
            [str(CARREL), "down", "--state", str(self.state)],
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        if self.process is not None:
            self.process.wait(timeout=120)
            self.process = None
        return done.stdout

    def secret(self, name: str) -> str:
        return str(json.loads((self.state / "secrets.json").read_text())[name])

    def setting(self, name: str) -> Any:
        return json.loads((self.state / "settings.json").read_text())[name]

    # -- the three processes --------------------------------------------------------------

    def pid_of(self, part: str) -> int:
        """The process id of the running proxy, JupyterHub or service."""
        marks = {
            "proxy": ("configurable-http-proxy",),
            "hub": ("jupyterhub", "-f"),
            "service": ("carrel.hub.app",),
        }[part]
        for process in psutil.process_iter():
            try:
                words = process.cmdline()
                environment = process.environ()
                gone = process.status() == psutil.STATUS_ZOMBIE
            except psutil.Error:
                continue
            if gone:
                continue
            mine = environment.get("CARREL_STATE") == str(self.state) or str(self.state) in words
            if part == "proxy":
                mine = str(self.setting("proxy_api_port")) in " ".join(words)
            if (
                mine
                and "CARREL_LEASE" not in environment
                and all(any(mark in word for word in words) for mark in marks)
            ):
                return process.pid
        raise AssertionError(f"the {part} does not run")

    def kill(self, part: str) -> None:
        """kill -9, and wait until the process is gone."""
        process = psutil.Process(self.pid_of(part))
        process.kill()
        assert not psutil.wait_procs([process], timeout=60)[1]

    # -- users and programs ------------------------------------------------------------------

    def cli(
        self, *words: str, user: str | None = None, check: bool = True, input: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as ``user``."""
        environment = {**os.environ, "HOME": str(self.state)}
        for name in [key for key in environment if key.startswith(("CARREL_", "JUPYTERHUB_"))]:
            if name not in ("CARREL_REQUIRE", "CARREL_SHARED"):
                del environment[name]
        if user is not None:
            environment |= {"CARREL_URL": self.service, "CARREL_TOKEN": self.token(user)}
        done = subprocess.run(
            [str(CARREL), *words],
            capture_output=True,
            text=True,
            timeout=240,
            env=environment,
            input=input,
            check=False,
        )
        if check:
            assert done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
        return done

    def cli_json(self, *words: str, user: str) -> Any:
        return json.loads(self.cli(*words, "--json", user=user).stdout)

    def token(self, user: str) -> str:
        """Create a token for programs of this user through JupyterHub's API."""
        if user not in self.tokens:
            answer = plain_http.post(
                f"{self.hub_api}/users/{user}/tokens",
                headers={"Authorization": f"token {self.secret('service_token')}"},
                json={"note": "test"},
                timeout=60,
            )
            if answer.status_code == 403:
                self.tokens[user] = self.token_by_sign_in(user)
            else:
                answer.raise_for_status()
                self.tokens[user] = answer.json()["token"]
        return self.tokens[user]

    def token_by_sign_in(self, user: str) -> str:
        return str(login(f"{self.url}{self.base_url}", user, self.passwords[user]).token)

    def api(self, method: str, path: str, *, user: str, **more: Any) -> httpx.Response:
        return plain_http.request(
            method,
            f"{self.service}/api/v1{path}",
            headers={"Authorization": f"token {self.token(user)}"},
            timeout=90,
            **more,
        )

    def request(self, request_id: str, *, user: str) -> dict[str, Any]:
        answer = self.api("GET", f"/requests/{request_id}", user=user)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def wait_for(
        self,
        request_id: str,
        *states: str,
        user: str,
        within: float = 120.0,
        every: float | None = None,
    ) -> dict[str, Any]:
        def check() -> dict[str, Any] | None:
            try:
                found = self.request(request_id, user=user)
            except (httpx.HTTPError, AssertionError):
                return None  # a process is restarting
            return found if found["state"] in states else None

        what = f"{request_id} {' or '.join(states)}"
        return eventually(check, what, within=within, every=every)

    def start_session(
        self, user: str, server: str = "", *, devices: int = 1, hours: float = 1.0
    ) -> dict[str, Any]:
        answer = self.api(
            "POST",
            f"/sessions/{server or '-'}",
            user=user,
            json={"devices": devices, "hours": hours, "group": "cs101"},
        )
        assert answer.status_code == 202, answer.text
        return dict(answer.json())

    def ledger(self, user: str) -> list[Mapping[str, Any]]:
        return list(self.api("GET", "/usage", user=user).json()["ledger"])

    def processes_of(self, lease_id: str) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("CARREL_LEASE") == lease_id:
                    found.append(process)
            except psutil.Error:
                continue
        return found


_Made = TypeVar("_Made", bound=Installation)


@contextmanager
def brought_up(made: _Made) -> Iterator[_Made]:
    """Start it; at the end remove everything, and keep logs in $CARREL_ARTEFACTS."""
    try:
        made.up()
        yield made
    finally:
        keep = os.environ.get("CARREL_ARTEFACTS")
        try:
            made.down()
        finally:
            if keep and (made.state / "logs").is_dir():
                name = f"{made.state.parent.name}-{made.state.name}"
                shutil.copytree(made.state / "logs", Path(keep) / "logs" / name, dirs_exist_ok=True)


def allow_links(state: Path, *prefixes: str) -> None:
    """Write a site file that allows links to addresses, before the installation starts."""
    folder = StateFolder.at(state)
    folder.create()
    folder.site_file.write_text(f"[open_links]\nallowed = {json.dumps(prefixes)}\n")


@contextmanager
def installation(state: Path, *arguments: str, via_make: bool = False) -> Iterator[Installation]:
    """The demo, on a port of its own."""
    made = Installation(
        state=state, port=free_port(), arguments=("--demo", *arguments), via_make=via_make
    )
    with brought_up(made):
        yield made
