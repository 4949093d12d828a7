"""Set devices aside during dispatch for preemptions that are decided at the end of the cycle.

If a later request took a free device that a preemption counts on, more work than necessary would
be preempted: a small job that starts in between would cost a larger one its work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ..model.snapshot import Allocation, PendingRequest
from ..placement.device_pool import DevicePool, Placement
from ..queue.cycle_state import CycleState
from .reclaim_rounds import ReclaimPlan


class PendingReclaims:
    """The requests that lack devices during one dispatch, and the devices set aside for them.

    Attributes:
        has_set_aside: whether free devices were set aside at any time.
    """

    def __init__(
        self, reclaim: Callable[[Iterable[PendingRequest], CycleState], ReclaimPlan]
    ) -> None:
        """``reclaim``: selects the victims for these requests, given the state of the dispatch."""
        self._reclaim = reclaim
        self._lacking: list[PendingRequest] = []
        self._new: list[PendingRequest] = []
        self._placements: tuple[Placement, ...] = ()
        self._victims: tuple[Allocation, ...] = ()
        self._relocated_for: frozenset[str] = frozenset()
        """Requests for which other work will be relocated."""
        self.has_set_aside = False

    def copy(self) -> PendingReclaims:
        clone = PendingReclaims(self._reclaim)
        clone._lacking, clone._new = self._lacking.copy(), self._new.copy()
        clone._placements, clone._victims, clone._relocated_for = (
            self._placements,
            self._victims,
            self._relocated_for,
        )
        clone.has_set_aside = self.has_set_aside
        return clone

    def add(self, request: PendingRequest) -> None:
        """Add a request that lacks devices: too few are free, or a request ahead reserves them."""
        self._new.append(request)

    def set_aside(self, head: PendingRequest, state: CycleState) -> bool:
        """Set aside the devices that the added requests count on; return whether any changed.

        It lasts until ``release``. Victims count as leaving, as in the next cycle. Backfill sees
        that and reserves for the head; the free devices that the other requests count on are
        withheld.
        """
        more = tuple(state.entitlement.among(self._new))
        self._new.clear()
        if not more:
            return False
        self._lacking += more
        before = self._victims or self._placements
        self.release(state)
        claims = state.entitlement.among(self._lacking)
        found = self._reclaim(claims, state)
        victims = tuple(state.running.allocations[stop.request_id] for stop in found.stops)
        others = (placed for name, placed in found.placements.items() if name != head.id)
        placements = tuple(free for each in others for free in _free(each, state.pool))
        self._relocated_for = frozenset(stop.for_request for stop in found.stops if stop.relocated)
        self._apply(victims, placements, state)
        self.has_set_aside = self.has_set_aside or bool(placements)
        return bool(before or victims or placements)

    @property
    def relocates(self) -> bool:
        """Whether any work would be relocated."""
        return bool(self._relocated_for)

    def allows(self, allocation: Allocation, state: CycleState) -> bool:
        """Return whether all requests with relocations still get their devices beside it.

        The devices of this allocation are taken already; relocated work needs devices too.
        """
        victims, placements = self._victims, self._placements
        self.release(state)
        then = state.copy()
        then.start(allocation)
        found = self._reclaim(then.entitlement.among(self._lacking), then)
        self._apply(victims, placements, state)
        return self._relocated_for <= found.placements.keys()

    def _apply(
        self, victims: tuple[Allocation, ...], placements: tuple[Placement, ...], state: CycleState
    ) -> None:
        self._victims, self._placements = victims, placements
        state.running.give_notice(each.request_id for each in victims)
        state.set_aside(placements)

    def release(self, state: CycleState) -> None:
        """Restore the state; no notice has been sent yet."""
        for allocation in self._victims:
            state.running.remove(allocation.request_id)
            state.running.add(allocation)
        state.restore(self._placements)
        self._victims = self._placements = ()


def _free(placed: Placement, pool: DevicePool) -> Iterator[Placement]:
    """Yield the free part of a placement: its share, or whole devices and unused shares."""
    within = tuple(filter(pool.is_available, placed.devices))
    in_parts = () if placed.share else tuple(filter(pool.is_shared, within))
    if whole := tuple(each for each in within if each not in in_parts):
        yield Placement(devices=whole, share=placed.share)
    for device in in_parts:
        yield Placement(devices=(device,), share=pool.remaining_share(device))
