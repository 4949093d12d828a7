"""Device-hours that a group may use in a week or a term, as Slurm's ``GrpTRESMins`` limits them.

Unlike there a period begins anew by the calendar, and use before it does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Period(StrEnum):
    """After which a budget is full again."""

    WEEK = "week"
    TERM = "term"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a group and those below it may use in each period, in device-seconds."""

    device_seconds: float
    period: Period
