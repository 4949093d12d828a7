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
"""A decision that takes longer is followed by a pause of the loop."""
REST = 8.0
"""Length of that pause, as a multiple of the duration of the decision."""
LONGEST_REST = 1.0
MANY = 1000
"""With more queued requests, reading them is slow too: every cycle is followed by a pause."""
SHORT_REST = 0.05


class Planner:
    """Runs a step for every snapshot, and a full decision about the queue from time to time.

    Starts and stops never wait for a full decision: a step finds the same ones. Between two full
    decisions, queued requests keep the positions of the last one, requests that left the queue
    are removed, and new requests have no position yet. A short queue gets a full decision after
    every change.
    """

    def __init__(self, clock: MonotonicClock = monotonic) -> None:
        self._clock = clock
        self._scheduler: SchedulerState | None = None
        self._fixed = Snapshot()
        """The part of the last snapshot that cannot be updated incrementally."""
        self._waits: tuple[Wait, ...] = ()
        self._since: Instant | None = None
        """Since when the last full plan is outdated."""
        self._took = 0.0
        self.rest = 0.0
        """Seconds for which the loop leaves the processor to other work now."""

    def plan(self, snapshot: Snapshot, now: float) -> Plan | None:
        """Return the plan for this snapshot, or None while the last plan still holds."""
        self.rest = SHORT_REST if len(snapshot.pending) > MANY else 0.0
        events = self._events_since_last_step(snapshot, now)
        rebuild = events is None or self._scheduler is None
        scheduler = SchedulerState(snapshot, now) if self._scheduler is None else self._scheduler
        backed_off = len(scheduler.backing_off)
        self._scheduler, delta = step(scheduler, events or (), now)
        due = len(scheduler.backing_off) != backed_off
        # While a request runs past its limit, the expected start of others moves with the clock.
        late = any(allocation.until < now for allocation in snapshot.allocations)
        if self._since is None and (rebuild or events or late or due or _decided(delta)):
            self._since = self._clock()
        if rebuild or (self._since is not None and self.due_in() <= 0):
            return self._full_plan(snapshot, now)
        withdrawn = any(isinstance(event, RequestWithdrawn) for event in events or ())
        return self._partial_plan(snapshot, delta) if withdrawn or _decided(delta) else None

    def due_in(self) -> float:
        """Return the seconds until the next full decision is due."""
        if self._since is None:
            return LONGEST_REST
        return rest_after(self._took) - (self._clock() - self._since)

    def _events_since_last_step(self, snapshot: Snapshot, now: float) -> list[Event] | None:
        """Return the changes since the last step; None if the state must be built again."""
        fixed = replace(snapshot, pending=(), allocations=(), use=(), budgets=())
        if self._scheduler is None or fixed != self._fixed or now < self._scheduler.state.now:
            self._scheduler, self._fixed = None, fixed
            return None
        return list(changes(self._scheduler, snapshot))

    def _full_plan(self, snapshot: Snapshot, now: float) -> Plan:
        began = self._clock()
        plan = decide(snapshot, now)
        self._waits = plan.waits
        # The next decision can count on the devices of victims that were chosen in this one.
        self._since = began if plan.stops else None
        self._took = self._clock() - began
        self.rest = max(self.rest, rest_after(self._took))
        return plan

    def _partial_plan(self, snapshot: Snapshot, delta: Delta) -> Plan:
        """Return the starts and stops of the step, with the positions of the last full plan."""
        queued = {request.id for request in snapshot.pending}
        queued -= {start.request_id for start in delta.starts}
        self._waits = tuple(wait for wait in self._waits if wait.request_id in queued)
        return Plan(starts=delta.starts, waits=self._waits, stops=delta.stops)


def changes(scheduler: SchedulerState, snapshot: Snapshot) -> Iterator[Event]:
    """Yield the events that bring a scheduler state up to date with a snapshot."""
    known, held = scheduler.pending(), scheduler.state.running.allocations
    pending = {request.id: request for request in snapshot.pending}
    leased = {allocation.request_id: allocation for allocation in snapshot.allocations}
    for name in held.keys() - leased.keys():
        yield AllocationEnded(request_id=name)
    # The store returns the same objects again: with thousands of requests, the comparison by
    # identity comes first because it is much faster.
    for name, request in tuple(known.items()):
        if (current := pending.get(name)) is not request and current != request:
            yield RequestWithdrawn(request_id=name)
    for name, allocation in leased.items():
        if held.get(name) != allocation:
            yield AllocationStarted(allocation=allocation)
    for name, request in pending.items():
        if (previous := known.get(name)) is not request and previous != request:
            yield RequestQueued(request=request)
    yield from _usage_changes(scheduler, snapshot.use)
    budgets = {b.group: b.budget - b.used - b.running for b in snapshot.budgets}
    if budgets != scheduler.state.budgets:
        yield BudgetsChanged(budgets=snapshot.budgets)


def _usage_changes(scheduler: SchedulerState, usage: Iterable[DecayedUsage]) -> Iterator[Event]:
    before = {(entry.group, entry.owner): entry for entry in scheduler.fair_share.uses()}
    after = {(entry.group, entry.owner): entry for entry in usage}
    if before != after:
        removed = (replace(before[key], device_seconds=0.0) for key in before.keys() - after.keys())
        yield UsageChanged(use=(*after.values(), *removed))


def _decided(delta: Delta) -> bool:
    return bool(delta.starts or delta.stops)


def rest_after(seconds: float) -> float:
    """Return the pause in seconds after a decision that took ``seconds``.

    The pause leaves the processor to submissions; it is 0 with a short queue.
    """
    return min(REST * seconds, LONGEST_REST) if seconds > LONG_SECONDS else 0.0
