"""Steady growth of memory over time, as that of a leak or of a list that is never emptied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

_BINS: Final = 8
_END: Final = 3
"""Steps between bins at either end of the window."""
_STILL: Final = 0.5
"""Least growth at the end of the window, as a part of that at its beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyGrowth:
    """How memory grows.

    Attributes:
        rate: bytes in a second.
        grown: bytes from the lowest value of the first part of the window to that of the last one.
        low: the lowest value of the first part.
        first, final: growth over the first and the last three steps between parts.
    """

    rate: float
    grown: float
    low: float
    first: float
    final: float

    def levels_off(self, room: float) -> bool:
        """Whether growth that slows down as it did, by a constant factor, ends within ``room``
        more bytes."""
        if self.final >= self.first:
            return False
        factor = float((self.final / self.first) ** (1 / (_BINS - 1 - _END)))
        return self.final / _END * factor**2 / (1 - factor) < room


def steady_growth(times: Sequence[float], values: Sequence[float]) -> SteadyGrowth | None:
    """Return the growth if the minima of equal parts of the window grow, and the last ones still
    do; None otherwise.

    Minima, so that memory which is freed now and then counts only where it is not given back. A
    cache that fills up grows ever more slowly, and does not grow steadily.

    Args:
        times: of the values, in seconds, in their order.
        values: bytes.
    """
    count = len(values)
    if count < 2 * _BINS:
        return None
    parts = [values[count * n // _BINS : count * (n + 1) // _BINS] for n in range(_BINS)]
    lows = [min(part) for part in parts]
    steps = [later - earlier for earlier, later in pairwise(lows)]
    grown = lows[-1] - lows[0]
    rises = sum(step > 0 for step in steps)
    if grown <= 0 or rises < len(steps) - 1 or min(steps) < -0.1 * grown:
        return None
    first, final = sum(steps[:_END]), sum(steps[-_END:])
    # The width of a step: from one minimum to the next.
    width = (times[-1] - times[0]) / _BINS
    rate = median(steps) / width if width > 0 else 0.0
    if final <= 0 or final < _STILL * first or rate <= 0:
        return None
    return SteadyGrowth(rate=rate, grown=grown, low=lows[0], first=first, final=final)
