"""Step 4 of the cycle: what is asked back for those that may ask."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from ..model.snapshot import Allocation, PendingRequest, Snapshot
from ..placement.device_pool import DevicePool
from ..placement.gangs import least
from ..preemption.reclaim import has_no_victims, reclaim
from ..preemption.reclaim_rounds import ReclaimPlan
from ..preemption.victim_search import cost
from ..queue.cycle_state import CycleState
from ..queue.fair_share import FairShare
from ..queue.order import QueueOrder, fair_share_of
from ..queue.queues import Queues
from ..quota.headroom import (
    group_cap,
    group_cap_covers_pool,
    limit_reached,
    member_cap,
    member_cap_covers_pool,
)
from ..quota.tree import Tally, size
from .dispatch import Dispatch, DispatchHold, DispatchStart


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimStep:
    """Says what is asked back in one cycle. Nothing is called before anybody asks.

    Attributes:
        holdings: what ran before this cycle.
        queues: all that waits, with or without what started in this cycle.
    """

    allocations: Callable[[], Sequence[Allocation]]
    fair_share: Callable[[], FairShare]
    queues: Callable[[], Queues]

    def __call__(self, claims: Iterable[PendingRequest], state: CycleState) -> ReclaimPlan:
        """What is asked back for these.

        They ask in the order in which they would be served: what a group is guaranteed is shared
        by its people as devices are, and who is first in line is not passed by who asks for less.
        """
        claims = tuple(claims)
        if not claims:
            return ReclaimPlan()
        before = self.allocations()
        if has_no_victims(claims, before, state.tree, state.entitlement):
            return ReclaimPlan()

        def allowed(
            form: PendingRequest, fewest: PendingRequest, pool: DevicePool, tally: Tally
        ) -> bool:
            """Limits look at all that it would like."""
            limit = limit_reached(form, state.tree, tally, state.budgets)
            return (
                limit is None
                and state.keeps_guarantees(fewest)
                and state.would_keep_reserved(fewest, pool, tally)
            )

        return reclaim(
            QueueOrder(Queues(state.tree, claims), state, self.fair_share()).as_tuple(),
            pool=state.pool,
            tally=state.tally,
            tree=state.tree,
            allocations=before,
            now=state.now,
            forms=state.variants,
            allowed=allowed,
            may_restart=lambda request: state.hold_reason(request) is None,
            reserved=state.due_devices(),
            still_held=lambda found: self._still_held(found, state),
        )

    def _still_held(self, found: ReclaimPlan, state: CycleState) -> Collection[str]:
        """For whom something is asked back, and who would be held when that has left: since it
        would run into a reservation, or could not give back what others are guaranteed, or behind
        who is first in line for a limit."""
        then, queues = state.copy(), self.queues()
        then.end_all(stop.request_id for stop in found.stops)
        claimants = [queues.pending[name] for name in {stop.for_request for stop in found.stops}]
        held = {each.id for each in claimants if then.hold_reason(least(each)) is not None}
        lines: dict[str, set[str]] = {}
        for each in claimants:
            top = None if each.id in held else _widest_line(each, then, queues)
            if top is not None:
                lines.setdefault(top, set()).add(each.id)
        for top, names in lines.items():
            held.update(self._in_line(names, top, then.copy(), state))
        return held

    def _in_line(
        self, claimants: Collection[str], top: str, then: CycleState, state: CycleState
    ) -> Iterator[str]:
        """Those that stand in line for a limit of a group or of one below it, along the queue of
        that group alone."""
        running = state.running.allocations
        pending = (each for each in self.queues().of(top) if each.id not in running)
        dispatch, left = Dispatch(then), set(claimants)
        for request in QueueOrder(Queues(then.tree, pending), then, self.fair_share()):
            if request.id in left:
                left.remove(request.id)
                served = dispatch.serve(request)
                if isinstance(served, DispatchHold) and served.limit is not None:
                    yield request.id
                if not left:
                    return
            elif not dispatch.can_skip(request):
                dispatch.serve(request)


def _widest_line(request: PendingRequest, state: CycleState, queues: Queues) -> str | None:
    """The topmost group at a limit of which anybody may stand in line ahead of this request:
    somebody waits for more than it leaves. One as large as the pool is full when that is."""
    tally, lendable = state.tally, state.caps.lendable
    for group in reversed(state.tree.chain(request.group)):
        left = (
            inf
            if group_cap_covers_pool(group, lendable)
            else group_cap(group) - tally.groups[group.name]
        )
        of_one = (
            inf
            if member_cap_covers_pool(group, lendable)
            else member_cap(group) - tally.users[group.name, request.owner]
        )
        if left == of_one == inf:
            continue
        for each in queues.of(group.name):
            weight = size(each.devices, each.share)
            if weight > left or (weight > of_one and each.owner == request.owner):
                return group.name
    return None


_Started = frozenset[tuple[str, int]]
"""Who starts, with how many devices."""


def withdrawable(
    snapshot: Snapshot, asked: Mapping[str, str], now: float, *, expired: Collection[str] = ()
) -> tuple[str, ...]:
    """Those that were asked to go and may stay.

    1. Suppose that all that was asked to go has gone: who starts, of all those that may ask? Whom
       it was asked for goes first (``QueueOrder``).
    2. One after the other, the dearest to stop first: where as much starts although it is
       still there, it stays.
    3. But where somebody would not start even so, those that were asked for it stay asked until
       their grace time is over: what holds it may pass.

    Attributes:
        asked: for which request each of them was asked to go, by its own request. Whatever else
            is leaving goes in any case.
        over: those whose grace time is over.
    """
    trial = _Trial(snapshot, asked, now)
    started_with = trial.started_with(())
    held = trial.wanted - {name for name, _ in started_with}
    stay: tuple[str, ...] = ()
    for name in trial.costliest_first():
        if asked[name] in held and name not in expired:
            continue
        more = (*stay, name)
        if trial.started_with(more) == started_with:
            stay = more
    return stay


class _Trial:
    """What would start were some of those that were asked to go still there."""

    def __init__(self, snapshot: Snapshot, asked: Mapping[str, str], now: float) -> None:
        self._snapshot, self._asked, self._now = snapshot, asked, now
        state = CycleState(snapshot, now)
        self.wanted = {each.id for each in snapshot.pending} & set(asked.values())
        may_ask = {each.id for each in state.entitlement.among(snapshot.pending)} | self.wanted
        claims = (each for each in snapshot.pending if each.id in may_ask)
        self._queues = Queues(state.tree, claims)
        self._fair_share: FairShare = fair_share_of(snapshot, state)

    def costliest_first(self) -> list[str]:
        costs = {
            each.request_id: cost(replace(each, leaving=False), self._now)
            for each in self._snapshot.allocations
            if each.request_id in self._asked
        }
        return sorted(costs, key=lambda name: (-costs[name], name))

    def started_with(self, stay: Collection[str]) -> _Started:
        allocations = tuple(_left(self._snapshot.allocations, stay))
        state = CycleState(replace(self._snapshot, allocations=allocations), self._now)
        return frozenset(
            (each.request.id, len(each.allocation.devices)) for each in self._starts(state)
        )

    def _starts(self, state: CycleState) -> Iterator[DispatchStart]:
        dispatch = Dispatch(state)
        for request in QueueOrder(
            self._queues, state, self._fair_share, preemptors=sorted(self.wanted)
        ):
            served = None if dispatch.can_skip(request) else dispatch.serve(request)
            if isinstance(served, DispatchStart):
                yield served


def _left(allocations: Iterable[Allocation], stay: Collection[str]) -> Iterator[Allocation]:
    """What runs once all others that leave have gone."""
    for each in allocations:
        if each.request_id in stay:
            yield replace(each, leaving=False, leaves_at=None)
        elif not each.leaving:
            yield each
