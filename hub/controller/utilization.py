"""Measure what running sessions and jobs use of CPU, memory and devices.

One reading covers all leases of a node: a pass over its processes, or one call of the engine for
each container. Devices are as in the last inventory, so that the driver is not queried again. The
readings become further apart when they cost more than ``MOST_LOAD``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..records.leases import LeaseRecord
from ..records.requests import RequestFilter
from ..records.utilization import (
    FIRST_SECONDS,
    DeviceReading,
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
_RUNNING = frozenset({State.RUNNING, State.STOPPING})
_ALL = 100_000


@dataclass(slots=True, kw_only=True)
class _Watched:
    """One lease: its series, the last reading, and when the series was stored."""

    series: UtilizationSeries
    at: float | None = None
    cpu_seconds: float | None = None
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

    def reconcile(self) -> None:
        """Read the use of every running lease, and store what has changed."""
        c, began = self.context, time.thread_time()
        requests = c.store.requests(RequestFilter(states=_RUNNING, limit=_ALL))
        leases = {request.lease.id: request.lease for request in requests if request.lease}
        self._follow(leases)
        if leases:
            found = c.backend.utilization({name: lease.handle for name, lease in leases.items()})
            now = c.clock()
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
            self._watched[name] = _Watched(series=stored.get(name, UtilizationSeries()))

    def _add(
        self, watched: _Watched, at: float, reading: ProcessReading, point: UtilizationPoint
    ) -> None:
        since, before = watched.at, watched.cpu_seconds
        if since is not None and not 0 < at - since <= _GAP_INTERVALS * self.every:
            since = None
        cores = None
        if since is not None and before is not None:
            cores = max(0.0, reading.cpu_seconds - before) / (at - since)
        watched.series = watched.series.extended(since, at, replace(point, cores=cores))
        watched.at, watched.cpu_seconds, watched.changed = at, reading.cpu_seconds, True

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
