"""A supervised process: runs in a session of its own, with a log, restarted with back-off."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ..errors import BackendFailed
from .liveness import LivenessCheck
from .processes import ProcessId

_ROTATE_BYTES = 10 * 1024 * 1024
_TAIL_BYTES = 8192
_TAIL_LINES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """The command of a process, and its readiness probe.

    Attributes:
        title: its name in messages.
        environment: the complete environment.
        ready: probes it once; blocks for a second at most.
        settled: called after every *re*start once it is ready, until it returns True.
        alive: probes whether it still responds, in another thread; blocks for ten seconds at most.
    """

    name: str
    title: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    ready: Callable[[], bool]
    settled: Callable[[], bool] = field(default=lambda: True)
    alive: Callable[[], bool] = field(default=lambda: True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Seconds before a restart: doubled from ``first`` up to ``longest``, reset after ``calm``."""

    first: float = 0.2
    longest: float = 10.0
    calm: float = 60.0

    def after(self, deaths: int) -> float:
        return min(self.first * 2.0 ** min(max(deaths - 1, 0), 16), self.longest)


class Child:
    """A component with its process. All times are those of the supervisor's monotonic clock."""

    def __init__(self, part: Component, *, logs: Path, run: Path, backoff: Backoff) -> None:
        self.part = part
        self.log = logs / f"{part.name}.log"
        self.note = run / f"{part.name}.json"
        self.process: subprocess.Popen[bytes] | None = None
        self.ready = False
        self.noted = True
        self.settled = True
        self.deaths = 0
        self.starts = 0
        self.liveness: LivenessCheck | None = None
        """Set once the process is ready."""
        self.due: float | None = None
        """When to start it again; None while it runs."""
        self._started_at = 0.0
        self._backoff = backoff

    def start(self, now: float) -> None:
        """Start the process. Raises BackendFailed if the program cannot be executed."""
        with _opened(self.log) as log:
            try:
                self.process = subprocess.Popen(
                    self.part.command,
                    env=dict(self.part.environment),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    # Ctrl-C in the terminal must reach only the supervisor.
                    start_new_session=True,
                )
            except OSError as error:
                raise BackendFailed(
                    f"{self.part.title} cannot be started: {error}.",
                    accepted=f"The command was: {' '.join(self.part.command)}",
                ) from error
        self.save_note()
        self.starts += 1
        self.ready, self.settled = False, self.starts == 1
        self.due, self._started_at = None, now
        self.liveness = None

    def save_note(self) -> None:
        """Write down which process it is; ``noted`` says whether that succeeded.

        The next ``carrel up`` reads it. On a full disk the component runs without it.
        """
        identity = None if self.process is None else ProcessId.of(self.process.pid)
        try:
            if identity is not None:
                identity.save(self.note)
            self.noted = True
        except OSError:
            self.noted = False

    def postpone(self, now: float) -> None:
        """Schedule another start after one that failed."""
        self.deaths += 1
        self.due = now + self._backoff.after(self.deaths)

    def _remove_note(self) -> None:
        # On a file system that is read-only the note stays: it names a process that has ended.
        with suppress(OSError):
            self.note.unlink(missing_ok=True)

    def reap(self, now: float) -> int:
        """Collect the ended process and schedule the next start; return the exit status."""
        assert self.process is not None
        status = self.process.wait()
        self.process = None
        self._remove_note()
        self.deaths = 1 if now - self._started_at >= self._backoff.calm else self.deaths + 1
        self.ready = False
        self.due = now + self._backoff.after(self.deaths)
        return status

    def stop(self, seconds: float) -> None:
        """Send SIGTERM to the process, and SIGKILL after ``seconds``."""
        if self.process is None:
            return
        self._signal(signal.SIGTERM)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self.process.wait()
        self.process = None
        self._remove_note()

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def tail(self) -> str:
        """Return the end of the log."""
        return tail(self.log)

    def _signal(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        try:
            # Not to the process group: sessions that JupyterHub started must keep running.
            os.kill(self.process.pid, number)
        except ProcessLookupError:
            return


def tail(log: Path, size: int = _TAIL_BYTES) -> str:
    """Return the last complete lines of a file; empty if it does not exist."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            end = file.tell()
            file.seek(max(0, end - size))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    whole = text if end <= size else text.partition("\n")[2]
    return "\n".join(whole.rstrip().splitlines()[-_TAIL_LINES:])


def _opened(log: Path) -> BinaryIO:
    """Open a log for appending; where that fails, what is written is dropped."""
    try:
        rotate(log)
        return log.open("ab")
    except OSError:
        return Path(os.devnull).open("ab")


def rotate(log: Path, limit: int = _ROTATE_BYTES) -> None:
    """Move a large log aside; one old log is kept."""
    if log.exists() and log.stat().st_size > limit:
        log.replace(log.with_suffix(".log.1"))
