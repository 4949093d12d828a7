"""Convert between Carrel's time limits and the durations of Slurm."""

from __future__ import annotations

import math
from typing import Final

_GRACE_MINUTES: Final = 2
"""Carrel ends a job at its time limit; Slurm does so later, in case the service is down then."""


def time_limit(seconds: int) -> int:
    """Return Slurm's time limit in minutes for a time limit of Carrel."""
    return math.ceil(seconds / 60) + _GRACE_MINUTES


def seconds_of(text: str) -> float:
    """Read a duration of Slurm, ``[DAYS-]HOURS:MINUTES:SECONDS`` or ``MINUTES:SECONDS``."""
    days, _, clock = text.rpartition("-")
    seconds = 0.0
    for part in clock.split(":"):
        seconds = seconds * 60 + float(part or 0)
    return seconds + 86400 * int(days or 0)
