"""Carrel's own policy: the functions that decide in the live service.

Tenants are groups with their quotas, and every job is preemptible unless the trace says
otherwise. A victim ends at once, without the grace period of the live service. Work that is stopped
when a budget is used up continues in the next period, as if its owner had submitted it again.
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
from ...scheduling.model.learned_order import LearnedOrder
from ...scheduling.model.plan import Start, Stop
from ...scheduling.model.snapshot import Snapshot
from ...scheduling.placement.device_pool import Placement
from ..workload.calendar import SimulatedReservations
from ..workload.job_run import Run
from ..workload.usage import SimulatedBudgets, SimulatedUsage
from .policy import Scheduler, SimulatedSite

_MOST_STOPS = 1000
"""Stops of one job for lack of a budget after which the replay fails: the work that a period allows
is less than the restart cost."""
_MAX_HOLD_SECONDS = 366 * 86400.0
"""Seconds after the last event after which jobs that reservations hold count as never ending."""
USE_SECONDS = 60.0
"""Maximum age of the past use that decisions are made with, as in the live service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrelPolicy:
    """The order, quota, fair share, backfill and preemption of the live service."""

    name: str = "carrel"
    source: str = "The scheduler of the live service: the same functions."
    learned_order: LearnedOrder | None = None

    def scheduler(self, site: SimulatedSite) -> Scheduler:
        return Carrel(site, self.learned_order)


CARREL = CarrelPolicy()


def with_learned_order(name: str, order: LearnedOrder) -> CarrelPolicy:
    """Return Carrel's policy under a name, with a learned order."""
    return CarrelPolicy(
        name=name, source=f"{CARREL.source} Learned order: {order.name}.", learned_order=order
    )


class Carrel:
    """Passes events to the scheduler core, and applies its decisions."""

    def __init__(self, site: SimulatedSite, learned_order: LearnedOrder | None = None) -> None:
        self._initial = Snapshot(
            devices=tuple(site.devices), groups=tuple(site.groups), learned_order=learned_order
        )
        self._scheduler: SchedulerState | None = None
        self._restart_cost = site.restart_cost
        self._runs: dict[str, Run] = {}
        self._events: list[Event] = []
        self._usage = SimulatedUsage()
        self._budgets = SimulatedBudgets(site.groups, site.calendar.terms)
        self._has_budgets = bool(self._budgets)
        self._reservations = SimulatedReservations(site.calendar.reservations, site.groups)
        self._has_reservations = bool(self._reservations)
        self._changed_at = -inf
        """Time of the last event; kept only if there are reservations."""
        self._reported_at = -inf
        self.waiting = 0
        self.free = float(len(site.devices))

    def snapshot(self) -> Snapshot:
        """Return what the last decision has left."""
        return self._initial if self._scheduler is None else self._scheduler.snapshot()

    def submit(self, run: Run, now: float) -> None:
        self._runs[run.job.id] = run
        self._events.append(RequestQueued(request=run.request))
        self.waiting += 1

    def end(self, run: Run, now: float) -> None:
        del self._runs[run.job.id]
        self._released(run, now)

    def next_change(self) -> float:
        change = self._budgets.next_change() if self._has_budgets and self._runs else inf
        if self._has_reservations and self.waiting and self._scheduler is not None:
            edge = min(self._scheduler.state.next_reservation_edge(), self._reservations.read_at)
            if edge < self._changed_at + _MAX_HOLD_SECONDS:
                return min(change, edge)
        return change

    def decide(self, now: float) -> Sequence[Run]:
        """Run scheduling steps until no more victims are stopped."""
        scheduler = self._scheduler or SchedulerState(self._initial, now)
        if self._has_reservations:
            scheduler = self._with_reservations(scheduler, now)
        self._report_usage(now)
        if self._has_budgets:
            self._stop_without_budget(now)
        started: list[Run] = []
        preempted = True
        while preempted:
            events, self._events = self._events, []
            if self._has_budgets:
                # Last, because ended runs refund nothing to a period that is over.
                events.append(BudgetsChanged(budgets=self._budgets.left(now)))
            scheduler, delta = step(scheduler, events, now)
            started.extend(self._start(start, now) for start in delta.starts)
            for stop in delta.stops:
                self._stop(stop, now)
            preempted = bool(delta.stops)
        self._scheduler = scheduler
        return [run for run in started if run.placement is not None]

    def _with_reservations(self, scheduler: SchedulerState, now: float) -> SchedulerState:
        """Refresh the reservations, which are fixed in a scheduler state."""
        if self._events:
            self._changed_at = now
        if now < self._reservations.read_at:
            return scheduler
        return SchedulerState(
            replace(scheduler.snapshot(), reserved=self._reservations.read(now)), now
        )

    def _report_usage(self, now: float) -> None:
        if now - self._reported_at >= USE_SECONDS:
            self._reported_at = now
            self._events.append(UsageChanged(use=self._usage.uses(now)))

    def _start(self, start: Start, now: float) -> Run:
        run = self._runs[start.request_id]
        run.start(Placement(devices=start.devices, share=run.job.share), now)
        self._usage.change(run.request, run.held, now)
        if self._has_budgets:
            self._budgets.start(run, now)
        self.waiting -= 1
        self.free -= run.held
        return run

    def _stop(self, stop: Stop, now: float) -> None:
        run, preemptor = self._runs[stop.request_id], stop.for_request
        if stop.relocated:
            self._requeue(run, now, moved_for=preemptor)
        else:
            self._requeue(run, now, stopped_for=preemptor)

    def _stop_without_budget(self, now: float) -> None:
        for run in self._budgets.stopped(now):
            if run.preemptions >= _MOST_STOPS:
                raise InvalidInput(
                    f"{run.job.id} was stopped {run.preemptions:,} times, and has "
                    f"{run.left:,.0f} s left: the budgets of its groups end before its work does.",
                    accepted="Set larger budgets, or a smaller --restart-cost.",
                    field="quota",
                )
            self._requeue(run, now)

    def _requeue(self, run: Run, now: float, *, moved_for: str = "", stopped_for: str = "") -> None:
        run.stop(now, self._restart_cost)
        self._released(run, now)
        again = replace(run.request, done=run.done, moved_for=moved_for, stopped_for=stopped_for)
        self._events.append(RequestQueued(request=again))
        self.waiting += 1

    def _released(self, run: Run, now: float) -> None:
        self._events.append(AllocationEnded(request_id=run.job.id))
        self._usage.change(run.request, -run.held, now)
        if self._has_budgets:
            self._budgets.end(run, now)
        self.free += run.held
