"""Idle holding: device-seconds on lease in which the devices did no measured work.

The rule is that of idle culling: what cannot be read does not count as idle. The use of simulated
devices cannot be measured; for them the CPU time of the lease decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from ..records.utilization import HeldDevices, UtilizationPoint
from ..scheduling.model.idleness import CPU_SHARE

IDLE_PERCENT = 1.0
"""Mean use of the devices of a lease, in percent, below which they did no work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleHolding:
    """What one user held in one group on one device model, in device-seconds.

    Attributes:
        idle: the part of ``measured`` in which the devices did no work.
    """

    owner: str
    group: str
    model: str
    measured: float
    idle: float


def idle_holding(
    held: Iterable[HeldDevices], *, since: float, until: float, now: float
) -> list[IdleHolding]:
    """Add up measured and idle device-seconds of a period by owner, group and device model.

    Each device of a lease counts as used or idle like the mean of its devices.
    """
    sums: dict[tuple[str, str, str], tuple[float, float]] = {}
    for each in held:
        end = min(until, now if each.released_at is None else each.released_at)
        measured, idle = _seconds(each, max(since, each.granted_at), end)
        for model in each.models:
            key = (each.owner, each.group, model)
            before = sums.get(key, (0.0, 0.0))
            sums[key] = (before[0] + measured, before[1] + idle)
    return [
        IdleHolding(owner=owner, group=group, model=model, measured=measured, idle=idle)
        for (owner, group, model), (measured, idle) in sums.items()
        if measured
    ]


def _seconds(held: HeldDevices, since: float, until: float) -> tuple[float, float]:
    """Return the measured and the idle seconds of a lease between two moments."""
    measured = idle = 0.0
    start = held.granted_at + held.series.begins
    for number, point in enumerate(held.series.points):
        first = start + number * held.series.seconds
        overlap = min(first + held.series.seconds, until) - max(first, since)
        was_idle = _is_idle(point, simulated=held.simulated) if overlap > 0 else None
        if was_idle is not None:
            measured += overlap
            idle += overlap if was_idle else 0.0
    return measured, idle


def _is_idle(point: UtilizationPoint, *, simulated: bool) -> bool | None:
    """Whether the devices did no work; None if that was not measured."""
    value, bound = (point.cores, CPU_SHARE) if simulated else (point.device_percent, IDLE_PERCENT)
    if not point.readings or value is None or not isfinite(value):
        return None
    return value < bound
