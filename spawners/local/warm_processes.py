"""Fork servers of this engine: one for runners, and one for the kernels of each user.

They save a job the start of two interpreters. A job that is not served by them starts as usual.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import psutil

from ..devices.environment import device_environment
from ..runner.kernels import fork_servers
from ..runner.kernels.fork_client import ForkedProcess, ForkRefused, fork, listens
from ..runner.kernels.forkserver import KERNEL, ForkSettings

log = logging.getLogger(__name__)

RUNNER: Final = "carrel.spawners.runner"
RUNNER_SETTINGS: Final = ForkSettings(
    program=f"{RUNNER}.__main__:run_and_leave",
    imports=(
        f"{RUNNER}.__main__",
        f"{RUNNER}.attempt.command",
        f"{RUNNER}.warm_start:load_all",
    ),
    idle=3600.0,
    lifeline=True,
    shown=fork_servers.SHOWN,
)
KERNEL_SETTINGS: Final = replace(
    fork_servers.KERNEL_SETTINGS, idle=fork_servers.IDLE_SECONDS, lifeline=True
)
_START_SECONDS: Final = 60.0
_PER_JOB: Final = "CARREL_"
"""Variables with this beginning are those of one job, as are those of its devices."""
_MOST_USERS: Final = 32
"""The most users with a server for kernels; the one that was not used for longest ends first."""
_SPARE_BYTES: Final = 1 << 30
"""Memory that stays available beside servers and the next job."""


@dataclass(frozen=True, slots=True)
class _Server:
    process: subprocess.Popen[bytes]
    socket: Path
    started: float

    @property
    def usable(self) -> bool:
        """Whether it takes requests, or will as soon as it has started."""
        if self.socket.exists():
            # A server that has ended may have left its socket to a successor.
            return self.process.poll() is None or listens(self.socket)
        return self.process.poll() is None and time.monotonic() - self.started < _START_SECONDS


@dataclass(slots=True)
class WarmProcesses:
    """The fork servers of an installation; safe to use from any thread.

    A server ends with this process, but not before its last fork.

    Attributes:
        folder: private folder for their sockets and package lists.
        state: the state folder, by which ``carrel down`` finds them.
    """

    folder: Path
    state: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _runners: _Server | None = None
    _kernels: dict[str, _Server] = field(default_factory=dict)
    """By user, the last used one last."""

    def fork_runner(
        self, arguments: Sequence[str], environment: Mapping[str, str], output: int
    ) -> ForkedProcess | None:
        """Fork a runner; return None if it has to be started as usual.

        Args:
            output: descriptor of its standard output and error output.
        """
        with self._lock:
            if self._runners is None or not self._runners.usable:
                self._runners = self._start("runner", environment, RUNNER_SETTINGS)
            server = self._runners
        if server is None:
            return None
        try:
            with open(os.devnull, "rb") as null:
                return fork(
                    server.socket,
                    (sys.executable, "-P", "-m", RUNNER, *arguments),
                    arguments,
                    environment=environment,
                    folder=environment["HOME"],
                    outputs=(null.fileno(), output, output),
                )
        except ForkRefused as error:
            log.debug("a runner is started as usual: %s", error)
            return None

    def kernel_server(self, owner: str, environment: Mapping[str, str], memory: int) -> str:
        """Return the path of the socket of the server for a user's kernels; start what is missing.

        Until the server has started, the user's jobs start as usual.

        Args:
            memory: what the job may need, in bytes; all servers are ended if it is not available.
        """
        with self._lock:
            if psutil.virtual_memory().available < memory + _SPARE_BYTES:
                while self._kernels:
                    self._end_oldest()
                return ""
            server = self._kernels.pop(owner, None)
            if server is None or not server.usable:
                server = self._start(f"kernels of {owner}", environment, KERNEL_SETTINGS)
            if server is None:
                return ""
            self._kernels[owner] = server
            while len(self._kernels) > _MOST_USERS:
                self._end_oldest()
            return str(server.socket)

    def close(self) -> None:
        """End all servers, each with its last fork."""
        with self._lock:
            while self._kernels:
                self._end_oldest()
            if self._runners is not None:
                _end(self._runners)

    def _start(
        self, name: str, environment: Mapping[str, str], settings: ForkSettings
    ) -> _Server | None:
        folder = self.folder / hashlib.sha256(name.encode()).hexdigest()[:16]
        own = {key: value for key, value in environment.items() if not key.startswith(_PER_JOB)}
        # A server imports packages without a lease.
        own |= {"CARREL_STATE": str(self.state), **device_environment(())}
        socket = folder / fork_servers.SOCKET
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            socket.unlink(missing_ok=True)
            process = fork_servers.start(
                fork_servers.in_folder(settings, folder),
                interpreter=sys.executable,
                environment=own,
                safe_path=settings.program != KERNEL,
                stdin=subprocess.PIPE,
            )
        except OSError as error:
            log.warning("the fork server for %s could not be started: %s", name, error)
            return None
        return _Server(process, socket, time.monotonic())

    def _end_oldest(self) -> None:
        _end(self._kernels.pop(next(iter(self._kernels))))


def _end(server: _Server) -> None:
    assert server.process.stdin is not None
    server.process.stdin.close()
