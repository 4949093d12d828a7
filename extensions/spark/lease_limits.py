"""How many cores and how much memory the session or job that this process belongs to may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..advice.memory_meter import process_limit
from ..advice.thread_count import processors

_CGROUPS: Final = Path("/sys/fs/cgroup")
_MIB: Final = 1 << 20
PYTHON_PROCESS: Final = 400 * _MIB
"""A Python process of Spark with PyTorch, pandas, a small model and a batch of pictures."""
_RESERVE: Final = 512 * _MIB
"""The notebook's own process, and what the Java process uses beside its objects."""


def cores(environment: Mapping[str, str] = os.environ, *, groups: Path = _CGROUPS) -> int:
    """Return the number of cores: the smallest of affinity, control groups and Slurm's number."""
    bounds = [processors(), *_quotas(groups)]
    slurm = environment.get("SLURM_CPUS_PER_TASK", "")
    if slurm.isdecimal() and int(slurm):
        bounds.append(int(slurm))
    return max(1, min(bounds))


def memory_bytes(environment: Mapping[str, str] = os.environ) -> int:
    """Return the bytes that all processes of the session or job may use; 0 if unknown.

    The smaller of the job's memory limit, and of what control groups and the machine leave.
    """
    limit = environment.get("CARREL_MEMORY_BYTES", "")
    known = [process_limit(), int(limit) if limit.isdecimal() else 0]
    return min((each for each in known if each), default=0)


def cores_within_memory(present: int, limit: int, heap: int) -> int:
    """Return how many of the cores can have a Python process of Spark, one at least.

    Args:
        limit: bytes that all processes may use; 0 if unknown.
        heap: bytes for objects of the Java process.
    """
    if not limit:
        return present
    return max(1, min(present, (limit - heap - _RESERVE) // PYTHON_PROCESS))


def _quotas(root: Path) -> Iterator[int]:
    """Yield the whole cores that each control group of this process allows, where it has a limit.

    Half a core of time is a core for Spark, which needs one at least.
    """
    for group in (_own_group(root), root):
        with suppress(OSError, ValueError):
            quota, period = (group / "cpu.max").read_text().split()
            yield math.ceil(int(quota) / int(period))
        with suppress(OSError, ValueError):
            quota_us, period_us = (
                int((group / name).read_text())
                for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            )
            if quota_us > 0:
                yield math.ceil(quota_us / period_us)


def _own_group(root: Path) -> Path:
    """Return the folder of this process's control group of processor time."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, controllers, name = line.split(":", 2)
            if "cpu" in controllers.split(","):
                return root / "cpu" / name.lstrip("/")
            if number == "0":
                return root / name.lstrip("/")
    return root
