"""Is it still the same process: a mark that a recycled pid or a set clock cannot fake."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from .lease_processes import alive

PROC = Path("/proc")
_START_TICKS = 19
"""Position in ``/proc/PID/stat`` behind the command's name."""


def process_identity(pid: int) -> str:
    """Name this process for good, or "" where there is none.

    Boot id and start time in clock ticks since the boot: unlike a time of day, they stay the
    same when the clock is set.
    """
    try:
        stat = (PROC / str(pid) / "stat").read_text(errors="replace")
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    # The name may hold blanks and parentheses: what follows its last one is regular.
    return f"{boot}:{stat.rpartition(')')[2].split()[_START_TICKS]}"


def still_alive(pid: int, mark: str) -> bool:
    """Whether the process with this mark still runs; a zombie does not."""
    try:
        process = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return False
    return process_identity(pid) == mark and alive(process)


def environment_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty if it is not to be had."""
    try:
        raw = (PROC / str(pid) / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return {}
    pairs = (entry.partition(b"=") for entry in raw.split(b"\0") if b"=" in entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
