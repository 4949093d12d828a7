"""What those that lack devices will ask back, looked at before anybody behind them starts.

Who is asked is decided at the end of a cycle. Had whoever came later taken a device by then that
the asking back counts on, more would be stopped than is needed: one small job that starts in
between costs a larger one its work. The rule is Carrel's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ..model.snapshot import Allocation, PendingRequest
from ..placement.device_pool import DevicePool, Placement
from ..queue.cycle_state import CycleState
from .reclaim_rounds import ReclaimPlan


class PendingReclaims:
    """On the way along one queue: what is kept until those that lack devices have asked.

    Attributes:
        has_kept: whether free devices were kept at any time.
    """

    def __init__(
        self, reclaim: Callable[[Iterable[PendingRequest], CycleState], ReclaimPlan]
    ) -> None:
        """``reclaim``: says what is asked back for these, with books that have come so far."""
        self._reclaim = reclaim
        self._lacking: list[PendingRequest] = []
        self._new: list[PendingRequest] = []
        self._placements: tuple[Placement, ...] = ()
        self._victims: tuple[Allocation, ...] = ()
        self._relocated_for: frozenset[str] = frozenset()
        """For whom something will be moved."""
        self.has_set_aside = False

    def copy(self) -> PendingReclaims:
        made = PendingReclaims(self._reclaim)
        made._lacking, made._new = self._lacking.copy(), self._new.copy()
        made._placements, made._victims, made._relocated_for = (
            self._placements,
            self._victims,
            self._relocated_for,
        )
        made.has_set_aside = self.has_set_aside
        return made

    def add(self, request: PendingRequest) -> None:
        """Too few devices are free for it, or those are for somebody ahead of it."""
        self._new.append(request)

    def set_aside(self, head: PendingRequest, state: CycleState) -> bool:
        """Set aside, until it is ``over``, what those that lack devices count on; whether that
        is or was anything, so that less or more is free for others.

        Who will be asked counts as leaving, as in the next cycle. The head is seen to by
        backfill, which knows of that; of what is free now, the others' part is kept.
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
        """Whether anything will be moved."""
        return bool(self._relocated_for)

    def allows(self, allocation: Allocation, state: CycleState) -> bool:
        """Whether all for whom something will be moved have their devices beside this as well,
        whose own are taken already: what is moved needs a place."""
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
        """The books are what they were: nobody was asked yet."""
        for allocation in self._victims:
            state.running.remove(allocation.request_id)
            state.running.add(allocation)
        state.restore(self._placements)
        self._victims = self._placements = ()


def _free(placed: Placement, pool: DevicePool) -> Iterator[Placement]:
    """What of it is free now: its part of a device, or whole devices and what is left of those
    that are lent in parts."""
    within = tuple(filter(pool.is_available, placed.devices))
    in_parts = () if placed.share else tuple(filter(pool.is_shared, within))
    if whole := tuple(each for each in within if each not in in_parts):
        yield Placement(devices=whole, share=placed.share)
    for device in in_parts:
        yield Placement(devices=(device,), share=pool.remaining_share(device))
