"""CPU, memory and device use of an attempt over time: a bounded series of points.

A series has at most ``MOST_POINTS`` points. When an attempt becomes longer than they cover, pairs
of points are merged: a job of a day has the resolution of some minutes, a short one of seconds.
Times are seconds since the grant of the lease, which a step of the clock does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

MOST_POINTS: Final = 240
FIRST_SECONDS: Final = 5.0
"""Seconds between two points of a short attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReading:
    """The processes of a lease at one moment.

    Attributes:
        cpu_seconds: CPU time from an arbitrary start; it never falls.
        memory_bytes: memory in use.
        waiting_seconds: time that runnable threads have waited for a core, from an arbitrary
            start; None if the engine does not measure it.
        throttled_seconds: time in which the engine has held them at their CPU limit, from an
            arbitrary start; None if it does not measure it.
    """

    cpu_seconds: float
    memory_bytes: int
    waiting_seconds: float | None = None
    throttled_seconds: float | None = None

    def __add__(self, other: ProcessReading) -> ProcessReading:
        return ProcessReading(
            cpu_seconds=self.cpu_seconds + other.cpu_seconds,
            memory_bytes=self.memory_bytes + other.memory_bytes,
            waiting_seconds=_sum(self.waiting_seconds, other.waiting_seconds),
            throttled_seconds=_sum(self.throttled_seconds, other.throttled_seconds),
        )


def _sum(first: float | None, second: float | None) -> float | None:
    return first if second is None else second + (first or 0.0)


NO_USE: Final = ProcessReading(cpu_seconds=0.0, memory_bytes=0)
"""The sum of no readings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReading:
    """One device.

    Attributes:
        percent: mean of its use in the last seconds; None if the driver cannot measure it.
        used_bytes: its memory in use.
    """

    percent: float | None
    used_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePressure:
    """The share of the last minute in which some process of a node waited; None: not measured.

    Attributes:
        cores, disk, memory: what it waited for.
    """

    cores: float | None = None
    disk: float | None = None
    memory: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilizationReading:
    """What a backend measures of all leases, devices and nodes.

    Attributes:
        leases: by lease id; leases without data are missing.
        devices: by device id; simulated devices and devices without data are missing.
        pressure: by node; nodes without data are missing.
    """

    leases: Mapping[str, ProcessReading]
    devices: Mapping[str, DeviceReading]
    pressure: Mapping[str, NodePressure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilizationPoint:
    """Use in one interval; None for a value that was not measured.

    Attributes:
        cores: mean CPU use, in cores.
        memory_bytes: most memory in use.
        device_percent: mean use of the devices of the lease.
        device_bytes: most memory in use on its devices, together.
        readings: number of readings that the point consists of.
        waiting: mean number of runnable threads that waited for a core.
        throttled: mean part of the time in which a CPU limit held the processes.
    """

    cores: float | None = None
    memory_bytes: int | None = None
    device_percent: float | None = None
    device_bytes: int | None = None
    readings: int = 0
    waiting: float | None = None
    throttled: float | None = None


NOTHING: Final = UtilizationPoint()


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilizationSummary:
    """The figures of a whole attempt; None for what was not measured."""

    mean_cores: float | None = None
    peak_memory_bytes: int | None = None
    mean_device_percent: float | None = None
    peak_device_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilizationSeries:
    """The points of one attempt.

    Attributes:
        begins: of the first point, in seconds since the grant.
        seconds: length of the interval of each point.
    """

    begins: float = 0.0
    seconds: float = FIRST_SECONDS
    points: tuple[UtilizationPoint, ...] = ()

    @property
    def summary(self) -> UtilizationSummary:
        return UtilizationSummary(
            mean_cores=_mean(self.points, lambda point: point.cores),
            peak_memory_bytes=_most([point.memory_bytes for point in self.points]),
            mean_device_percent=_mean(self.points, lambda point: point.device_percent),
            peak_device_bytes=_most([point.device_bytes for point in self.points]),
        )

    def extended(
        self, since: float | None, until: float, point: UtilizationPoint
    ) -> UtilizationSeries:
        """Add a reading that holds from ``since`` (None: this moment only) to ``until``."""
        first = until if since is None else since
        series = self if self.points else replace(self, begins=max(0.0, first))
        while series._place(until) >= MOST_POINTS:
            series = series._coarser()
        points = list(series.points)
        # An interval belongs to the reading that covers its beginning.
        place, last = max(0, series._place(first)), max(0, series._place(until))
        points += [NOTHING] * (last + 1 - len(points))
        for number in range(min(place + 1, last), last + 1):
            points[number] = merged(points[number], point)
        return replace(series, points=tuple(points))

    def _place(self, at: float) -> int:
        return int((at - self.begins) // self.seconds)

    def _coarser(self) -> UtilizationSeries:
        pairs = zip(self.points[::2], [*self.points[1::2], NOTHING], strict=False)
        points = tuple(merged(first, second) for first, second in pairs)
        return replace(self, seconds=2 * self.seconds, points=points)


def merged(first: UtilizationPoint, second: UtilizationPoint) -> UtilizationPoint:
    """Return one point for the readings of two."""
    both = (first, second)
    return UtilizationPoint(
        cores=_mean(both, lambda point: point.cores),
        memory_bytes=_most([point.memory_bytes for point in both]),
        device_percent=_mean(both, lambda point: point.device_percent),
        device_bytes=_most([point.device_bytes for point in both]),
        readings=first.readings + second.readings,
        waiting=_mean(both, lambda point: point.waiting),
        throttled=_mean(both, lambda point: point.throttled),
    )


def _mean(
    points: Sequence[UtilizationPoint], value: Callable[[UtilizationPoint], float | None]
) -> float | None:
    """Return the mean, weighted by the number of readings."""
    known = [(found, point.readings) for point in points if (found := value(point)) is not None]
    weight = sum(readings for _, readings in known)
    return sum(found * readings for found, readings in known) / weight if weight else None


def _most(values: Sequence[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptUtilization:
    """The stored series of one attempt."""

    lease_id: str
    request_id: str
    epoch: int
    granted_at: float
    series: UtilizationSeries


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldDevices:
    """Devices that a request held, and what was measured of their use.

    Attributes:
        models: of the devices, one for each; empty for a device that the pool no longer has.
        simulated: whether all of them are simulated, so that their use cannot be measured.
        granted_at: seconds since the epoch.
        released_at: None while they are held.
    """

    owner: str
    group: str
    models: tuple[str, ...]
    simulated: bool
    granted_at: float
    released_at: float | None
    series: UtilizationSeries
