"""Quotes: predict the wait of a request before it is submitted, and check time extensions.

Both use a copy of the snapshot, and reserve nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from ..cycle.decision import QueuePositions, decide
from ..cycle.dispatch import Dispatch, DispatchHold
from ..cycle.reclaim_step import ReclaimStep
from ..cycle.start_estimates import FIRST_PAGE
from ..model.plan import Plan, Reason, Wait
from ..model.snapshot import Allocation, PendingRequest, Snapshot, without_back_off
from ..preemption.defragmentation import as_pending
from ..preemption.pending_reclaims import PendingReclaims
from ..queue.cycle_state import CycleState, HoldReason
from ..queue.fair_share import FairShare
from ..queue.order import QueueOrder, fair_share_of, in_order
from ..queue.queues import Queues


def quotes(snapshot: Snapshot, requests: Sequence[PendingRequest], now: float) -> tuple[Wait, ...]:
    """Return the wait of each of these requests that ``decide`` would return if it alone were
    added.

    A request that would start at once has place 0. Requests behind it do not change its place, and
    its estimate ignores them, although they may start before it on devices that it leaves.
    """
    snapshot = without_back_off(snapshot, now)
    state = CycleState(snapshot, now)
    queues = Queues(state.tree, snapshot.pending, learned=state.learned_order)
    fair_share = fair_share_of(snapshot, state)
    return tuple(_quote(snapshot, each, state, queues, fair_share) for each in requests)


def _quote(
    snapshot: Snapshot,
    request: PendingRequest,
    state: CycleState,
    queues: Queues,
    fair_share: FairShare,
) -> Wait:
    # A request without devices does not depend on those ahead.
    if not request.devices and not isinstance(Dispatch(state.copy()).serve(request), DispatchHold):
        return Wait(request_id=request.id, place=0, reason=Reason.STARTING)
    reclaim = ReclaimStep(
        allocations=lambda: snapshot.allocations,
        fair_share=lambda: fair_share,
        queues=lambda: queues,
    )
    dispatch, positions = Dispatch(state.copy(), PendingReclaims(reclaim)), QueuePositions()
    queues.add(request)
    ahead = list(takewhile(lambda each: each is not request, QueueOrder(queues, state, fair_share)))
    page = 0
    for each in ahead:
        served = dispatch.serve(each)
        if isinstance(served, DispatchHold):
            positions.add(served)
            page += each.devices > 0
    result = dispatch.serve(request)
    queues.remove(request.id)
    if not isinstance(result, DispatchHold):
        return Wait(request_id=request.id, place=0, reason=Reason.STARTING)
    if page >= FIRST_PAGE and request not in dispatch.state.entitlement:
        return positions.add(result)
    plan = decide(replace(snapshot, pending=(*ahead, request)), state.now)
    return next(wait for wait in plan.waits if wait.request_id == request.id)


def blocked_by(snapshot: Snapshot, request_id: str, now: float) -> PendingRequest | None:
    """Return the first queued request that would start now or sooner without this running one.

    Requests of the same owner do not count: the owner chooses what to run first.
    """
    allocation, left = _without(snapshot, request_id)
    if allocation is None:
        return None
    others = {
        each.id for each in snapshot.pending if each.devices > 0 and each.owner != allocation.owner
    }
    if not others:
        return None
    before = _expected(decide(snapshot, now), now)
    after = _expected(decide(left, now), now)
    sooner = {
        name for name in others & after.keys() if name not in before or after[name] < before[name]
    }
    ready = without_back_off(snapshot, now)
    queue = in_order(ready, CycleState(ready, now)) if sooner else ()
    return next((each for each in queue if each.id in sooner), None)


def extension_hold(
    snapshot: Snapshot, request_id: str, until: float, now: float
) -> HoldReason | None:
    """Return why a running request may not keep its devices until then; None if it may.

    The rules are those for starting:

    1. Its budget, or one above, is fully committed to running requests.
    2. After its current end, its devices are withheld for a reservation or for guaranteed quota
       that could not be reclaimed from it.
    """
    allocation, left = _without(snapshot, request_id)
    if allocation is None or not allocation.devices:
        return None
    later = tuple(each for each in snapshot.reserved if each.ends_at > allocation.until)
    state = CycleState(replace(left, reserved=later), now)
    for group in state.tree.chain(allocation.group):
        if state.budgets.get(group.name, 1.0) <= 0:
            return HoldReason(reason=Reason.BUDGET, detail=group.name)
    request = as_pending(allocation, state.pool, now)
    if not state.keeps_reserved(request):
        return HoldReason(reason=state.reserved_reason(request))
    return state.hold_reason(request, until)


def _without(snapshot: Snapshot, request_id: str) -> tuple[Allocation | None, Snapshot]:
    """Return the allocation of a request, if any, and the snapshot without it."""
    allocation = next(
        (each for each in snapshot.allocations if each.request_id == request_id), None
    )
    left = tuple(each for each in snapshot.allocations if each is not allocation)
    return allocation, replace(snapshot, allocations=left)


def _expected(plan: Plan, now: float) -> dict[str, float]:
    """Return the expected starts on the first page, as far as they are known."""
    return {start.request_id: now for start in plan.starts} | {
        wait.request_id: wait.estimate.at for wait in plan.waits if wait.estimate
    }
