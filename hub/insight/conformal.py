"""Intervals that keep their coverage when the workload changes: adaptive conformal inference."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

MISSES = 0.1
"""The share of outcomes that may lie outside an interval."""
_STEP = 0.03
_LOWEST_LEVEL, _HIGHEST_LEVEL = -0.1, 0.5
"""The level stays in this range, so that it soon recovers from outcomes without sense."""
_KEPT = 1000
_LEAST_SCORES = 20
_UNCALIBRATED = 1.4
"""Widening, as a difference of logarithms, before enough outcomes are known: four times as long, or
a quarter."""
_MOST = 6.0


class AdaptiveConformal:
    """Widens or narrows intervals so that they contain 90 % of the outcomes.

    Gibbs and Candès, "Adaptive conformal inference under distribution shift", NeurIPS 2021. A score
    is how far an outcome lies outside its interval, negative inside (Romano, Patterson and Candès,
    "Conformalized quantile regression", NeurIPS 2019). The widening is a quantile of the last
    scores, and its level rises after each miss and falls after each hit, so that the share of
    misses is the intended one in the long run whatever the outcomes are.
    """

    def __init__(self) -> None:
        self._scores: deque[float] = deque()
        self._sorted: list[float] = []
        self._level = MISSES

    @property
    def calibrated(self) -> bool:
        return len(self._scores) >= _LEAST_SCORES

    @property
    def widening(self) -> float:
        """What to add at both ends of an interval, as a difference of logarithms."""
        if not self.calibrated:
            return _UNCALIBRATED
        count = len(self._sorted)
        rank = int((1.0 - self._level) * (count + 1))
        if rank >= count:
            # The level asks for more than was ever seen.
            beyond = max(0.0, -self._level) + 1.0 / count
            return min(_MOST, self._sorted[-1] + beyond)
        return self._sorted[max(0, rank)]

    def observe(self, score: float, *, missed: bool) -> None:
        """Learn from an outcome.

        Args:
            score: how far it lay outside the interval before the widening, negative inside.
            missed: whether it lay outside the interval that was given.
        """
        if self.calibrated:
            level = self._level + _STEP * (MISSES - missed)
            self._level = min(_HIGHEST_LEVEL, max(_LOWEST_LEVEL, level))
        self._scores.append(score)
        insort(self._sorted, score)
        if len(self._scores) > _KEPT:
            del self._sorted[bisect_left(self._sorted, self._scores.popleft())]
