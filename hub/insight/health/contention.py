"""Tell whether a run was slow because its node was short of something else than devices.

A program that waits for a core, is held at a CPU limit, or waits for the disk takes longer on any
device. Such a run says nothing about its device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ...records.utilization import NodePressure, UtilizationPoint, UtilizationSeries

WAITING_PART: Final = 0.2
"""Part of the time of its runnable threads in which a run waited for a core, …"""
LEAST_WAITING: Final = 0.1
"""… and the threads that waited on average: a run that computes little cannot wait much."""
THROTTLED_PART: Final = 0.1
"""Part of the time for which a CPU limit held a run."""
DISK_PART: Final = 0.4
MEMORY_PART: Final = 0.2
"""Parts of the last minute of a run in which some process of the node waited for these."""


def contention(series: UtilizationSeries | None, pressure: NodePressure | None) -> str:
    """Return what a run waited for as a clause, as "its threads waited …"; empty if nothing.

    Args:
        series: the use of the run; its waits explain more than those of the whole node.
        pressure: on its node when it ended.
    """
    points = series.points if series is not None else ()
    throttled = _mean(points, lambda point: point.throttled)
    if throttled is not None and throttled >= THROTTLED_PART:
        return f"its CPU limit held it for {_percent(throttled)} of the time"
    waiting = _mean(points, lambda point: point.waiting)
    if waiting is not None and waiting >= LEAST_WAITING:
        part = waiting / (waiting + (_mean(points, lambda point: point.cores) or 0.0))
        if part >= WAITING_PART:
            return f"its threads waited for a core for {_percent(part)} of their time"
    if pressure is not None and (pressure.disk or 0.0) >= DISK_PART:
        return (
            f"processes of its node waited for the disk for {_percent(pressure.disk)} of a minute"
        )
    if pressure is not None and (pressure.memory or 0.0) >= MEMORY_PART:
        return (
            f"processes of its node waited for memory for {_percent(pressure.memory)} of a minute"
        )
    return ""


def _percent(part: float | None) -> str:
    return f"{100 * (part or 0.0):.0f} %"


def _mean(
    points: Sequence[UtilizationPoint], value: Callable[[UtilizationPoint], float | None]
) -> float | None:
    known = [found for point in points if (found := value(point)) is not None]
    return sum(known) / len(known) if known else None
