"""Run sandboxes on this machine: one fork server in bubblewrap, and a fork for each submission.

Forking a process that has imported everything takes milliseconds. The fork enters its own
namespaces before it gets any file of a student.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TextIO

from ....hub.errors import BackendFailed, Unavailable
from ..client import SandboxClient, checked
from ..interface import Sandbox, SandboxLimits, SandboxSettings
from . import bubblewrap, cgroups
from .cgroups import Cgroup

_START_SECONDS: Final = 60.0
_OPEN_SECONDS: Final = 10.0
_CREDENTIALS: Final = struct.Struct("3i")
_PASSWD: Final = b"student:x:1000:1000:student:/home/student:/bin/sh\n"
_MAX_CHARACTERS: Final = 500


def create(settings: SandboxSettings) -> LocalSandboxes:
    """Create the engine; called by its entry point."""
    return LocalSandboxes(settings)


class LocalSandboxes:
    """Starts its fork server with the first sandbox, and again if it has exited."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._server: _ForkServer | None = None
        self._closed = False

    def open(self, limits: SandboxLimits, files: Mapping[str, bytes] | None = None) -> Sandbox:
        checked_files = checked(files or {}, limits)
        with self._lock:
            if self._closed:
                raise Unavailable("The grading sandbox has been closed.")
            if self._server is None or not self._server.lives():
                self._server = _ForkServer(self._settings)
            stream = self._server.fork()
        group = cgroups.make(limits)
        keeper = _LocalKeeper(pid=stream.begin(group), group=group)
        return SandboxClient(stream, keeper, limits, checked_files, watch=group is None)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._server is not None:
                self._server.end()
                self._server = None


class _ForkServer:
    def __init__(self, settings: SandboxSettings) -> None:
        cgroups.remove_leftovers()
        self._output: TextIO = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed at the end
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        users, write = os.pipe()
        os.write(write, _PASSWD)
        os.close(write)
        try:
            self._process = subprocess.Popen(
                bubblewrap.command(settings, orders=theirs.fileno(), users=users),
                pass_fds=(theirs.fileno(), users),
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                start_new_session=True,
            )
        finally:
            theirs.close()
            os.close(users)
        self._wait_for_start()

    def _wait_for_start(self) -> None:
        """Wait for the start. Raises BackendFailed with bubblewrap's output."""
        self._orders.settimeout(_START_SECONDS)
        try:
            ready = self._orders.recv(16)
        except (TimeoutError, ConnectionError):
            ready = b""
        if not ready:
            self.end()
            self._output.seek(0)
            raise BackendFailed(
                f"The grading sandbox did not start: {explained(self._output.read())}"
            )
        self._orders.settimeout(_OPEN_SECONDS)

    def lives(self) -> bool:
        return self._process.poll() is None

    def fork(self) -> _SocketStream:
        """Fork a sandbox. Raises Unavailable."""
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        with theirs:
            try:
                socket.send_fds(self._orders, [b"sandbox"], [theirs.fileno()])
            except OSError as error:
                ours.close()
                raise Unavailable(f"The grading sandbox does not answer: {error}.") from error
        return _SocketStream(ours)

    def end(self) -> None:
        """End the fork server and all its sandboxes."""
        self._orders.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._process.kill()
        self._process.wait()


def explained(output: str) -> str:
    """Bubblewrap's output, with the fix where the problem is known."""
    if "No permissions to create" in output or "Operation not permitted" in output:
        return (
            "this account cannot create user namespaces. An administrator allows them with "
            "`sysctl kernel.unprivileged_userns_clone=1` (Debian) or `sysctl "
            "kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu), or runs Carrel as root. "
            f"({output.strip()[-_MAX_CHARACTERS:]})"
        )
    return output.strip()[-_MAX_CHARACTERS:] or "there was no output."


class _SocketStream:
    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def begin(self, group: Cgroup | None) -> int:
        """Put the fork into its cgroup and let it continue; returns its process ID.

        Raises:
            Unavailable: the fork ended or did not answer.
        """
        self._end.settimeout(_OPEN_SECONDS)
        try:
            data, extras, _, _ = self._end.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
            if not data or not extras:
                raise ConnectionResetError("the fork exited at once")
            pid = int(_CREDENTIALS.unpack(extras[0][2])[0])
            if group is not None:
                group.join(pid)
            self._end.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
            self._end.sendall(b"\0")
        except OSError as error:
            self._end.close()
            if group is not None:
                group.end()
            raise Unavailable(f"A sandbox could not be created: {error}.") from error
        return pid

    def send(self, data: bytes) -> None:
        self._end.settimeout(_OPEN_SECONDS)
        self._end.sendall(data)

    def receive(self, seconds: float) -> bytes:
        self._end.settimeout(max(seconds, 0.001))
        return self._end.recv(1 << 18)

    def close(self) -> None:
        self._end.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _LocalKeeper:
    """Attributes:
    pid: of the supervisor's parent, with which the whole sandbox ends.
    """

    pid: int
    group: Cgroup | None

    def out_of_memory(self) -> bool:
        return self.group is not None and self.group.out_of_memory()

    def most_memory(self) -> int | None:
        return None if self.group is None else self.group.most_memory()

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        if self.group is not None:
            self.group.end()
