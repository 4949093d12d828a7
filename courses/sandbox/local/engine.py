"""Cages of this machine: one nursery in bubblewrap, which forks a cage for each submission.

A fork of a process that has imported everything costs milliseconds, and leaves for namespaces of
its own before anything of a student reaches it.
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
_MOST_WORDS: Final = 500


def create(settings: SandboxSettings) -> LocalSandboxes:
    """For the entry point."""
    return LocalSandboxes(settings)


class LocalSandboxes:
    """Starts its nursery at the first cage, and again if it is gone."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._nursery: _Nursery | None = None
        self._closed = False

    def open(self, limits: SandboxLimits, files: Mapping[str, bytes] | None = None) -> Sandbox:
        filling = checked(files or {}, limits)
        with self._lock:
            if self._closed:
                raise Unavailable("The grading sandbox has been closed.")
            if self._nursery is None or not self._nursery.lives():
                self._nursery = _Nursery(self._settings)
            line = self._nursery.fork()
        group = cgroups.make(limits)
        keeper = _Kept(pid=line.begin(group), group=group)
        return SandboxClient(line, keeper, limits, filling, watch=group is None)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._nursery is not None:
                self._nursery.end()
                self._nursery = None


class _Nursery:
    def __init__(self, settings: SandboxSettings) -> None:
        cgroups.tidy()
        self._said: TextIO = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed at the end
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        users, write = os.pipe()
        os.write(write, _PASSWD)
        os.close(write)
        try:
            self._process = subprocess.Popen(
                bubblewrap.command(settings, orders=theirs.fileno(), users=users),
                pass_fds=(theirs.fileno(), users),
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
                start_new_session=True,
            )
        finally:
            theirs.close()
            os.close(users)
        self._await()

    def _await(self) -> None:
        """Raises BackendFailed with what it said."""
        self._orders.settimeout(_START_SECONDS)
        try:
            ready = self._orders.recv(16)
        except (TimeoutError, ConnectionError):
            ready = b""
        if not ready:
            self.end()
            self._said.seek(0)
            raise BackendFailed(f"The grading sandbox did not start: {in_words(self._said.read())}")
        self._orders.settimeout(_OPEN_SECONDS)

    def lives(self) -> bool:
        return self._process.poll() is None

    def fork(self) -> _SocketLine:
        """Raises Unavailable."""
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        with theirs:
            try:
                socket.send_fds(self._orders, [b"cage"], [theirs.fileno()])
            except OSError as error:
                ours.close()
                raise Unavailable(f"The grading sandbox does not answer: {error}.") from error
        return _SocketLine(ours)

    def end(self) -> None:
        """All its cages end with it."""
        self._orders.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._process.kill()
        self._process.wait()


def in_words(said: str) -> str:
    """What is missing, where that is known by what bubblewrap says."""
    if "No permissions to create" in said or "Operation not permitted" in said:
        return (
            "this account may not make user namespaces. An administrator allows them with "
            "`sysctl kernel.unprivileged_userns_clone=1` (Debian) or `sysctl "
            "kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu), or runs Carrel as root. "
            f"({said.strip()[-_MOST_WORDS:]})"
        )
    return said.strip()[-_MOST_WORDS:] or "it said nothing."


class _SocketLine:
    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def begin(self, group: Cgroup | None) -> int:
        """Put the fork into its cgroup and let it go on; returns its process id.

        Raises:
            Unavailable: it did not come.
        """
        self._end.settimeout(_OPEN_SECONDS)
        try:
            data, extras, _, _ = self._end.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
            if not data or not extras:
                raise ConnectionResetError("it ended at once")
            pid = int(_CREDENTIALS.unpack(extras[0][2])[0])
            if group is not None:
                group.join(pid)
            self._end.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
            self._end.sendall(b"\0")
        except OSError as error:
            self._end.close()
            if group is not None:
                group.end()
            raise Unavailable(f"A cage could not be made: {error}.") from error
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
class _Kept:
    """Attributes:
    pid: of the process whose death ends the cage's first one, and with it all others.
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
