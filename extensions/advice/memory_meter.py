"""Peak memory of a step, and how much of it this process may use.

With a CUDA device of PyTorch it is the memory of the device, as PyTorch counts it; else the peak of
the resident memory of this process (``VmHWM``), which Linux resets on request (proc_pid_clear_refs
(5)). Loader processes are not counted.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Final

_PROC: Final = Path("/proc")
_CGROUPS: Final = Path("/sys/fs/cgroup")
_NO_LIMIT: Final = 1 << 60
"""Control groups of version 1 write a number above this for no limit."""


class MemoryMeter:
    """Measures the peak memory of what runs between ``reset`` and ``peak``.

    Attributes:
        kind: ``device`` or ``process``.
    """

    def __init__(self) -> None:
        self._cuda = cuda()
        self.kind = "process" if self._cuda is None else "device"

    def reset(self) -> None:
        """Free what is not in use, and forget the peak so far."""
        gc.collect()
        if self._cuda is not None:
            self._cuda.empty_cache()
            self._cuda.reset_peak_memory_stats()
            return
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        with suppress(OSError):
            (_PROC / "self" / "clear_refs").write_text("5")

    def peak(self) -> int:
        """Return the bytes of the peak since ``reset``; 0 if the system does not tell."""
        if self._cuda is not None:
            return int(self._cuda.max_memory_reserved())
        return status_bytes("self", "VmHWM")

    def limit(self) -> int:
        """Return how large the peak may become; 0 if unknown."""
        if self._cuda is None:
            return process_limit()
        free, _ = self._cuda.mem_get_info()
        return int(free) + int(self._cuda.memory_reserved())


def cuda() -> ModuleType | None:
    """Return ``torch.cuda`` if this process has imported PyTorch and there is a device."""
    torch = sys.modules.get("torch")
    found: ModuleType | None = getattr(torch, "cuda", None)
    return found if found is not None and found.is_available() else None


def process_limit() -> int:
    """Return how many bytes this process may have resident, with what it has now; 0 if unknown.

    The smallest of what the control groups of this process leave, and of what is available on the
    machine. Files in the page cache are given up for it, and so do not count as used.
    """
    own = status_bytes("self", "VmRSS")
    left = [limit - used for limit, used in _groups() if limit]
    with suppress(OSError, StopIteration, ValueError, IndexError):
        lines = (_PROC / "meminfo").read_text().splitlines()
        line = next(each for each in lines if each.startswith("MemAvailable:"))
        left.append(int(line.split()[1]) << 10)
    return max(0, min(left)) + own if left and own else 0


def status_bytes(process: str, name: str) -> int:
    """Return a value of ``/proc/PID/status`` in bytes; 0 if it cannot be read."""
    with suppress(OSError, StopIteration, ValueError, IndexError):
        lines = (_PROC / process / "status").read_text().splitlines()
        return int(next(each for each in lines if each.startswith(f"{name}:")).split()[1]) << 10
    return 0


def _groups() -> Iterator[tuple[int, int]]:
    """Yield limit and use of each control group of this process; a limit of 0 for none."""
    try:
        lines = (_PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, group = line.split(":", 2)
        if "memory" in controllers.split(","):
            root, limit, anonymous = _CGROUPS / "memory", "memory.limit_in_bytes", "total_rss"
        elif number == "0":
            root, limit, anonymous = _CGROUPS, "memory.max", "anon"
        else:
            continue
        # Inside a container the path may be that of the host: its own group is then the root.
        folder = root / group.lstrip("/")
        while folder != root and not folder.exists():
            folder = folder.parent
        while True:
            yield _number(folder / limit), _statistic(folder / "memory.stat", anonymous)
            if folder == root:
                break
            folder = folder.parent


def _number(file: Path) -> int:
    try:
        value = int(file.read_text())
    except (OSError, ValueError):  # ``max``: no limit
        return 0
    return value if value < _NO_LIMIT else 0


def _statistic(file: Path, name: str) -> int:
    with suppress(OSError, StopIteration, ValueError, IndexError):
        lines = file.read_text().splitlines()
        return int(next(each for each in lines if each.split()[0] == name).split()[1])
    return 0
