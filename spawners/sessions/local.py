"""Run sessions as local processes of the hub's system account, each on a lease.

All sessions of such an installation share one account and are not isolated from each other: use it
on a laptop, in a demonstration and in tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import psutil
from jupyterhub.spawner import SimpleLocalProcessSpawner
from pydantic import JsonValue
from traitlets import Integer, Unicode, default

from ...extensions.environment import jupyter_environment
from ...hub.config.state_folder import StateFolder
from ...hub.files.filenames import safe_name
from ...hub.files.home_folders import unusable
from ...hub.records.leases import Handle
from ...hub.schemas import LeaseOut, StartedIn
from ..common import course_links
from ..processes.identity import environment_of, process_identity, still_alive
from ..processes.lease_processes import handle_of, scan
from .lease_mixin import LeaseMixin
from .readiness import Address
from .server_ports import next_port

__all__ = ["LeaseMixin", "LocalSession"]

LOG_BYTES = 2 * 1024 * 1024
"""A longer log is rotated when a session starts; one older log is kept."""
TAIL_BYTES = 4000
TAIL_LINES = 25


class LocalSession(LeaseMixin, SimpleLocalProcessSpawner):  # type: ignore[misc]  # untyped base
    """``SimpleLocalProcessSpawner`` on a lease, with all its options."""

    homes = Unicode(
        help="""Folder of the homes: one folder for each user, named so that no two users
        share one.""",
    ).tag(config=True)

    logs = Unicode(
        help="""Folder of the sessions' logs, one file for each server.""",
    ).tag(config=True)

    interrupt_timeout = Integer(
        1, help="Seconds to wait after SIGINT, if the Carrel service does not stop the session."
    ).tag(config=True)
    term_timeout = Integer(
        2, help="Seconds to wait after SIGTERM, if the Carrel service does not stop the session."
    ).tag(config=True)
    kill_timeout = Integer(
        2, help="Seconds to wait after SIGKILL, if the Carrel service does not stop the session."
    ).tag(config=True)

    popen_kwargs: dict[str, object]
    process_identity = ""
    _log_start = 0
    _graded: tuple[str, ...] | None = None
    """The courses that the user grades; None if not known."""

    @default("home_dir")
    def _home_dir_default(self) -> str:
        return str(Path(self.homes) / safe_name(self.user.name))

    @default("default_url")
    def _default_url_default(self) -> str:
        return "/lab"

    @default("cmd")
    def _cmd_default(self) -> list[str]:
        return [str(Path(sys.prefix) / "bin" / "jupyterhub-singleuser")]

    @default("args")
    def _args_default(self) -> list[str]:
        """Disable requests to external hosts, and keep the session's PATH in terminals.

        By default Jupyter starts a login shell, which would reset PATH to the system's, so that
        ``carrel`` would not be found.
        """
        return [
            "--ServerApp.terminado_settings=shell_command=['/bin/bash']",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            "--LabApp.news_url=None",
            "--LabApp.extension_manager=readonly",
        ]

    @default("env_keep")
    def _env_keep_default(self) -> list[str]:
        """Pass only these variables on, because the hub's environment contains secrets."""
        return ["PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ"]

    def get_args(self) -> list[str]:
        args: list[str] = super().get_args()
        return [*args, "--allow-root"] if os.geteuid() == 0 else args

    def user_env(self, env: dict[str, str]) -> dict[str, str]:
        env = super().user_env(env)
        # In a session's terminal, `carrel` is the command of this installation.
        own = str(Path(sys.prefix) / "bin")
        others = [part for part in env.get("PATH", os.defpath).split(os.pathsep) if part != own]
        env = env | {"PATH": os.pathsep.join([own, *others])}
        courses = course_links.environment(self.home_dir, self._graded, self._group)
        if self.state_root:
            courses |= course_links.course_data(Path(self.state_root), self._group)
        return env | jupyter_environment(env) | courses

    def make_preexec_fn(self, name: str) -> None:
        """Run nothing between fork and exec: Popen sets the working folder."""

    # -- LeaseMixin -------------------------------------------------------------------------

    async def start_server(self) -> Address:
        home = Path(self.home_dir)
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise unusable(self.user.name, home, error) from error
        await self._link_courses(home)
        self.port = next_port()  # another process may have taken the port of an earlier start
        with self._open_log() as log:
            self.popen_kwargs = {
                **self.popen_kwargs,
                "cwd": str(home),
                "stdin": subprocess.DEVNULL,
                "stdout": log,
                "stderr": subprocess.STDOUT,
            }
            address = await super().start_server()
        self.process_identity = process_identity(self.pid)
        return address

    async def _link_courses(self, home: Path) -> None:
        graded = await course_links.graded_by(self._lease_request.link, self.user.name)
        if graded is None or not self.state_root:
            return
        try:
            course_links.link_into(home, StateFolder.at(self.state_root).courses, graded)
        except OSError as error:
            self.log.warning("course folders of %s were not linked: %s", self._log_name, error)
        else:
            self._graded = graded

    async def running_server(self, lease: LeaseOut) -> Address | None:
        handle = None
        if lease.pid is not None and lease.started_at is not None:
            handle = Handle(pid=lease.pid, started_at=lease.started_at)
        processes = scan(
            {lease.id: handle}, state=Path(self.state_root) if self.state_root else None
        )
        for process in processes[lease.id][:1]:
            env = environment_of(process.pid)
            url = urlsplit(env.get("JUPYTERHUB_SERVICE_URL", ""))
            if url.hostname and url.port and "JUPYTERHUB_API_TOKEN" in env:
                self.api_token = env["JUPYTERHUB_API_TOKEN"]
                self.proc, self.pid, self.port = None, process.pid, url.port
                self.process_identity = process_identity(process.pid)
                return url.hostname, url.port
        return None

    def server_process(self) -> StartedIn | None:
        try:
            handle = handle_of(psutil.Process(self.pid))
        except psutil.NoSuchProcess:
            return None  # the wait for the server's answer notices
        return StartedIn(pid=handle.pid, started_at=handle.started_at)

    def log_tail(self) -> str:
        try:
            with self.log_path.open("rb") as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(self._log_start, end - TAIL_BYTES))
                text = log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-TAIL_LINES:])

    async def kill_started(self) -> None:
        proc, pid = self.proc, self.pid
        alive = proc.poll() is None if proc is not None else self._still_ours()
        if not (pid and alive):
            return
        # The server leads its own process session: its group has no process of the hub.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        if proc is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(proc.wait, 0.5)

    # -- the process ------------------------------------------------------------------------

    async def poll(self) -> int | None:
        # After a restart of the hub there is no Popen object, and the pid may be recycled.
        if self.proc is None and self.pid and not self._still_ours():
            self.clear_state()
            return 0
        status: int | None = await super().poll()
        return status

    def _still_ours(self) -> bool:
        """Whether the process that was started still runs, and belongs to this installation.

        A backup restored beside the original has the same processes in its database.
        """
        state = environment_of(self.pid).get("CARREL_STATE", self.state_root)
        return state == self.state_root and still_alive(self.pid, self.process_identity)

    def get_state(self) -> dict[str, JsonValue]:
        state = super().get_state()
        return state | {"birthmark": self.process_identity} if self.pid else state

    def load_state(self, state: dict[str, JsonValue]) -> None:
        super().load_state(state)
        self.process_identity = str(state.get("birthmark", ""))

    def clear_state(self) -> None:
        super().clear_state()
        self.process_identity = ""

    @property
    def log_path(self) -> Path:
        """``USER.log`` or ``USER--SERVER.log``; a safe name never contains two hyphens in a row."""
        server = f"--{safe_name(self.name)}" if self.name else ""
        return Path(self.logs) / f"{safe_name(self.user.name)}{server}.log"

    def _open_log(self) -> BinaryIO:
        path = self.log_path
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > LOG_BYTES:
            path.replace(path.with_name(path.name + ".1"))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        log = os.fdopen(descriptor, "ab")
        self._log_start = os.fstat(descriptor).st_size
        return log
