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
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from jupyterhub.spawner import SimpleLocalProcessSpawner
from pydantic import JsonValue
from traitlets import Integer

from ...hub.records.leases import Handle
from ...hub.schemas import LeaseOut, StartedIn
from ..processes.identity import environment_of, process_identity, still_alive
from ..processes.lease_processes import handle_of, scan
from .host_session import HostSession
from .lease_mixin import LeaseMixin
from .readiness import Address
from .server_ports import next_port

__all__ = ["LeaseMixin", "LocalSession"]


class LocalSession(HostSession, SimpleLocalProcessSpawner):  # type: ignore[misc]  # untyped base
    """``SimpleLocalProcessSpawner`` on a lease, with all its options."""

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

    def make_preexec_fn(self, name: str) -> None:
        """Run nothing between fork and exec: Popen sets the working folder."""

    # -- LeaseMixin -------------------------------------------------------------------------

    async def start_server(self) -> Address:
        await self.prepare_home()
        self.port = next_port()  # another process may have taken the port of an earlier start
        with self.open_log() as log:
            self.popen_kwargs = {
                **self.popen_kwargs,
                "cwd": self.home_dir,
                "stdin": subprocess.DEVNULL,
                "stdout": log,
                "stderr": subprocess.STDOUT,
            }
            address = await super().start_server()
        self.process_identity = process_identity(self.pid)
        return address

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
