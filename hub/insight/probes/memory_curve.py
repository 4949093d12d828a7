"""Peak memory as a function of the batch, extrapolated from smaller batches."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

NOISE_BYTES: Final = 4 << 20
"""Peaks of equal steps of a process differ by about this much."""
_CONVEX: Final = 1.05
_LINEAR: Final = 1.10
_LEAST_SPAN: Final = 4
_POINTS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCurve:
    """Bytes as a polynomial of the batch, through its last measured points.

    A line fits a step whose memory is that of the model and of the activations. Where the last
    slope is steeper than the one before (a matrix of all pairs of a batch), it is a parabola.

    Attributes:
        origin: the largest measured batch.
        bytes_at_origin, slope, bend: the coefficients round ``origin``.
        trusted: whether three points that span a factor of four are on one line, so that the next
            check may be far above them.
    """

    origin: int
    bytes_at_origin: float
    slope: float
    bend: float = 0.0
    trusted: bool = False

    @classmethod
    def fit(cls, points: Iterable[tuple[int, int]]) -> Self | None:
        """Return the curve through pairs of batch and bytes.

        None: there are fewer than three batches, or their memory does not grow by more than noise,
        or falls between them by more than it grows.
        """
        last = sorted({batch: used for batch, used in points if used > 0}.items())[-_POINTS:]
        if len(last) < _POINTS or last[-1][1] - last[0][1] < 2 * NOISE_BYTES:
            return None
        (x0, y0), (x1, y1), (x2, y2) = last
        before, after = (y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1)
        noise = NOISE_BYTES / (x2 - x1)
        if after > _CONVEX * before + noise:
            bend = (after - before) / (x2 - x0)
            slope = after + bend * (x2 - x1)
            return cls(origin=x2, bytes_at_origin=y2, slope=slope, bend=bend)
        slope, level, residual = _line(last)
        if slope <= 0:
            return None
        return cls(
            origin=x2,
            # The line must not be below a measured point.
            bytes_at_origin=level + slope * x2 + residual,
            slope=slope,
            trusted=after * _LINEAR + noise >= before and x2 >= _LEAST_SPAN * x0,
        )

    def bytes_of(self, batch: int) -> float:
        """Return the peak memory of a batch."""
        apart = batch - self.origin
        return max(0.0, self.bytes_at_origin + apart * (self.slope + self.bend * apart))

    def largest(self, limit: float) -> int:
        """Return the largest batch that needs at most ``limit`` bytes; 0 if none does."""
        room = limit - self.bytes_at_origin
        if self.bend <= 0:
            return max(0, self.origin + math.floor(room / self.slope))
        inside = self.slope**2 + 4 * self.bend * room
        if inside < 0:
            return 0
        apart = (math.sqrt(inside) - self.slope) / (2 * self.bend)
        return max(0, self.origin + math.floor(apart))


def most_bytes(points: Iterable[tuple[int, int]], batch: int) -> float:
    """Return a bound of the peak memory of a batch where too little is known for a curve.

    No step is expected to need memory that grows faster than with the square of the batch.

    Args:
        points: pairs of batch and bytes; infinite without any.
    """
    known = sorted(points)
    if not known:
        return math.inf
    (low, least), (top, used) = known[0], known[-1]
    if batch <= top:
        return used
    if low == top:
        return used * (batch / top) ** 2
    growth = max(2 * NOISE_BYTES, used - least)
    return used + growth * ((batch / top) ** 2 - 1) / (1 - (low / top) ** 2)


def _line(points: list[tuple[int, int]]) -> tuple[float, float, float]:
    """Return slope and level of the least-squares line, and its largest deviation below a point."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    level = mean_y - slope * mean_x
    return slope, level, max(0.0, *(y - level - slope * x for x, y in points))
