"""What is asked of the requests in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from ...records.calendar import reserved
from ...records.events import ChangeDigest, Touched
from ...records.leases import LeaseRecord, LeaseState
from ...records.requests import RequestFilter, RequestRecord
from ...scheduling.model.snapshot import Allocation, BudgetBalance, Snapshot
from ...scheduling.model.states import TERMINAL, State
from ...usage import budget_balance
from ...usage.budget_balance import Open
from ..rules import checks, conversions
from . import past
from .leases import Leases
from .pins import Pins
from .shelf import matches


class MemoryQueries(Pins, Leases):
    """One request, a page of them, and the whole picture."""

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._lock:
            yield

    def request(self, request_id: str) -> RequestRecord:
        with self._lock:
            if request_id not in self._requests:
                raise checks.no_request(request_id)
            return self._requests[request_id]

    def requests(self, which: RequestFilter) -> tuple[RequestRecord, ...]:
        with self._lock:
            newest_first = iter(reversed(self._requests.values()))
            if which.before is not None and not any(r.id == which.before for r in newest_first):
                return ()
            found = (request for request in newest_first if matches(request, which))
            return tuple(islice(found, max(0, which.limit)))

    def live_session(self, owner: str, server_name: str) -> RequestRecord | None:
        with self._lock:
            sessions = self._sessions(owner, server_name)
            return next((r for r in sessions if r.state not in TERMINAL), None)

    def queued(self, owner: str) -> frozenset[str]:
        with self._lock:
            waiting = (r for r in self._requests.values() if r.state is State.QUEUED)
            return frozenset(request.id for request in waiting if request.owner == owner)

    def snapshot(self, now: float) -> Snapshot:
        with self._lock:
            return Snapshot(
                takes_work=conversions.takes_work(self._nodes, self._board.marks()),
                silent=conversions.silences(self._board.marks()),
                devices=self.devices(),
                groups=self.groups(),
                pending=tuple(
                    conversions.waiting(request)
                    for request in self._requests.values()
                    if request.state is State.QUEUED
                ),
                allocations=self.holdings(),
                budgets=self.budgets(now),
                reserved=reserved(
                    self.reservations(), self._groups, now, conversions.horizon(self.groups())
                ),
                use=past.decayed_use(self._ledger, conversions.moment_of_use(now), self._half_life),
            )

    def budgets(self, now: float) -> tuple[BudgetBalance, ...]:
        with self._lock:
            groups, ledger = self.groups(), self._ledger
            running = budget_balance.periods(groups, self.terms(), now)
            return budget_balance.left(
                groups,
                running,
                {
                    since: past.charged_since(ledger, since)
                    for since in budget_balance.starts(running)
                },
                [self._open(lease) for lease in self.leases()],
            )

    def _open(self, lease: LeaseRecord) -> Open:
        request = self._requests[lease.request_id]
        return Open(
            group=request.group,
            devices=request.devices,
            charged_until=lease.charged_until,
            until=lease.granted_at + request.seconds,
        )

    def holdings(self) -> tuple[Allocation, ...]:
        with self._lock:
            return tuple(
                conversions.holding(self._requests[lease.request_id], lease)
                for lease in self.leases()
            )

    def waiting_for_devices(self) -> int:
        with self._lock:
            waiting = (r for r in self._requests.values() if r.state is State.QUEUED)
            return sum(request.devices > 0 for request in waiting)

    def glance(self, after: int | None) -> ChangeDigest:
        with self._lock:
            last = len(self._events)
            newest = {event.request_id: event.id for event in self._events[after:]}
            touched = [
                Touched(request_id=r.id, owner=r.owner, group=r.group, event_id=newest[r.id])
                for r in map(self._requests.__getitem__, newest if after is not None else ())
            ]
            suspect = (x.request_id for x in self.leases() if x.state is LeaseState.SUSPECT)
            people = {person for teachers in self._teachers.values() for person in teachers}
            return ChangeDigest(
                last=last,
                touched=tuple(sorted(touched, key=lambda each: each.event_id)),
                suspect=frozenset(suspect),
                devices=self.devices(),
                holdings=self.holdings(),
                waiting=self.waiting_for_devices(),
                taught={person: self.taught_by(person) for person in people},
            )
