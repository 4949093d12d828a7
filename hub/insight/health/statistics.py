"""Small robust statistics for the detectors: a cumulative sum, a window, a slow baseline."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class CumulativeSum:
    """Page's one-sided cumulative sum, which finds a small lasting shift fast.

    E. S. Page, Continuous Inspection Schemes, Biometrika 41 (1954).

    Attributes:
        slack: what is subtracted from each value: half of the smallest shift to be found.
        threshold: the sum above which there is a shift.
        most: values are cut off here, so that a single outlier is no shift.
    """

    slack: float
    threshold: float
    most: float
    total: float = 0.0
    _above: bool = False

    def add(self, value: float) -> bool:
        """Add a value; return whether the sum is above the threshold, or was and is not 0 yet."""
        self.total = max(0.0, self.total + min(value, self.most) - self.slack)
        # A device that recovers is in order again after as many good values.
        self.total = min(self.total, 2 * self.threshold)
        self._above = self.total > self.threshold or (self._above and self.total > 0.0)
        return self._above


@dataclass(slots=True)
class RecentShare:
    """How many of the last ``size`` observations were true.

    Attributes:
        size: number of observations.
        least: how many of them must be true.
    """

    size: int
    least: int
    _seen: deque[bool] = field(default_factory=deque)

    def add(self, value: bool) -> bool:
        """Add an observation; return whether enough were true."""
        self._seen.append(value)
        if len(self._seen) > self.size:
            self._seen.popleft()
        return sum(self._seen) >= self.least

    @property
    def mostly(self) -> bool:
        """Whether at least half of them were true."""
        return 2 * sum(self._seen) >= self.size


@dataclass(slots=True)
class Baseline:
    """The usual value of a reading: the median of the first ones, which then changes slowly.

    Attributes:
        first: number of values before there is a baseline.
        rate: share of each further difference by which it moves.
        step: further differences are cut off here, so that a fault does not become the usual.
    """

    first: int
    rate: float
    step: float
    value: float | None = None
    _begin: list[float] = field(default_factory=list)

    def add(self, value: float) -> None:
        if self.value is not None:
            difference = max(-self.step, min(self.step, value - self.value))
            self.value += self.rate * difference
            return
        self._begin.append(value)
        if len(self._begin) >= self.first:
            self.value = statistics.median(self._begin)
            self._begin.clear()


def median_of(values: Iterable[float], *, least: int) -> float | None:
    """Return the median; None of fewer than ``least`` values."""
    known = list(values)
    return statistics.median(known) if len(known) >= least else None
