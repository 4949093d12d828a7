"""The scheduling cycle: one snapshot in, one plan out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from ..model.plan import Estimate, Plan, Reason, Wait
from ..model.snapshot import PendingRequest, Snapshot, without_back_off
from ..preemption.pending_reclaims import PendingReclaims
from ..queue.cycle_state import CycleState
from ..queue.order import QueueOrder, fair_share_of
from ..queue.queues import Queues
from ..quota.headroom import Key
from .dispatch import DispatchHold, dispatch
from .reclaim_step import ReclaimStep
from .start_estimates import FIRST_PAGE, Effort, estimates

_ABOVE = Reason.ABOVE_MAXIMUM  # As in ``dispatch``.
_new = tuple.__new__  # What a NamedTuple calls, without its overhead.


def decide(
    snapshot: Snapshot, now: float, *, until: str = "", effort: Effort | None = None
) -> Plan:
    """Decide which requests start now, and the place, reason and estimate of all others.

    The same snapshot and time give the same plan, in whatever order the snapshot lists its parts.
    Every queued request is in the plan exactly once.

    ``until``: a request whose start is estimated at any place, as far as ``effort`` suffices; other
    requests may then have no estimate.
    """
    # 0. Leave out requests whose back-off has not ended.
    backing_off = sorted(
        (each.submitted_at, each.id, _why_held(each))
        for each in snapshot.pending
        if each.backs_off(now)
    )
    snapshot = without_back_off(snapshot, now)

    # 1. Count free devices, allocations, guaranteed quota, reservations and budgets.
    state = CycleState(snapshot, now)

    # 2. Order the queue.
    fair_share = fair_share_of(snapshot, state)
    queues = Queues(state.tree, snapshot.pending, learned=state.learned_order)
    queue = QueueOrder(queues, state, fair_share).as_tuple()

    # 3. Dispatch: start requests, and find the rules that hold the others.
    reclaim = ReclaimStep(
        allocations=lambda: snapshot.allocations,
        fair_share=lambda: fair_share,
        queues=lambda: queues,
    )
    started, held = dispatch(queue, state, PendingReclaims(reclaim))

    # 4. Preempt for requests within their guaranteed quota, and for urgent ones.
    claims = state.entitlement.among(each.request for each in held)
    preemptions = reclaim(claims, state)

    # 5. Estimate starts on the first page; victims have their grace period.
    state.running.give_notice((stop.request_id for stop in preemptions.stops), snapshot.grace)
    expected = estimates(_page(held, until), state, until, effort)

    # 6. Write the plan.
    places = QueuePositions()
    waits = [places.add(each, expected, preemptions.placements) for each in held]
    waits += (
        Wait(name, 0 if reason is Reason.DEPENDENCY else places.ahead + 1, reason)
        for _, name, reason in backing_off
    )
    return Plan(starts=tuple(s.start for s in started), waits=tuple(waits), stops=preemptions.stops)


def _why_held(request: PendingRequest) -> Reason:
    return Reason.DEPENDENCY if request.is_held else Reason.BACK_OFF


def _page(held: Sequence[DispatchHold], until: str) -> tuple[PendingRequest, ...]:
    """Return the first page of the queue, extended to the request ``until``."""
    with_devices = (each.request for each in held if each.request.devices)
    page = tuple(islice(with_devices, FIRST_PAGE))
    if not until or any(each.id == until for each in page):
        return page
    more = tuple(with_devices)
    at = next((n for n, each in enumerate(more, 1) if each.id == until), 0)
    return page + more[:at]


class QueuePositions:
    """Places in the queue, assigned in order.

    A request without devices blocks no other and takes no place. A request that waits for headroom
    blocks only requests under the same limit.

    Attributes:
        ahead: number of added requests that block all others.
    """

    def __init__(self) -> None:
        self.ahead = 0
        self._under: dict[Key, int] = {}

    def copy(self) -> QueuePositions:
        clone = QueuePositions()
        clone.ahead, clone._under = self.ahead, self._under.copy()
        return clone

    def add(
        self,
        held: DispatchHold,
        expected: Mapping[str, Estimate] = MappingProxyType({}),
        reclaiming: Collection[str] = (),
    ) -> Wait:
        """Add the next request; requests in ``reclaiming`` wait for preempted devices."""
        request, limit, place = held.request, held.limit, self.ahead + 1
        reason, detail, name = held.reason, held.detail, request.id
        if limit is not None:
            under = self._under.get(limit, 0)
            self._under[limit] = under + 1
            place += under
        elif request.devices and reason is not _ABOVE:
            self.ahead += 1
        if name in reclaiming:
            reason, detail = Reason.RECLAIMING, ""
        return _new(Wait, (name, place, reason, detail, expected.get(name)))
