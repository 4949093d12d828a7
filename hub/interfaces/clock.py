"""The wall clock and the monotonic clock, with distinct types so that they cannot be mixed up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]
"""Returns seconds since the epoch (UTC); used for everything that is stored or shown."""


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """A reading of the monotonic clock, for intervals within the life of one process.

    It is not a number, so it cannot be stored or compared with epoch time.
    """

    seconds: float

    def __sub__(self, earlier: Instant) -> float:
        return self.seconds - earlier.seconds


MonotonicClock = Callable[[], Instant]


def monotonic() -> Instant:
    """Read the monotonic clock, which is never set and stops while the machine is suspended."""
    return Instant(time.monotonic())
