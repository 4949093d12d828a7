"""Metrics of the scheduling loop: when the last cycle ended, and how long cycles take."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from threading import Lock

from ..interfaces.clock import Instant, MonotonicClock, monotonic

CYCLE_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds, in seconds, of the classes into which cycles are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycles:
    """All cycles since the start: how many took at most as long as each of ``CYCLE_BOUNDS``."""

    within: tuple[int, ...]
    count: int
    seconds: float
    failed: int


class LoopMetrics:
    """Written by the loop, read by metrics and readiness checks; from any thread."""

    def __init__(self, clock: MonotonicClock = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._last: Instant | None = None
        self._classes = [0] * (len(CYCLE_BOUNDS) + 1)
        self._seconds = 0.0
        self._failed = 0

    def cycled(self, seconds: float) -> None:
        """A cycle was completed."""
        with self._lock:
            self._last = self._clock()
            self._classes[bisect_left(CYCLE_BOUNDS, seconds)] += 1
            self._seconds += seconds

    def failed(self) -> None:
        """A cycle ended with an error; the next one tries again."""
        with self._lock:
            self._failed += 1

    def since_cycle(self) -> float | None:
        """Seconds since the last completed one; None before the first."""
        with self._lock:
            return None if self._last is None else self._clock() - self._last

    def cycles(self) -> Cycles:
        with self._lock:
            within, total = list[int](), 0
            for number in self._classes:
                total += number
                within.append(total)
            return Cycles(
                within=tuple(within[:-1]), count=total, seconds=self._seconds, failed=self._failed
            )
