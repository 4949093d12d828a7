"""Measure what running sessions and jobs use of CPU, memory and devices.

One reading covers all leases of a node: a pass over its processes, or one call of the engine for
each container. Devices are as in the last inventory, so that the driver is not queried again. The
readings become further apart when they cost more than ``MOST_LOAD``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..records.leases import LeaseRecord
from ..records.requests import RequestFilter
from ..records.utilization import (
    FIRST_SECONDS,
    DeviceReading,
    NodePressure,
    ProcessReading,
    UtilizationPoint,
    UtilizationReading,
    UtilizationSeries,
)
from ..runtime.context import Context
from ..scheduling.model.states import State

MOST_LOAD = 0.004
"""Most CPU time of the readings, in cores for each running lease."""
STORE_SECONDS = 15.0
_GAP_INTERVALS = 3
"""A reading that is this many intervals late does not tell what happened before."""
_PRESSURE_SECONDS = 120.0
_BUSY_CORES = 0.5
_RUNNING = frozenset({State.RUNNING, State.STOPPING})
_ALL = 100_000


@dataclass(slots=True, kw_only=True)
class _Watched:
    """One lease: its node, its series, the last reading, and when the series was stored."""

    node: str
    series: UtilizationSeries
    at: float | None = None
    reading: ProcessReading | None = None
    stored_at: float = 0.0
    changed: bool = False


@dataclass(slots=True)
class UtilizationSampler:
    """Called by the loop in a thread of its own, never twice at the same time.

    Attributes:
        every: seconds between two readings.
    """

    context: Context
    every: float = FIRST_SECONDS
    _watched: dict[str, _Watched] = field(default_factory=dict)
    _pressure: Mapping[str, tuple[float, NodePressure]] = field(default_factory=dict)

    def reconcile(self) -> None:
        """Read the use of every running lease, and store what has changed."""
        c, began = self.context, time.thread_time()
        requests = c.store.requests(RequestFilter(states=_RUNNING, limit=_ALL))
        leases = {request.lease.id: request.lease for request in requests if request.lease}
        self._follow(leases)
        if leases:
            found = c.backend.utilization({name: lease.handle for name, lease in leases.items()})
            now = c.clock()
            self._pressure = {node: (now, each) for node, each in found.pressure.items()}
            for name, reading in found.leases.items():
                lease = leases[name]
                point = _point(lease, reading, found)
                self._add(self._watched[name], max(0.0, now - lease.granted_at), reading, point)
            self._store(leases, now)
        spent = time.thread_time() - began
        self.every = max(FIRST_SECONDS, spent / MOST_LOAD / max(1, len(leases)))

    def forget(self) -> None:
        """Drop the readings, as a restart does."""
        self._watched = {}

    def series(self) -> Mapping[str, UtilizationSeries]:
        """Return the series of the running leases; safe to call from another thread."""
        return {name: found.series for name, found in list(self._watched.items())}

    def series_of(self, lease_id: str) -> UtilizationSeries | None:
        """Return the series of a lease that runs or has just ended; None without any."""
        found = self._watched.get(lease_id)
        if found is not None:
            return found.series
        return self.context.store.utilization_of([lease_id]).get(lease_id)

    def pressure(self, node: str, now: float) -> NodePressure | None:
        """Return the pressure on a node in the last minutes; None if it is not known."""
        at, found = self._pressure.get(node, (-math.inf, None))
        return found if abs(now - at) <= _PRESSURE_SECONDS else None

    def busiest_other(self, lease: LeaseRecord) -> str:
        """Return the lease that uses the most cores of a node beside this one; empty without any.

        One that uses less than half a core disturbs no other.
        """
        found = [
            (cores, name)
            for name, each in list(self._watched.items())
            if name != lease.id
            and each.node == lease.node
            and each.series.points
            and (cores := each.series.points[-1].cores or 0.0) >= _BUSY_CORES
        ]
        return max(found, default=(0.0, ""))[1]

    def _follow(self, leases: Mapping[str, LeaseRecord]) -> None:
        """Take up new leases, and store the rest of those that have ended."""
        ended = {name: found for name, found in self._watched.items() if name not in leases}
        self.context.store.put_utilization(
            {name: found.series for name, found in ended.items() if found.changed}
        )
        for name in ended:
            del self._watched[name]
        new = [name for name in leases if name not in self._watched]
        stored = self.context.store.utilization_of(new) if new else {}
        for name in new:
            self._watched[name] = _Watched(
                node=leases[name].node, series=stored.get(name, UtilizationSeries())
            )

    def _add(
        self, watched: _Watched, at: float, reading: ProcessReading, point: UtilizationPoint
    ) -> None:
        since, before = watched.at, watched.reading
        if since is not None and not 0 < at - since <= _GAP_INTERVALS * self.every:
            since = None
        if since is not None and before is not None:
            point = _with_rates(point, before, reading, at - since)
        watched.series = watched.series.extended(since, at, point)
        watched.at, watched.reading, watched.changed = at, reading, True

    def _store(self, leases: Mapping[str, LeaseRecord], now: float) -> None:
        due = {
            name: found
            for name in leases
            if (found := self._watched[name]).changed
            and not 0 <= now - found.stored_at < STORE_SECONDS
        }
        self.context.store.put_utilization({name: found.series for name, found in due.items()})
        for found in due.values():
            found.stored_at, found.changed = now, False


def _with_rates(
    point: UtilizationPoint, before: ProcessReading, now: ProcessReading, seconds: float
) -> UtilizationPoint:
    """Return the point with the values that are rates of counters."""
    return replace(
        point,
        cores=_rate(before.cpu_seconds, now.cpu_seconds, seconds),
        waiting=_rate(before.waiting_seconds, now.waiting_seconds, seconds),
        throttled=_rate(before.throttled_seconds, now.throttled_seconds, seconds),
    )


def _rate(before: float | None, now: float | None, seconds: float) -> float | None:
    return None if before is None or now is None else max(0.0, now - before) / seconds


def _point(
    lease: LeaseRecord, reading: ProcessReading, found: UtilizationReading
) -> UtilizationPoint:
    devices = [found.devices[name] for name in lease.devices if name in found.devices]
    return UtilizationPoint(
        memory_bytes=reading.memory_bytes,
        device_percent=_mean_percent(devices),
        device_bytes=sum(device.used_bytes for device in devices) if devices else None,
        readings=1,
    )


def _mean_percent(devices: list[DeviceReading]) -> float | None:
    known = [device.percent for device in devices if device.percent is not None]
    return sum(known) / len(known) if known else None
