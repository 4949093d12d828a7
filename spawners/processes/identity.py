"""Identify a process independently of recycled pids and of changes of the system clock."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from .lease_processes import alive

PROC = Path("/proc")
_START_TICKS = 19
"""Index in ``/proc/PID/stat`` after the command's name."""


def process_identity(pid: int) -> str:
    """Return a lasting identity of this process; empty if it does not exist.

    It consists of the boot id and the start time in clock ticks since boot, which do not change
    when the clock is set.
    """
    try:
        stat = (PROC / str(pid) / "stat").read_text(errors="replace")
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    # The process name may contain spaces and parentheses: parse after the last parenthesis.
    return f"{boot}:{stat.rpartition(')')[2].split()[_START_TICKS]}"


def still_alive(pid: int, identity: str) -> bool:
    """Whether the process with this identity still runs; False for a zombie."""
    try:
        process = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return False
    return process_identity(pid) == identity and alive(process)


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with; empty if it cannot be read."""
    try:
        raw = (PROC / str(pid) / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return {}
    pairs = (entry.partition(b"=") for entry in raw.split(b"\0") if b"=" in entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
