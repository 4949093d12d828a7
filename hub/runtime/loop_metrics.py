"""Metrics of the scheduling loop: the time of the last cycle, and a histogram of durations."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from threading import Lock

from ..interfaces.clock import Instant, MonotonicClock, monotonic

CYCLE_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histogram buckets, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycles:
    """The histogram of all cycles since the start.

    Attributes:
        within: the number of cycles that took at most as long as each of ``CYCLE_BOUNDS``.
        count: the number of completed cycles.
        seconds: the sum of their durations.
        failed: the number of failed cycles.
    """

    within: tuple[int, ...]
    count: int
    seconds: float
    failed: int


class LoopMetrics:
    """Written by the loop, read by metrics and readiness checks; thread-safe."""

    def __init__(self, clock: MonotonicClock = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._last: Instant | None = None
        self._buckets = [0] * (len(CYCLE_BOUNDS) + 1)
        self._seconds = 0.0
        self._failed = 0

    def record_cycle(self, seconds: float) -> None:
        """Record a completed cycle with its duration."""
        with self._lock:
            self._last = self._clock()
            self._buckets[bisect_left(CYCLE_BOUNDS, seconds)] += 1
            self._seconds += seconds

    def record_failure(self) -> None:
        """Record a cycle that ended with an error."""
        with self._lock:
            self._failed += 1

    def since_cycle(self) -> float | None:
        """Return the seconds since the last completed cycle; None before the first."""
        with self._lock:
            return None if self._last is None else self._clock() - self._last

    def cycles(self) -> Cycles:
        """Return the histogram."""
        with self._lock:
            within, total = list[int](), 0
            for number in self._buckets:
                total += number
                within.append(total)
            return Cycles(
                within=tuple(within[:-1]), count=total, seconds=self._seconds, failed=self._failed
            )
