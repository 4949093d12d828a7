"""Check promised times in a way that holds on slow and busy machines."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from time import perf_counter

_QUIET_SECONDS = 0.08
"""How long the reference program takes on an idle machine."""


def in_time(measure: Callable[[], Mapping[str, float]], limits: Mapping[str, float]) -> None:
    """Assert that one of three measurements is within all limits.

    A machine that pauses for a moment exceeds a limit, but not three times in a row. The limits of
    a machine that is n times as slow at the moment are n times as long.

    Args:
        measure: runs once and returns the seconds of each step.
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
    """Return how many times as long as on an idle machine a compute-bound program takes."""
    began = perf_counter()
    for _ in range(3):
        subprocess.run([sys.executable, "-S", "-c", "import asyncio"], check=True)
    return max(1.0, (perf_counter() - began) / 3 / _QUIET_SECONDS)
