"""Identities of processes that survive reused pids; finding and stopping leased processes.

All data comes from /proc. A process is identified by its pid, the tick of its start and the
boot id: none of these depends on a clock that can be set.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from ..files.private_file import write_private

_PROC = Path("/proc")
_POLL_SECONDS = 0.05
_SHOWN = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """The identity of one process, which is never reused."""

    pid: int
    ticks: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Identify a running process; None if there is none (a zombie does not count)."""
        try:
            stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
        except OSError:
            return None
        # The command name is in parentheses and may contain any character, also spaces.
        state, *rest = stat.rpartition(")")[2].split()
        if state in {"Z", "X"}:
            return None
        return cls(pid=pid, ticks=int(rest[18]), boot=_boot())

    @property
    def alive(self) -> bool:
        return type(self).of(self.pid) == self

    @property
    def command(self) -> str:
        """The command line for messages; empty if it cannot be read."""
        return command_of(self.pid)

    def send(self, number: signal.Signals) -> None:
        """Send a signal if the process is still alive."""
        if self.alive:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return

    def save(self, path: Path) -> None:
        write_private(path, json.dumps(asdict(self)) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """Load an identity; None if the file is missing or damaged."""
        try:
            return cls(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedProcess:
    """A process that runs on a lease."""

    process: ProcessId
    lease_id: str


def command_of(pid: int) -> str:
    """Return the command line of a process for messages; empty if it cannot be read."""
    try:
        raw = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ""
    text = raw.replace(b"\0", b" ").decode(errors="replace").strip()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def pids() -> Iterator[int]:
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            yield int(entry.name)


def leased(state_root: Path) -> tuple[LeasedProcess, ...]:
    """Return all processes that run on a lease of the installation in this folder."""
    root = os.fsencode(state_root)
    found = []
    for pid in pids():
        environment = _environment(pid)
        lease = environment.get(b"CARREL_LEASE")
        if lease and environment.get(b"CARREL_STATE") == root:
            process = ProcessId.of(pid)
            if process is not None:
                found.append(LeasedProcess(process=process, lease_id=os.fsdecode(lease)))
    return tuple(found)


def stop_all(
    find: Callable[[], Iterable[ProcessId]], steps: Iterable[tuple[signal.Signals, float]]
) -> tuple[ProcessId, ...]:
    """Signal the processes that ``find`` returns until there are none; return the remaining ones.

    A step is a signal and the seconds that it may take. The set is looked up repeatedly, since
    a process may start others while it is stopped.
    """
    left: tuple[ProcessId, ...] = tuple(find())
    for number, seconds in steps:
        signalled: set[ProcessId] = set()
        deadline = time.monotonic() + seconds
        while left:
            for process in left:
                if process not in signalled:
                    process.send(number)
                    signalled.add(process)
            if time.monotonic() >= deadline:
                break
            time.sleep(_POLL_SECONDS)
            left = tuple(find())
    return left


def _environment(pid: int) -> dict[bytes, bytes]:
    """Return the environment; empty for a process of another account, or one that has ended."""
    try:
        raw = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return {}
    pairs = (item.partition(b"=") for item in raw.split(b"\0") if b"=" in item)
    return {key: value for key, _, value in pairs}


def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
