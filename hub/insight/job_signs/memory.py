"""Find memory that grows steadily, and predict when it reaches its limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ...records.json_value import Json
from ...records.leases import SignKind
from ...records.utilization import UtilizationPoint
from ..memory_growth import steady_growth
from .findings import JobHistory, SignFinding

_SHORTEST: Final = 900.0
"""Seconds that memory must have grown for."""
_LEAST_GROWTH: Final = 64 << 20
_LEAST_PART: Final = 0.05
"""Least growth over the window, as a part of the memory at its beginning."""
_WITHOUT_LIMIT: Final = 1 << 30
"""Least growth where the limit is unknown."""
_LONG: Final = 1800.0
_SOON: Final = 600.0
"""Growth over a shorter time than ``_LONG`` is a sign if it reaches the limit so soon."""
_DROPS: Final = 1.5
"""Least growth over the window, in falls that the memory has had before."""


def memory_signs(history: JobHistory) -> Iterator[SignFinding]:
    """Yield a sign for the memory of the processes and one for that of the devices."""
    yield from _growth(
        history,
        SignKind.MEMORY_GROWTH,
        lambda point: point.memory_bytes,
        history.memory_limit,
    )
    if history.devices:
        yield from _growth(
            history,
            SignKind.DEVICE_MEMORY_GROWTH,
            lambda point: point.device_bytes,
            history.device_memory,
        )


def _growth(
    history: JobHistory,
    kind: SignKind,
    value: Callable[[UtilizationPoint], float | None],
    limit: int,
) -> Iterator[SignFinding]:
    """Yield a sign if memory has grown steadily, by enough and for long enough."""
    seconds = max(_SHORTEST, history.age / 2)
    window = history.window(seconds, value)
    if window is None:
        return
    growth = steady_growth(window.times, window.values)
    if growth is None or growth.grown < max(_LEAST_GROWTH, _LEAST_PART * growth.low):
        return
    if growth.grown < _DROPS * _largest_fall(history, value):
        return
    rate, last = growth.rate, window.values[-1]
    figures: dict[str, Json] = {
        "bytes": int(last),
        "bytes_per_hour": rate * 3600,
        "grown": int(growth.grown),
    }
    if limit > 0:
        left = max(0.0, limit - last) / rate
        most = history.seconds_left if seconds >= _LONG else min(_SOON, history.seconds_left)
        if left > most or growth.levels_off(limit - last):
            return
        figures |= {"limit": limit, "reached_in": left}
    elif growth.grown < _WITHOUT_LIMIT or seconds < _LONG:
        return
    yield SignFinding(kind=kind, since=window.times[0], figures=figures)


def _largest_fall(history: JobHistory, value: Callable[[UtilizationPoint], float | None]) -> float:
    """Return the most that the memory has fallen below an earlier value."""
    peak, most = 0.0, 0.0
    for point in history.use.points:
        found = value(point)
        if found is not None:
            peak = max(peak, found)
            most = max(most, peak - found)
    return most
