"""The scheduling cycle: one snapshot in, one plan out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from ..model.plan import Estimate, Plan, Reason, Wait
from ..model.snapshot import PendingRequest, Snapshot
from ..preemption.pending_reclaims import PendingReclaims
from ..queue.cycle_state import CycleState
from ..queue.order import QueueOrder, fair_share_of
from ..queue.queues import Queues
from ..quota.headroom import Key
from .dispatch import DispatchHold, dispatch
from .reclaim_step import ReclaimStep
from .start_estimates import FIRST_PAGE, Effort, estimates

_ABOVE = Reason.ABOVE_MAXIMUM  # As in ``walk``.
_new = tuple.__new__  # What a NamedTuple calls in the end.


def decide(
    snapshot: Snapshot, now: float, *, until: str = "", effort: Effort | None = None
) -> Plan:
    """Everything that starts now, and for everything else its place, reason and estimate.

    The same snapshot and time give the same plan, in whatever order the snapshot lists its
    parts. Every waiting request is in the plan exactly once.

    ``until``: a request whose start is estimated wherever it stands, as far as ``effort`` is
    enough; others may have no estimate then.
    """
    # 1. Count what is free, held, promised and left.
    state = CycleState(snapshot, now)

    # 2. Put in order what waits.
    fair_share = fair_share_of(snapshot, state)
    queues = Queues(state.tree, snapshot.pending)
    queue = QueueOrder(queues, state, fair_share).as_tuple()

    # 3. Walk along the queue: who starts, and what holds the others.
    reclaim = ReclaimStep(
        allocations=lambda: snapshot.allocations,
        fair_share=lambda: fair_share,
        queues=lambda: queues,
    )
    started, held = dispatch(queue, state, PendingReclaims(reclaim))

    # 4. Ask back what others borrow, for those that are below their guarantee.
    claims = state.entitlement.among(each.request for each in held)
    asked = reclaim(claims, state)

    # 5. Estimate the start of those on the first page; what is asked back has its grace time.
    state.running.give_notice((stop.request_id for stop in asked.stops), snapshot.grace)
    expected = estimates(_page(held, until), state, until, effort)

    # 6. Write the plan.
    places = QueuePositions()
    return Plan(
        starts=tuple(s.start for s in started),
        waits=tuple(places.add(each, expected, asked.placements) for each in held),
        stops=asked.stops,
    )


def _page(held: Sequence[DispatchHold], until: str) -> tuple[PendingRequest, ...]:
    """The head of the queue; where one request is asked about, at least as far as that."""
    asked = (each.request for each in held if each.request.devices)
    page = tuple(islice(asked, FIRST_PAGE))
    if not until or any(each.id == until for each in page):
        return page
    more = tuple(asked)
    at = next((n for n, each in enumerate(more, 1) if each.id == until), 0)
    return page + more[:at]


class QueuePositions:
    """The places of those that wait, given to one after the other.

    A request without devices stands in nobody's way and takes no place. One that waits for
    room under a limit stands in the way of those that need room under the same limit only.

    Attributes:
        ahead: how many of those added stand in everybody's way.
    """

    def __init__(self) -> None:
        self.ahead = 0
        self._under: dict[Key, int] = {}

    def copy(self) -> QueuePositions:
        made = QueuePositions()
        made.ahead, made._under = self.ahead, self._under.copy()
        return made

    def add(
        self,
        held: DispatchHold,
        expected: Mapping[str, Estimate] = MappingProxyType({}),
        reclaiming: Collection[str] = (),
    ) -> Wait:
        """The next one, which takes its place; ``reclaiming`` wait for what was asked back."""
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
