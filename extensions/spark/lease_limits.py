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
