"""The client of a fork server (``forkserver``): request a process, signal it, await its exit."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from .forkserver import ForkRequest

ANSWER_SECONDS: Final = 2.0
"""How long a server may take to fork; a client that waits in vain starts a process as usual."""
UNKNOWN_EXIT: Final = 255
"""Exit status of a process whose server has ended before it."""


class ForkRefused(Exception):
    """No process was forked; the message says why."""


class ServerAbsent(ForkRefused):
    """No server listens at the socket: it is still starting, or has ended."""


class WatchedProcess:
    """A process that is not our child, with the interface of ``subprocess.Popen``."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        """Watch a process. Raises ProcessLookupError if it has ended."""
        self.pid = pid
        self.returncode: int | None = None
        self._lock = threading.Lock()
        self._descriptor = os.pidfd_open(pid)

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when the process has ended."""
        return self._descriptor

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        with self._lock:
            if self.returncode is None and _is_readable(self._descriptor, 0.0):
                self._end()
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status.

        Raises:
            subprocess.TimeoutExpired: the process still runs after ``timeout`` seconds.
        """
        try:
            ended = self.returncode is not None or _is_readable(self._descriptor, timeout)
        except OSError:
            ended = True  # another thread has seen the end and closed the descriptor
        status = self.poll() if ended else None
        if status is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        with self._lock:
            if self.returncode is None:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._descriptor, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def _end(self) -> None:
        """Set the exit status, which only the parent of the process knows."""
        self.returncode = UNKNOWN_EXIT
        os.close(self._descriptor)


class ForkedProcess(WatchedProcess):
    """A process that a server has forked.

    Attributes:
        notes: reason by package that the server does not import ahead.
    """

    def __init__(
        self, pid: int, connection: socket.socket, lifeline: int, notes: Mapping[str, str]
    ) -> None:
        super().__init__(pid)
        self.notes = notes
        self._connection = connection
        self._lifeline = lifeline

    def _end(self) -> None:
        """Take the exit status from the server, which is about to send it."""
        self._connection.settimeout(ANSWER_SECONDS)
        try:
            self.returncode = int(_line(self._connection)["exit"])
        except (OSError, ValueError, KeyError, TypeError):
            self.returncode = UNKNOWN_EXIT
        self._connection.close()
        for descriptor in (self._descriptor, self._lifeline):
            os.close(descriptor)


def fork(
    server: Path,
    command: Sequence[str],
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: str,
    outputs: tuple[int, int, int],
    seconds: float = ANSWER_SECONDS,
) -> ForkedProcess:
    """Fork a process of a server. It exits when this process ends.

    Args:
        server: path of the server's socket.
        command: the command line for which the fork stands in.
        arguments: its arguments, without interpreter and module.
        outputs: descriptors of stdin, stdout and stderr.

    Raises:
        ServerAbsent: there is no server.
        ForkRefused: the server does not answer, or refuses.
    """
    request = ForkRequest(
        command=list(command),
        arguments=list(arguments),
        environment=dict(environment),
        folder=folder,
    )
    theirs, lifeline = os.pipe()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(seconds)
    try:
        _connect(connection, server)
        data = json.dumps(asdict(request)).encode() + b"\n"
        sent = socket.send_fds(connection, [data], [*outputs, theirs])
        if sent < len(data):  # to send nothing fails as well where the server has refused already
            connection.sendall(data[sent:])
        answer = _line(connection)
        refused = answer.get("refused")
        if refused is None:
            return ForkedProcess(answer["pid"], connection, lifeline, answer["given_up"])
    except (FileNotFoundError, ConnectionRefusedError):
        refused = None
    except (OSError, ValueError, KeyError) as error:
        refused = str(error) or type(error).__name__
    finally:
        os.close(theirs)
    connection.close()
    os.close(lifeline)
    raise (
        ServerAbsent(f"no server listens at {server}") if refused is None else ForkRefused(refused)
    )


def _is_readable(descriptor: int, seconds: float | None) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    found = poll.poll(None if seconds is None else seconds * 1000)
    if found and found[0][1] & select.POLLNVAL:
        raise OSError("the descriptor is closed")
    return bool(found)


def listens(server: Path) -> bool:
    """Whether a process listens at the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_SECONDS)
        try:
            _connect(connection, server)
        except OSError:
            return False
        return True


def _connect(connection: socket.socket, server: Path) -> None:
    # By the descriptor of its folder, because the path of a socket may have only 107 bytes.
    folder = os.open(server.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{server.name}")
    finally:
        os.close(folder)


def _line(connection: socket.socket) -> dict[str, Any]:
    """Read one answer byte by byte, so that nothing of the next one is taken."""
    ends = time.monotonic() + (connection.gettimeout() or 0.0)
    data = b""
    while not data.endswith(b"\n"):
        more = connection.recv(1)
        if not more or time.monotonic() > ends:
            raise ValueError("the server has ended")
        data += more
    answer: dict[str, Any] = json.loads(data)
    return answer
