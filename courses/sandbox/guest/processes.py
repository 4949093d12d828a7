"""Find, measure and end the processes of a sandbox, from its first process."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Final

from . import isolation

_PATIENCE_SECONDS: Final = 5.0
_LEAST_FREE: Final = 0.03
"""Part of the machine's memory; with less available, running cells are ended."""


def end_all_but(kept: set[int]) -> None:
    """Kill all processes but these. They are stopped first, in one call, so that none forks.

    Raises:
        TimeoutError: a process does not end.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGSTOP)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while others := [pid for pid in _alive() if pid not in kept]:
        for pid in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _reap()
        if time.monotonic() > deadline:
            raise TimeoutError(f"Processes {others} do not die.")
    for pid in kept:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _alive() -> list[int]:
    """All process IDs but this one's and init's, without zombies."""
    mine = {1, os.getpid()}
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if pid not in mine and _state(pid) not in "ZX"]


def _state(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:  # its name may be any bytes
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def memory(pid: int) -> int:
    """Bytes of anonymous and shared memory of a process, including what it shares by forks."""
    try:
        with open(f"/proc/{pid}/status", errors="replace") as file:
            return sum(
                int(line.split()[1]) * 1024
                for line in file
                if line.startswith(("RssAnon:", "RssShmem:"))
            )
    except OSError:
        return 0


def over_memory(base: int, most: float, paused: set[int]) -> bool:
    """Whether running processes use more than ``most`` bytes, each beyond ``base``, with files.

    Without a cgroup the memory of paused snapshots is unknown: the free memory bounds it.
    """
    used = sum(max(0, memory(pid) - base) for pid in _alive() if pid not in paused)
    disk = os.statvfs(isolation.HOME)
    used += (disk.f_blocks - disk.f_bfree) * disk.f_frsize
    return used > most or _free() < _LEAST_FREE


def _free() -> float:
    with open("/proc/meminfo") as file:
        found = {line.split(":")[0]: float(line.split()[1]) for line in file}
    return found["MemAvailable"] / found["MemTotal"]


def killed_for_memory() -> int:
    """Out-of-memory kills in this cgroup; 0 where none is visible, as in bubblewrap."""
    for path in ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events"):
        with contextlib.suppress(OSError), open(path) as file:
            counts = dict(line.split() for line in file)
            return int(counts.get("oom_kill", 0))
    return 0
