"""Store what is predicted when requests queue and start, to compare it with the outcomes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..records.leases import LeaseRecord
from ..records.requests import RequestFilter
from ..runtime.context import Context
from ..scheduling.model.plan import Estimate, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    """What one scheduling cycle has predicted and started."""

    now: float
    expected: Mapping[str, Estimate]
    granted: Sequence[LeaseRecord]


class ForecastRecorder:
    """Stores the forecasts of scheduling cycles, outside of the cycles.

    ``note`` is called by the loop and does no I/O; ``store`` may run in another thread, one call at
    a time. Forecasts that a crash or an error prevents are missing, and none is made later.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._noted: deque[_Noted] = deque()
        self._known: frozenset[str] = frozenset()

    @property
    def pending(self) -> bool:
        return bool(self._noted)

    def note(self, plan: Plan, granted: Sequence[LeaseRecord], now: float) -> None:
        """Keep the expected starts that are new in this plan, and its starts."""
        expected = {each.request_id: each.estimate for each in plan.waits if each.estimate}
        new = {name: found for name, found in expected.items() if name not in self._known}
        self._known = frozenset(expected)
        if new or granted:
            self._noted.append(_Noted(now=now, expected=new, granted=granted))

    def store(self) -> None:
        """Store what was noted, with the forecasts of the runs that have started."""
        while self._noted:
            noted = self._noted.popleft()
            if noted.expected:
                self._context.store.put_wait_forecasts(noted.expected, now=noted.now)
            if noted.granted:
                self._store_run_times(noted.granted, noted.now)

    def _store_run_times(self, granted: Sequence[LeaseRecord], now: float) -> None:
        c = self._context
        ids = frozenset(lease.request_id for lease in granted)
        started = {
            each.id: each for each in c.store.requests(RequestFilter(ids=ids, limit=len(ids)))
        }
        found = {
            lease.id: c.run_times.forecast(started[lease.request_id], now)
            for lease in granted
            if lease.request_id in started
        }
        known = {name: each for name, each in found.items() if each is not None and each.basis}
        if known:
            c.store.put_run_time_forecasts(known, now=now)
