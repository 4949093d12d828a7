"""A server with jupyter-scheduler, as in a session of student1, and calls to its REST API."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from carrel.extensions.environment import jupyter_environment

from .. import notebook_jobs, plain_http
from ..ports import free_port
from .support import Installation, eventually

USER = "student1"


def session_environment() -> dict[str, str]:
    """Return the variables by which a session of this environment finds jupyter-scheduler."""
    folder = notebook_jobs.packages()
    return {
        "PYTHONPATH": str(folder),
        "JUPYTER_CONFIG_PATH": str(folder / "etc" / "jupyter"),
        "JUPYTER_PATH": str(folder / "share" / "jupyter"),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerServer:
    """The REST API that the front end of jupyter-scheduler calls.

    Attributes:
        home: home of student1, which is the folder of the server.
    """

    url: str
    home: Path

    def call(self, method: str, path: str, **body: Any) -> httpx.Response:
        more = {"json": body} if body else {}
        return plain_http.request(method, f"{self.url}/scheduler/{path}", timeout=60, **more)

    def get(self, path: str) -> Any:
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def create(self, notebook: str, **fields: Any) -> str:
        """Create a job with the form's fields, and return its id."""
        answer = self.call("POST", "jobs", **form(notebook, **fields))
        assert answer.status_code == 200, answer.text
        return str(answer.json()["job_id"])

    def refusal(self, path: str, **body: Any) -> str:
        answer = self.call("POST", path, **body)
        assert answer.status_code == 500
        return str(answer.json()["message"])

    def wait_for(self, job: str, status: str) -> dict[str, Any]:
        def check() -> dict[str, Any] | None:
            found: dict[str, Any] = self.get(f"jobs/{job}")
            return found if found["status"] == status else None

        return eventually(check, f"{job} is {status}")


def form(notebook: str, **fields: Any) -> dict[str, Any]:
    """Return what the stock form sends."""
    return {
        "name": Path(notebook).stem,
        "input_uri": notebook,
        "runtime_environment_name": "cs101",
        "compute_type": "no device",
        "output_formats": ["ipynb", "html"],
        **fields,
    }


@contextmanager
def scheduler_server(site: Installation) -> Iterator[SchedulerServer]:
    """Start the server; its extensions are those of a session."""
    home, port = site.state / "homes" / USER, free_port()
    home.mkdir(parents=True, exist_ok=True)
    own = session_environment()
    environment: Mapping[str, str] = {
        **own,
        **jupyter_environment(own),
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CARREL_URL": site.service,
        "JUPYTERHUB_API_TOKEN": site.token(USER),
        "NO_PROXY": "127.0.0.1",
    }
    options = {"port": port, "root_dir": home, "open_browser": False, "disable_check_xsrf": True}
    words = [f"--ServerApp.{name}={value}" for name, value in options.items()]
    server = [sys.executable, "-P", "-m", "jupyter_server", "--allow-root"]
    with (site.state / "scheduler-server.log").open("w") as log:
        process = subprocess.Popen(
            [*server, *words, "--IdentityProvider.token="],
            cwd=home,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    made = SchedulerServer(url=f"http://127.0.0.1:{port}", home=home)

    def answers() -> bool:
        assert process.poll() is None, (site.state / "scheduler-server.log").read_text()
        try:
            return made.call("GET", "config").status_code == 200
        except httpx.HTTPError:
            return False

    try:
        eventually(answers, "the server answers")
        yield made
    finally:
        process.terminate()
        process.wait(timeout=30)
