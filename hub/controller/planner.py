"""Choose between a full scheduling decision and an incremental step.

``decide`` dispatches the whole queue and gives every request a position. With thousands of
queued requests this takes a while, and slows down submissions. ``step`` finds starts and
preemptions in a fraction of the time; positions may follow a moment later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..interfaces.clock import Instant, MonotonicClock, monotonic
from ..scheduling.cycle.decision import decide
from ..scheduling.cycle.incremental import (
    AllocationEnded,
    AllocationStarted,
    BudgetsChanged,
    Delta,
    Event,
    RequestQueued,
    RequestWithdrawn,
    SchedulerState,
    UsageChanged,
    step,
)
from ..scheduling.model.plan import Plan, Wait
from ..scheduling.model.snapshot import DecayedUsage, Snapshot

LONG_SECONDS = 0.02
"""A decision that takes longer is followed by a rest."""
REST = 8.0
"""Length of that rest, in the times that the decision took."""
LONGEST_REST = 1.0
MANY = 1000
"""With more that wait, reading them takes a while too: every look is followed by a rest."""
SHORT_REST = 0.05


class Planner:
    """Steps with every snapshot, and asks ``decide`` about the whole queue now and then.

    Nothing that starts or stops ever waits for the whole: a step finds the same. Between two
    whole decisions those that wait keep the places of the last one, less those that have gone,
    and newcomers have none yet. A short queue is decided about with every change.
    """

    def __init__(self, clock: MonotonicClock = monotonic) -> None:
        self._clock = clock
        self._scheduler: SchedulerState | None = None
        self._fixed = Snapshot()
        """What of the last snapshot a standing cannot follow."""
        self._waits: tuple[Wait, ...] = ()
        self._since: Instant | None = None
        """Since when the last whole plan lacks something."""
        self._took = 0.0
        self.rest = 0.0
        """How long to leave the processor to others now."""

    def plan(self, snapshot: Snapshot, now: float) -> Plan | None:
        """What holds now, or None while the last plan will do."""
        self.rest = SHORT_REST if len(snapshot.pending) > MANY else 0.0
        events = self._follow(snapshot, now)
        anew = events is None or self._scheduler is None
        scheduler = SchedulerState(snapshot, now) if self._scheduler is None else self._scheduler
        self._scheduler, delta = step(scheduler, events or (), now)
        # A request past its limit delays the expected start of others again and again.
        late = any(allocation.until < now for allocation in snapshot.allocations)
        if self._since is None and (anew or events or late or _decided(delta)):
            self._since = self._clock()
        if anew or (self._since is not None and self.due_in() <= 0):
            return self._whole(snapshot, now)
        gone = any(isinstance(event, RequestWithdrawn) for event in events or ())
        return self._partly(snapshot, delta) if gone or _decided(delta) else None

    def due_in(self) -> float:
        """Seconds until the last whole plan has lacked something for long enough."""
        if self._since is None:
            return LONGEST_REST
        return rest_after(self._took) - (self._clock() - self._since)

    def _follow(self, snapshot: Snapshot, now: float) -> list[Event] | None:
        """What has changed since the last step; None where a new standing has to be made."""
        fixed = replace(snapshot, pending=(), allocations=(), use=(), budgets=())
        if self._scheduler is None or fixed != self._fixed or now < self._scheduler.state.now:
            self._scheduler, self._fixed = None, fixed
            return None
        return list(changes(self._scheduler, snapshot))

    def _whole(self, snapshot: Snapshot, now: float) -> Plan:
        began = self._clock()
        plan = decide(snapshot, now)
        self._waits = plan.waits
        # Requests that wait for devices of new victims expect them from now on only.
        self._since = began if plan.stops else None
        self._took = self._clock() - began
        self.rest = max(self.rest, rest_after(self._took))
        return plan

    def _partly(self, snapshot: Snapshot, delta: Delta) -> Plan:
        """Starts and stops of now, with the places of the last whole plan."""
        left = {request.id for request in snapshot.pending}
        left -= {start.request_id for start in delta.starts}
        self._waits = tuple(wait for wait in self._waits if wait.request_id in left)
        return Plan(starts=delta.starts, waits=self._waits, stops=delta.stops)


def changes(scheduler: SchedulerState, snapshot: Snapshot) -> Iterator[Event]:
    """What has to be told to a standing, so that it stands for this snapshot."""
    pending, held = scheduler.queues.pending, scheduler.state.running.allocations
    asked = {request.id: request for request in snapshot.pending}
    leased = {allocation.request_id: allocation for allocation in snapshot.allocations}
    for name in held.keys() - leased.keys():
        yield AllocationEnded(request_id=name)
    # The store hands out the same values again: thousands of them are told apart by identity.
    for name, request in tuple(pending.items()):
        if (now := asked.get(name)) is not request and now != request:
            yield RequestWithdrawn(request_id=name)
    for name, allocation in leased.items():
        if held.get(name) != allocation:
            yield AllocationStarted(allocation=allocation)
    for name, request in asked.items():
        if (known := pending.get(name)) is not request and known != request:
            yield RequestQueued(request=request)
    yield from _uses(scheduler, snapshot.use)
    budgets = {left.group: left.budget - left.used - left.running for left in snapshot.budgets}
    if budgets != scheduler.state.budgets:
        yield BudgetsChanged(budgets=snapshot.budgets)


def _uses(scheduler: SchedulerState, use: Iterable[DecayedUsage]) -> Iterator[Event]:
    known = {(each.group, each.owner): each for each in scheduler.fair_share.uses()}
    now = {(each.group, each.owner): each for each in use}
    if known != now:
        gone = (replace(known[key], device_seconds=0.0) for key in known.keys() - now.keys())
        yield UsageChanged(use=(*now.values(), *gone))


def _decided(delta: Delta) -> bool:
    return bool(delta.starts or delta.stops)


def rest_after(deciding: float) -> float:
    """How long to leave the processor to those who submit, after a decision that took long.

    With a short queue that is nothing.
    """
    return min(REST * deciding, LONGEST_REST) if deciding > LONG_SECONDS else 0.0
