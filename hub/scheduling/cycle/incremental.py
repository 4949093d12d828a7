"""Incremental scheduling: ``step`` computes the starts and preemptions of ``decide`` from events.

State and queues are kept between steps, and the queue is dispatched only while a queued request
could start.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..model.plan import Start, Stop
from ..model.snapshot import (
    Allocation,
    BudgetBalance,
    DecayedUsage,
    Kind,
    PendingRequest,
    PriorityClass,
    Snapshot,
    without_back_off,
)
from ..placement.device_pool import Shape, shape
from ..preemption.pending_reclaims import PendingReclaims
from ..preemption.reclaim_rounds import ReclaimPlan
from ..queue.cycle_state import CycleState
from ..queue.fair_share import FairShare
from ..queue.order import QueueOrder
from ..queue.queues import Queues
from ..queue.running_set import expected_seconds
from ..quota.guarantees import Entitlement
from ..quota.headroom import group_cap, group_cap_covers_pool
from ..quota.tree import size
from .dispatch import Dispatch, DispatchStart
from .reclaim_step import ReclaimStep

_Alike = tuple[Shape, bool, bool, bool]
"""Shape, and whether it is a session, preemptible and urgent: similar for placement and quota."""
_Queue = list[tuple[float, str, PendingRequest]]
"""Similar requests of one owner with expected runtimes and ids, the shortest first."""
_Owners = dict[str, _Queue]


class StartableIndex:
    """Index of the queued requests, to find one that could start.

    Similar requests are checked together; of those of one owner, only the one that would end first.
    The result may be a request that cannot start, but None is certain.
    """

    def __init__(self) -> None:
        self._alike: dict[_Alike, dict[str, _Owners]] = {}
        self._groups: dict[str, dict[_Alike, _Owners]] = {}
        """The same queues by group."""
        self._urgent: Counter[str] = Counter()
        """Number of urgent requests directly in a group."""
        self.on_cpu = 0
        """Number of requests without devices."""

    def add(self, request: PendingRequest) -> None:
        self.on_cpu += not request.devices
        key, group = _alike(request), request.group
        self._urgent[group] += key[3]
        owners = self._alike.setdefault(key, {}).setdefault(group, {})
        self._groups.setdefault(group, {})[key] = owners
        insort(
            owners.setdefault(request.owner, []), (expected_seconds(request), request.id, request)
        )

    def remove(self, request: PendingRequest) -> None:
        self.on_cpu -= not request.devices
        key, group = _alike(request), request.group
        self._urgent[group] -= key[3]
        owners = self._alike[key][group]
        queue = owners[request.owner]
        del queue[bisect_left(queue, (expected_seconds(request), request.id))]
        if not queue:
            del owners[request.owner]
        if not owners:
            del self._alike[key][group], self._groups[group][key]
        if not self._alike[key]:
            del self._alike[key]
        if not self._groups[group]:
            del self._groups[group]

    def first(self, dispatch: Dispatch, done: Collection[str]) -> PendingRequest | None:
        """Return a request that could start and is not in ``done``; None if there is none."""
        return next(filter(dispatch.could_start, self._candidates(dispatch, done)), None)

    def claimants(self, entitlement: Entitlement) -> Iterator[PendingRequest]:
        """Yield the requests with devices that may reclaim."""
        for group, alike in self._groups.items():
            left = entitlement.unused_in_chain(group)
            if left <= 0 and not self._urgent[group]:
                continue
            for (form, _, _, urgent), owners in alike.items():
                devices, *_, share = form
                if devices and (urgent or size(devices, share) <= left):
                    for queue in owners.values():
                        yield from (request for _, _, request in queue)

    def _candidates(self, dispatch: Dispatch, done: Collection[str]) -> Iterator[PendingRequest]:
        for groups in self._alike.values():
            example = _first(groups)
            if not dispatch.may_fit(example):
                continue
            weight = dispatch.pool_weight(example)
            for group, owners in groups.items():
                if weight and weight > dispatch.group_headroom(group):
                    continue
                for queue in owners.values():
                    left = next((each for _, name, each in queue if name not in done), None)
                    if left is not None:
                        yield left


def _first(groups: Mapping[str, _Owners]) -> PendingRequest:
    owners = next(iter(groups.values()))
    return next(iter(owners.values()))[0][2]


def _alike(request: PendingRequest) -> _Alike:
    return (
        shape(request),
        request.kind is Kind.SESSION,
        request.preemptible,
        request.priority is PriorityClass.URGENT,
    )


_RECHECK_AFTER = 8
"""Number of consecutive held requests after which the index is checked again; it is doubled each
time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestQueued:
    """A request entered the queue, or returned to it."""

    request: PendingRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestWithdrawn:
    """A request left the queue without starting."""

    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationStarted:
    """An allocation that ``step`` did not start itself, or that changed."""

    allocation: Allocation


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationEnded:
    """An allocation ended."""

    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageChanged:
    """The decayed past use of these owners in these groups changed."""

    use: tuple[DecayedUsage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetsChanged:
    """The balances of budgets changed; the event has all of them."""

    budgets: tuple[BudgetBalance, ...]


Event = (
    RequestQueued
    | RequestWithdrawn
    | AllocationStarted
    | AllocationEnded
    | UsageChanged
    | BudgetsChanged
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """The result of one step."""

    starts: tuple[Start, ...] = ()
    stops: tuple[Stop, ...] = ()


class SchedulerState:
    """The state of the scheduler between steps; every step changes it.

    Groups, devices and reservations are those of the initial snapshot: create a new state when they
    change.
    """

    def __init__(self, snapshot: Snapshot, now: float) -> None:
        self._snapshot = snapshot
        self._budgets = snapshot.budgets
        self.state = CycleState(snapshot, now)
        ready = without_back_off(snapshot, now).pending
        self.queues = Queues(self.state.tree, ready, learned=snapshot.learned_order)
        self.backing_off = {each.id: each for each in snapshot.pending if each.backs_off(now)}
        """Requests whose back-off has not ended, by id; they enter the queues when it ends."""
        self.fair_share = FairShare(self.state.tree, snapshot.use, snapshot.allocations, now)
        self._unfit: set[Shape] = set()
        """Shapes that did not fit when they were last checked, and cannot fit now."""
        self._startable = StartableIndex()
        for request in ready:
            self._startable.add(request)
        self._reclaimable = sum(map(_is_reclaimable, snapshot.allocations))
        pool_size = self.state.caps.pool_size
        self._caps = {
            each.name: group_cap(each)
            for each in self.state.tree.groups
            if not group_cap_covers_pool(each, pool_size)
        }
        """Limits of groups that do not cover the pool, in thousandths of a device."""

    def pending(self) -> dict[str, PendingRequest]:
        """Return all queued requests by id, with those that are backing off."""
        return self.queues.pending | self.backing_off if self.backing_off else self.queues.pending

    def snapshot(self) -> Snapshot:
        """Return the equivalent snapshot, for ``decide``."""
        return replace(
            self._snapshot,
            pending=tuple(self.pending().values()),
            allocations=tuple(self.state.running.allocations.values()),
            use=self.fair_share.uses(),
            budgets=tuple(self._balance(each) for each in self._budgets),
        )

    def apply(self, events: Iterable[Event], now: float) -> None:
        """Advance the time to ``now``, and apply these events."""
        self.state.advance(now)
        self.fair_share.advance(now)
        for request in [each for each in self.backing_off.values() if not each.backs_off(now)]:
            del self.backing_off[request.id]
            self._queue(request, now)
        for event in events:
            match event:
                case RequestQueued(request=request):
                    self._queue(request, now)
                case RequestWithdrawn(request_id=request_id) if request_id in self.backing_off:
                    del self.backing_off[request_id]
                case RequestWithdrawn(request_id=request_id):
                    self._startable.remove(self.queues.remove(request_id))
                case AllocationStarted(allocation=allocation):
                    if allocation.request_id in self.state.running.allocations:
                        self._end(allocation.request_id)
                    self._unfit.clear()
                    self.state.pool.occupy(allocation)
                    self._begin(allocation)
                case AllocationEnded(request_id=request_id):
                    self._end(request_id)
                case UsageChanged(use=use):
                    self.fair_share.set_use(use)
                case BudgetsChanged(budgets=budgets):
                    self._budgets = budgets
                    self.state.set_budgets(budgets)

    def _queue(self, request: PendingRequest, now: float) -> None:
        if request.backs_off(now):
            self.backing_off[request.id] = request
            return
        self.queues.add(request)
        self._startable.add(request)

    def decide(self) -> Delta:
        """Decide starts and preemptions, and apply them to the state."""
        started = self._dispatch()
        for each in started:
            self._startable.remove(self.queues.remove(each.request.id))
        preemptions = ReclaimPlan()
        if self._reclaimable:
            preemptions = self._reclaim(started)(
                self._startable.claimants(self.state.entitlement), self.state
            )
        for each in started:
            self.fair_share.add(each.allocation)
            self._reclaimable += _is_reclaimable(each.allocation)
        grace = self._snapshot.grace
        self.state.running.give_notice((stop.request_id for stop in preemptions.stops), grace)
        return Delta(starts=tuple(s.start for s in started), stops=preemptions.stops)

    def _dispatch(self) -> list[DispatchStart]:
        """Dispatch the queue while a request could still start."""
        started: list[DispatchStart] = []
        reclaims = PendingReclaims(self._reclaim(started))
        dispatch = Dispatch(self.state, reclaims if self._reclaimable else None, self._unfit)
        done: set[str] = set()
        recheck_after, held = _RECHECK_AFTER, 0
        candidate = self._startable.first(dispatch, done)
        if candidate is None:
            return started
        for request in QueueOrder(self.queues, self.state, self.fair_share, self._full()):
            served = None if dispatch.can_skip(request) else dispatch.serve(request)
            done.add(request.id)
            held += 1
            if isinstance(served, DispatchStart):
                started.append(served)
                recheck_after, held = _RECHECK_AFTER, 0
            elif held < recheck_after:
                continue
            else:
                recheck_after, held = 2 * recheck_after, 0
            if candidate.id in done or not (
                dispatch.may_fit(candidate) and dispatch.could_start(candidate)
            ):
                candidate = self._startable.first(dispatch, done)
            if candidate is None:
                break
        dispatch.finish()
        return started

    def _full(self) -> set[str]:
        """Return the groups in which nothing can start, and which block no request outside.

        In a group whose limit covers the pool, a request may lack devices and be the head of the
        queue.
        """
        if self._startable.on_cpu:
            return set()
        held = self.state.tally.groups
        return {name for name, most in self._caps.items() if held[name] >= most}

    def _reclaim(self, started: Sequence[DispatchStart]) -> ReclaimStep:
        return ReclaimStep(
            allocations=lambda: self._before(started),
            fair_share=lambda: self.fair_share,
            queues=lambda: self.queues,
        )

    def _before(self, started: Sequence[DispatchStart]) -> tuple[Allocation, ...]:
        """Return the allocations without those that just started."""
        new = {each.request.id for each in started}
        running = self.state.running.allocations.values()
        return tuple(each for each in running if each.request_id not in new)

    def _begin(self, allocation: Allocation) -> None:
        self.state.start(allocation)
        self.fair_share.add(allocation)
        self._reclaimable += _is_reclaimable(allocation)

    def _end(self, request_id: str) -> None:
        self._unfit.clear()
        allocation = self.state.end(request_id)
        self.fair_share.remove(allocation)
        self._reclaimable -= _is_reclaimable(allocation)

    def _balance(self, balance: BudgetBalance) -> BudgetBalance:
        running = balance.budget - balance.used - self.state.budgets[balance.group]
        return replace(balance, running=running)


def step(
    scheduler: SchedulerState, events: Iterable[Event], now: float
) -> tuple[SchedulerState, Delta]:
    """Apply events, and return the starts and stops of ``decide(scheduler.snapshot(), now)``."""
    scheduler.apply(events, now)
    return scheduler, scheduler.decide()


def _is_reclaimable(allocation: Allocation) -> bool:
    """Return whether an allocation may be preempted, or is leaving."""
    return bool(allocation.devices) and (allocation.preemptible or allocation.leaving)
