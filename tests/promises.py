"""Promises of seconds, held on machines that are slow or busy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from time import perf_counter

_QUIET_SECONDS = 0.08
"""What the yardstick takes on a machine that does nothing else."""


def in_time(measure: Callable[[], Mapping[str, float]], limits: Mapping[str, float]) -> None:
    """One of three tries keeps to all limits.

    A machine that stands still for a moment breaks a promise for us, but not three in a row. One
    that is n times as slow just now is given n times as long.

    Args:
        measure: does it once, and returns the seconds that each thing took.
    """
    tries: list[tuple[Mapping[str, float], float]] = []
    for _ in range(3):
        took, slow = measure(), 1.0
        assert took.keys() == limits.keys()
        if any(took[what] > limit for what, limit in limits.items()):
            slow = slowness()
        tries.append((took, slow))
        if all(took[what] <= limit * slow for what, limit in limits.items()):
            return
    raise AssertionError(f"not within {limits} (took, times as slow as usual): {tries}")


def slowness() -> float:
    """How many times as long as on a quiet machine a program takes that only computes."""
    began = perf_counter()
    for _ in range(3):
        subprocess.run([sys.executable, "-S", "-c", "import asyncio"], check=True)
    return max(1.0, (perf_counter() - began) / 3 / _QUIET_SECONDS)
