"""The history of one attempt, and what is found in it. Times are seconds since the grant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from ...records.json_value import Json
from ...records.leases import SignKind
from ...records.utilization import UtilizationPoint, UtilizationSeries

_COVERED: Final = 0.7
"""Part of a window that must have been measured for a verdict."""
_FEWEST: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSeries:
    """The values that a job has reported under one name, in the order of the reports.

    Attributes:
        steps, values, times: one for each report; values include NaN and infinities.
    """

    steps: Sequence[int]
    values: Sequence[float]
    times: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHistory:
    """What is known of an attempt.

    Attributes:
        age: seconds since the grant.
        devices: number of devices that it holds.
        seconds_left: until its time limit.
        memory_limit: bytes of memory that it may use; 0 if unknown.
        device_memory: bytes of memory of its devices together; 0 if unknown.
        node_cores: cores of its node; None if unknown.
        last_output: when it last wrote output, a report, progress or a file; None if unknown.
    """

    age: float
    devices: int = 0
    seconds_left: float = 0.0
    memory_limit: int = 0
    device_memory: int = 0
    node_cores: int | None = None
    last_output: float | None = None
    use: UtilizationSeries = field(default_factory=UtilizationSeries)
    metrics: Mapping[str, MetricSeries] = field(default_factory=dict)

    def window(
        self, seconds: float, value: Callable[[UtilizationPoint], float | None]
    ) -> MeasuredWindow | None:
        """Return a value in the last seconds; None where too little of them was measured."""
        return MeasuredWindow.of(self.use, self.age, seconds, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignFinding:
    """A sign.

    Attributes:
        since: when it began.
        figures: what was measured.
    """

    kind: SignKind
    since: float
    figures: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredWindow:
    """A measured value over time.

    Attributes:
        times: middles of intervals, increasing.
        values: one for each time.
    """

    times: Sequence[float]
    values: Sequence[float]

    @classmethod
    def of(
        cls,
        use: UtilizationSeries,
        age: float,
        seconds: float,
        value: Callable[[UtilizationPoint], float | None],
    ) -> MeasuredWindow | None:
        begins = age - seconds
        if begins < 0 or use.seconds <= 0:
            return None
        # The newest reading is up to an interval old.
        first = max(0, int((begins - use.begins) // use.seconds))
        found = [
            (use.begins + (number + 0.5) * use.seconds, measured)
            for number, point in enumerate(use.points[first:], first)
            if (measured := value(point)) is not None
        ]
        expected = seconds / use.seconds
        if len(found) < max(_FEWEST, _COVERED * expected):
            return None
        times, values = zip(*found, strict=True)
        # A clock that went back, or a stalled service: the newest reading is too old.
        if times[-1] < age - max(0.3 * seconds, 3 * use.seconds) or times[0] > age:
            return None
        return cls(times=times, values=values)

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    @property
    def spread(self) -> float:
        """Standard deviation."""
        mean = self.mean
        return float((sum((each - mean) ** 2 for each in self.values) / len(self.values)) ** 0.5)

    def parts(self, count: int) -> list[float]:
        """Return the means of equal parts, in their order: a phase that has ended is in some."""
        size = len(self.values)
        found = (self.values[size * n // count : size * (n + 1) // count] for n in range(count))
        return [sum(part) / len(part) for part in found if part]

    @property
    def relative_range(self) -> float:
        """Largest minus smallest value, as a part of the largest; 0 if all are 0."""
        most = max(self.values)
        return (most - min(self.values)) / most if most > 0 else 0.0


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def noise_of(values: Sequence[float]) -> float:
    """Return the standard deviation of the noise of a slowly changing series.

    From the median absolute difference of neighbours, which outliers and a trend hardly change.
    """
    if len(values) < 2:  # noqa: PLR2004
        return 0.0
    differences = [abs(later - earlier) for earlier, later in pairwise(values)]
    return 1.4826 * median(differences) / 2**0.5
