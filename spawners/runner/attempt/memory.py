"""Measure the memory of a job's processes, and detect kills by the system for memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_CGROUPS: Final = Path("/sys/fs/cgroup")
_NO_LIMIT: Final = 1 << 60
"""Control groups of version 1 write a number above this for no limit."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def descendants(pid: int, *others: int) -> Iterator[int]:
    """Yield the pids of other processes and of all descendants, each once.

    Processes that end meanwhile may be missing.
    """
    seen = {pid}
    parents = [pid]
    for other in others:
        parents.append(other)
        seen.add(other)
        yield other
    while parents:
        parent = parents.pop()
        try:
            threads = list((_PROC / str(parent) / "task").iterdir())
        except OSError:
            continue
        for thread in threads:
            try:
                children = [int(word) for word in (thread / "children").read_text().split()]
            except OSError:
                continue
            new = [child for child in children if child not in seen]
            seen.update(new)
            parents.extend(new)
            yield from new


def used_bytes(limit: int, pid: int, *others: int) -> int:
    """Return the memory of other processes and of all descendants, without ``pid``.

    Up to the limit it is the sum of resident memory, which is read fast. Above it, what processes
    share counts once: a fork shares nearly everything with its parent.
    """
    found = list(descendants(pid, *others))
    most = sum(map(_resident, found))
    return most if most <= limit else sum(map(_proportional, found))


def _proportional(pid: int) -> int:
    """Return the memory of a process, with its part of what it shares (proc_pid_smaps(5))."""
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return _resident(pid)


def _resident(pid: int) -> int:
    try:
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


class KillCounter:
    """Reads the kernel's count of kills for memory in this process's control group.

    Attributes:
        path: the file with the count; None if the system has none.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._marks: list[int] = []
        self.mark()

    def mark(self) -> None:
        """Record the count; the last five records show whether a kill has just happened."""
        self._marks = [*self._marks, self._read()][-5:]

    def has_just_killed(self) -> bool:
        """Whether the count has risen within about a second."""
        return self._read() > self._marks[0]

    def peak_and_limit(self) -> tuple[int, int]:
        """Return the most memory and the limit of the control group in bytes; 0 if unknown."""
        if self.path is None:
            return 0, 0
        names = ("memory.peak", "memory.max")
        if self.path.name == "memory.oom_control":
            names = ("memory.max_usage_in_bytes", "memory.limit_in_bytes")
        peak, limit = (_bytes(self.path.with_name(name)) for name in names)
        return peak, limit

    def _read(self) -> int:
        if self.path is None:
            return 0
        try:
            lines = self.path.read_text().splitlines()
        except OSError:
            return 0
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


def _bytes(file: Path) -> int:
    try:
        value = int(file.read_text())
    except (OSError, ValueError):  # ``max``: no limit
        return 0
    return value if value < _NO_LIMIT else 0


def kill_counter() -> KillCounter:
    """Return the counter of the control group of this process and its children."""
    try:
        lines = (_PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return KillCounter(None)
    for line in lines:
        number, controllers, group = line.split(":", 2)
        if "memory" in controllers.split(","):
            file = _CGROUPS / "memory" / group.lstrip("/") / "memory.oom_control"
        elif number == "0":
            file = _CGROUPS / group.lstrip("/") / "memory.events"
        else:
            continue
        if file.exists():
            return KillCounter(file)
    return KillCounter(None)
