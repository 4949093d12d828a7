"""Preemption in the cycle: decide which notices are sent, and which preemptions are cancelled.

Conditions change during a grace period: the preemptor may be amended, be held by a budget, or fit
because other work ended. The victim would then lose its work for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from ..model.snapshot import Allocation, PendingRequest, Snapshot
from ..placement.device_pool import DevicePool
from ..placement.gangs import least
from ..preemption.reclaim import has_no_victims, reclaim
from ..preemption.reclaim_rounds import ReclaimPlan
from ..preemption.victim_cost import cost
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
    """Decides the preemptions of one cycle. Its inputs are computed only when a request may
    reclaim.

    Attributes:
        allocations: the allocations before this cycle.
        queues: all queued requests, with or without those that started in this cycle.
    """

    allocations: Callable[[], Sequence[Allocation]]
    fair_share: Callable[[], FairShare]
    queues: Callable[[], Queues]

    def __call__(self, claims: Iterable[PendingRequest], state: CycleState) -> ReclaimPlan:
        """Select victims for these requests.

        They reclaim in the order of the queue: the users of a group share guaranteed quota in the
        same way as devices, and smaller requests do not pass the first one.
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
            """Return whether limits have headroom for all members, and no devices are withheld."""
            limit = limit_reached(form, state.tree, tally, state.budgets)
            return (
                limit is None
                and state.keeps_guarantees(fewest)
                and state.would_keep_reserved(fewest, pool, tally)
            )

        return reclaim(
            QueueOrder(
                Queues(state.tree, claims, learned=state.learned_order), state, self.fair_share()
            ).as_tuple(),
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
        """Return the preemptors that would be held when their victims are gone.

        They would run into a reservation, use others' guaranteed quota without being preemptible,
        or wait behind the first request under a limit.
        """
        then, queues = state.copy(), self.queues()
        then.end_all(stop.request_id for stop in found.stops)
        claimants = [queues.pending[name] for name in {stop.for_request for stop in found.stops}]
        held = {each.id for each in claimants if then.hold_reason(least(each)) is not None}
        by_group: dict[str, set[str]] = {}
        for each in claimants:
            top = None if each.id in held else _topmost_contended_group(each, then, queues)
            if top is not None:
                by_group.setdefault(top, set()).add(each.id)
        for top, names in by_group.items():
            held.update(self._behind_limits(names, top, then.copy(), state))
        return held

    def _behind_limits(
        self, claimants: Collection[str], top: str, then: CycleState, state: CycleState
    ) -> Iterator[str]:
        """Yield the claimants that wait for a limit of a group or its subtree.

        Only the queue of that group is dispatched.
        """
        running = state.running.allocations
        pending = (each for each in self.queues().of(top) if each.id not in running)
        dispatch, left = Dispatch(then), set(claimants)
        for request in QueueOrder(
            Queues(then.tree, pending, learned=then.learned_order), then, self.fair_share()
        ):
            if request.id in left:
                left.remove(request.id)
                served = dispatch.serve(request)
                if isinstance(served, DispatchHold) and served.limit is not None:
                    yield request.id
                if not left:
                    return
            elif not dispatch.can_skip(request):
                dispatch.serve(request)


def _topmost_contended_group(
    request: PendingRequest, state: CycleState, queues: Queues
) -> str | None:
    """Return the topmost group with a limit under which other requests may wait ahead of this one.

    That is a limit with less headroom than some request needs. A limit that covers the pool does
    not count: it is reached only when the pool is full.
    """
    tally, pool_size = state.tally, state.caps.pool_size
    for group in reversed(state.tree.chain(request.group)):
        group_headroom = (
            inf
            if group_cap_covers_pool(group, pool_size)
            else group_cap(group) - tally.groups[group.name]
        )
        member_headroom = (
            inf
            if member_cap_covers_pool(group, pool_size)
            else member_cap(group) - tally.users[group.name, request.owner]
        )
        if group_headroom == member_headroom == inf:
            continue
        for each in queues.of(group.name):
            weight = size(each.devices, each.share)
            if weight > group_headroom or (
                weight > member_headroom and each.owner == request.owner
            ):
                return group.name
    return None


_Started = frozenset[tuple[str, int]]
"""Requests that start, with their numbers of devices."""


def withdrawable(
    snapshot: Snapshot, victims: Mapping[str, str], now: float, *, expired: Collection[str] = ()
) -> tuple[str, ...]:
    """Select the preemptions that can be cancelled: their victims may stay.

    1. Find the requests that would start without all victims, of those that may reclaim.
       Preemptors go first (``QueueOrder``).
    2. One victim after the other, the costliest first, stays if the same requests start beside it.
    3. The victims of a preemptor that would not start even without them keep their notices until
       the grace period is over, since the rule that holds it may cease to apply.

    Args:
        victims: preemptor by victim. Other allocations that are leaving go in any case.
        expired: victims whose grace period is over.
    """
    trial = _Trial(snapshot, victims, now)
    started_with = trial.started_with(())
    held = trial.preemptors - {name for name, _ in started_with}
    stay: tuple[str, ...] = ()
    for name in trial.costliest_first():
        if victims[name] in held and name not in expired:
            continue
        more = (*stay, name)
        if trial.started_with(more) == started_with:
            stay = more
    return stay


class _Trial:
    """The requests that would start if some of the victims stayed."""

    def __init__(self, snapshot: Snapshot, victims: Mapping[str, str], now: float) -> None:
        self._snapshot, self._victims, self._now = snapshot, victims, now
        state = CycleState(snapshot, now)
        self.preemptors = {each.id for each in snapshot.pending} & set(victims.values())
        entitled = {each.id for each in state.entitlement.among(snapshot.pending)}
        may_reclaim = entitled | self.preemptors
        claims = (each for each in snapshot.pending if each.id in may_reclaim)
        self._queues = Queues(state.tree, claims, learned=state.learned_order)
        self._fair_share: FairShare = fair_share_of(snapshot, state)

    def costliest_first(self) -> list[str]:
        costs = {
            each.request_id: cost(replace(each, leaving=False), self._now)
            for each in self._snapshot.allocations
            if each.request_id in self._victims
        }
        return sorted(costs, key=lambda name: (-costs[name], name))

    def started_with(self, stay: Collection[str]) -> _Started:
        allocations = tuple(_remaining(self._snapshot.allocations, stay))
        state = CycleState(replace(self._snapshot, allocations=allocations), self._now)
        return frozenset(
            (each.request.id, len(each.allocation.devices)) for each in self._starts(state)
        )

    def _starts(self, state: CycleState) -> Iterator[DispatchStart]:
        dispatch = Dispatch(state)
        for request in QueueOrder(
            self._queues, state, self._fair_share, preemptors=sorted(self.preemptors)
        ):
            served = None if dispatch.can_skip(request) else dispatch.serve(request)
            if isinstance(served, DispatchStart):
                yield served


def _remaining(allocations: Iterable[Allocation], stay: Collection[str]) -> Iterator[Allocation]:
    """Yield the allocations that remain when all that are leaving have gone, except ``stay``."""
    for each in allocations:
        if each.request_id in stay:
            yield replace(each, leaving=False, leaves_at=None)
        elif not each.leaving:
            yield each
