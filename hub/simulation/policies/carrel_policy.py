"""Carrel's own policy: the very functions that decide in the live service.

Tenants are groups with their quotas, users are users, and every job may be stopped for what a
group is guaranteed. A job that is stopped leaves at once, without the live grace time. What is
stopped at the end of a budget does its rest as soon as there is more, as if its owner had asked
for it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from ...errors import InvalidInput
from ...scheduling.cycle.incremental import (
    AllocationEnded,
    BudgetsChanged,
    Event,
    RequestQueued,
    SchedulerState,
    UsageChanged,
    step,
)
from ...scheduling.model.plan import Start, Stop
from ...scheduling.model.snapshot import Snapshot
from ...scheduling.placement.device_pool import Placement
from ..workload.calendar import SimulatedReservations
from ..workload.job_run import Run
from ..workload.usage import SimulatedBudgets, SimulatedUsage
from .policy import Scheduler, SimulatedSite

_MOST_STOPS = 1000
"""Who was stopped so often for want of a budget does less in a period than a stop costs."""
_PATIENCE = 366 * 86400.0
"""What reservations keep from its devices for longer, when all else is over, never starts."""
USE_SECONDS = 60.0
"""How old the use may be that decisions are made with; live it is that of the running minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrelPolicy:
    """Order, quota, fair share, backfill and reclaim as they are live."""

    name: str = "carrel"
    source: str = "The scheduler of the live service: the same functions."

    def scheduler(self, site: SimulatedSite) -> Scheduler:
        return Carrel(site)


CARREL = CarrelPolicy()


class Carrel:
    """Says to the scheduler what happens, and does what it decides."""

    def __init__(self, site: SimulatedSite) -> None:
        self._made_from = Snapshot(devices=tuple(site.devices), groups=tuple(site.groups))
        self._standing: SchedulerState | None = None
        self._restart_cost = site.restart_cost
        self._runs: dict[str, Run] = {}
        self._events: list[Event] = []
        self._past = SimulatedUsage()
        self._budgets = SimulatedBudgets(site.groups, site.calendar.terms)
        self._on_budgets = bool(self._budgets)
        self._promises = SimulatedReservations(site.calendar.reservations, site.groups)
        self._on_promises = bool(self._promises)
        self._moved_at = -inf
        """When something last happened; kept only where there are reservations."""
        self._told_at = -inf
        self.waiting = 0
        self.free = float(len(site.devices))

    def submit(self, run: Run, now: float) -> None:
        self._runs[run.job.id] = run
        self._events.append(RequestQueued(request=run.request))
        self.waiting += 1

    def end(self, run: Run, now: float) -> None:
        del self._runs[run.job.id]
        self._released(run, now)

    def next_change(self) -> float:
        change = self._budgets.next_change() if self._on_budgets and self._runs else inf
        if self._on_promises and self.waiting and self._standing is not None:
            promised = min(self._standing.books.next_edge(), self._promises.read_at)
            if promised < self._moved_at + _PATIENCE:
                return min(change, promised)
        return change

    def decide(self, now: float) -> Sequence[Run]:
        """What was stopped has left when the scheduler is asked again."""
        standing = self._standing or SchedulerState(self._made_from, now)
        if self._on_promises:
            standing = self._with_promises(standing, now)
        self._tell_of_use(now)
        if self._on_budgets:
            self._stop_without_budget(now)
        started: list[Run] = []
        asked = True
        while asked:
            events, self._events = self._events, []
            if self._on_budgets:
                # Last: what has ended gives nothing back to a period that is over.
                events.append(BudgetsChanged(budgets=self._budgets.left(now)))
            standing, delta = step(standing, events, now)
            started.extend(self._start(start, now) for start in delta.starts)
            for stop in delta.stops:
                self._stop(stop, now)
            asked = bool(delta.stops)
        self._standing = standing
        return [run for run in started if run.placement is not None]

    def _with_promises(self, standing: SchedulerState, now: float) -> SchedulerState:
        """Reservations are those that a standing was made with."""
        if self._events:
            self._moved_at = now
        if now < self._promises.read_at:
            return standing
        return SchedulerState(replace(standing.snapshot(), reserved=self._promises.read(now)), now)

    def _tell_of_use(self, now: float) -> None:
        if now - self._told_at >= USE_SECONDS:
            self._told_at = now
            self._events.append(UsageChanged(use=self._past.uses(now)))

    def _start(self, start: Start, now: float) -> Run:
        run = self._runs[start.request_id]
        run.start(Placement(devices=start.devices, share=run.job.share), now)
        self._past.change(run.request, run.held, now)
        if self._on_budgets:
            self._budgets.start(run, now)
        self.waiting -= 1
        self.free -= run.held
        return run

    def _stop(self, stop: Stop, now: float) -> None:
        run, other = self._runs[stop.request_id], stop.for_request
        if stop.moved:
            self._queue_again(run, now, moved_for=other)
        else:
            self._queue_again(run, now, stopped_for=other)

    def _stop_without_budget(self, now: float) -> None:
        for run in self._budgets.stopped(now):
            if run.preemptions >= _MOST_STOPS:
                raise InvalidInput(
                    f"{run.job.id} was stopped {run.preemptions:,} times, and has "
                    f"{run.left:,.0f} s left: the budgets of its groups end before its work does.",
                    accepted="Larger budgets are accepted, or a smaller --restart-cost.",
                    field="quota",
                )
            self._queue_again(run, now)

    def _queue_again(
        self, run: Run, now: float, *, moved_for: str = "", stopped_for: str = ""
    ) -> None:
        run.stop(now, self._restart_cost)
        self._released(run, now)
        again = replace(run.request, done=run.done, moved_for=moved_for, stopped_for=stopped_for)
        self._events.append(RequestQueued(request=again))
        self.waiting += 1

    def _released(self, run: Run, now: float) -> None:
        self._events.append(AllocationEnded(request_id=run.job.id))
        self._past.change(run.request, -run.held, now)
        if self._on_budgets:
            self._budgets.end(run, now)
        self.free += run.held
