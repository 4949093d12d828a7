"""Create a cgroup for each sandbox, which limits its memory, processes and CPU.

Supports versions 1 and 2. Most unprivileged accounts cannot create cgroups: then each process has
its own limits, and the sandbox supervisor watches the memory of all of them.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..interface import SandboxLimits

ROOT: Final = Path("/sys/fs/cgroup")
FOLDER: Final = "carrel-sandboxes"
_PERIOD: Final = 100_000
_PATIENCE_SECONDS: Final = 3.0
_LEFTOVER_SECONDS: Final = 3600.0
_CONTROLLERS: Final = ("memory", "pids", "cpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cgroup:
    """Attributes:
    folders: one for each controller (version 1), or one for all (version 2).
    """

    folders: tuple[Path, ...]
    unified: bool

    def join(self, pid: int) -> None:
        """Add a process, and with it all its later children."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(pid))

    def out_of_memory(self) -> bool:
        name = "memory.events" if self.unified else "memory.oom_control"
        return _counted(self.folders[0] / name, "oom_kill") > 0

    def most_memory(self) -> int | None:
        name = "memory.peak" if self.unified else "memory.max_usage_in_bytes"
        try:
            return int((self.folders[0] / name).read_text())
        except OSError:
            return None

    def end(self) -> None:
        """Kill its processes and remove it. Safe to repeat."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        for folder in self.folders:
            while folder.exists() and time.monotonic() < deadline:
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    for pid in (folder / "cgroup.procs").read_text().split():
                        os.kill(int(pid), signal.SIGKILL)
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.002)


def remove_leftovers() -> None:
    """Remove empty cgroups that a killed service has left."""
    for folder in (ROOT / FOLDER, *(ROOT / each / FOLDER for each in _CONTROLLERS)):
        with contextlib.suppress(OSError):
            for left in folder.iterdir():
                if left.is_dir() and time.time() - left.stat().st_mtime > _LEFTOVER_SECONDS:
                    left.rmdir()


def make(limits: SandboxLimits) -> Cgroup | None:
    """Create a cgroup; None where this account has no right to."""
    name = secrets.token_hex(8)
    try:
        if (ROOT / "cgroup.controllers").exists():
            return _make_unified(name, limits)
        return _make_divided(name, limits)
    except OSError:
        return None


def _make_unified(name: str, limits: SandboxLimits) -> Cgroup | None:
    parent = ROOT / FOLDER
    parent.mkdir(exist_ok=True)
    wanted = " ".join(f"+{each}" for each in _CONTROLLERS)
    for folder in (ROOT, parent):
        (folder / "cgroup.subtree_control").write_text(wanted)
    made = parent / name
    made.mkdir()
    for file, value in (
        ("memory.max", str(limits.memory_bytes)),
        ("memory.swap.max", "0"),
        ("pids.max", str(limits.processes)),
        ("cpu.max", f"{int(limits.cpus * _PERIOD)} {_PERIOD}"),
    ):
        if (made / file).exists():
            (made / file).write_text(value)
    return Cgroup(folders=(made,), unified=True)


def _make_divided(name: str, limits: SandboxLimits) -> Cgroup | None:
    values = {
        "memory": (
            ("memory.limit_in_bytes", limits.memory_bytes),
            ("memory.memsw.limit_in_bytes", limits.memory_bytes),
        ),
        "pids": (("pids.max", limits.processes),),
        "cpu": (
            ("cpu.cfs_period_us", _PERIOD),
            ("cpu.cfs_quota_us", int(limits.cpus * _PERIOD)),
        ),
    }
    made = []
    for controller in _CONTROLLERS:
        if not (ROOT / controller).is_dir():
            continue
        folder = ROOT / controller / FOLDER / name
        folder.mkdir(parents=True)
        for file, value in values[controller]:
            if (folder / file).exists():
                (folder / file).write_text(str(value))
        made.append(folder)
    return Cgroup(folders=tuple(made), unified=False) if len(made) == len(_CONTROLLERS) else None


def _counted(path: Path, name: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    found = dict(line.split() for line in lines if len(line.split()) == 2)  # noqa: PLR2004
    return int(found.get(name, 0))
