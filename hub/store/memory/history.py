"""What looks back on what lies in memory; the sums are made in ``past``."""

from __future__ import annotations

from ...records.ledger import LedgerEntry
from ...records.usage import (
    Capacity,
    Census,
    Granted,
    LedgerFilter,
    Levels,
    UsageBy,
    UsageRow,
    UsedRequests,
    Window,
)
from ...usage.rollup import MADE_OF, regrouped
from ..rules import conversions
from . import past
from .pool import Pool


class History(Pool):
    """``hub.ports.history.History`` in dictionaries."""

    def used(self, which: LedgerFilter, by: UsageBy, *, now: float) -> tuple[UsageRow, ...]:
        with self._lock:
            intervals = past.intervals(self._ledger, self._live.values(), self._requests, now)
            if by is UsageBy.MODEL:
                intervals = past.of_each_device(intervals, self._leases, self._devices)
            rows = past.used(intervals, which, MADE_OF.get(by, by))
            return regrouped(rows, which, by, groups=self.groups, terms=self.terms)

    def used_requests(
        self, which: LedgerFilter, *, now: float, most: int, counted: bool = True
    ) -> UsedRequests:
        rows = self.used(which, UsageBy.REQUEST, now=now)
        return UsedRequests(rows=rows[:most], total=len(rows if counted else rows[:most]))

    def ledger_lines(
        self, which: LedgerFilter, *, limit: int, before: int | None = None
    ) -> tuple[LedgerEntry, ...]:
        with self._lock:
            return past.ledger_lines(self._ledger, which, limit, before)

    def granted(self, window: Window) -> tuple[Granted, ...]:
        with self._lock:
            return past.granted(self._leases.values(), self._requests, window)

    def levels(self, window: Window) -> Levels:
        with self._lock:
            return past.levels(self._leases.values(), self._requests, window)

    def note_capacity(self, now: float) -> None:
        with self._lock:
            healthy = conversions.healthy(self.devices())
            if not self._capacity or self._capacity[-1].healthy != healthy:
                self._capacity.append(Capacity(at=now, healthy=healthy))

    def capacity(self, until: float) -> tuple[Capacity, ...]:
        with self._lock:
            found = [change for change in self._capacity if change.at < until]
            return tuple(sorted(found, key=lambda change: change.at))

    def census(self) -> Census:
        with self._lock:
            return past.census(self._leases.values(), self._live.values(), self._requests)
