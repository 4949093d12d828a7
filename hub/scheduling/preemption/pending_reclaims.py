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
        self._kept: tuple[Placement, ...] = ()
        self._asked: tuple[Allocation, ...] = ()
        self._moved_for: frozenset[str] = frozenset()
        """For whom something will be moved."""
        self.has_kept = False

    def copy(self) -> PendingReclaims:
        made = PendingReclaims(self._reclaim)
        made._lacking, made._new = self._lacking.copy(), self._new.copy()
        made._kept, made._asked, made._moved_for = self._kept, self._asked, self._moved_for
        made.has_kept = self.has_kept
        return made

    def lacks(self, request: PendingRequest) -> None:
        """Too few devices are free for it, or those are for somebody ahead of it."""
        self._new.append(request)

    def keep(self, head: PendingRequest, books: CycleState) -> bool:
        """Set aside, until it is ``over``, what those that lack devices count on; whether that
        is or was anything, so that less or more is free for others.

        Who will be asked counts as leaving, as in the next cycle. The head is seen to by
        backfill, which knows of that; of what is free now, the others' part is kept.
        """
        more = tuple(books.entitled.among(self._new))
        self._new.clear()
        if not more:
            return False
        self._lacking += more
        before = self._asked or self._kept
        self.over(books)
        claims = books.entitled.among(self._lacking)
        found = self._reclaim(claims, books)
        asked = tuple(books.running.holdings[stop.request_id] for stop in found.stops)
        others = (placed for name, placed in found.waiting.items() if name != head.id)
        kept = tuple(free for each in others for free in _free(each, books.pool))
        self._moved_for = frozenset(stop.for_request for stop in found.stops if stop.moved)
        self._set_aside(asked, kept, books)
        self.has_kept = self.has_kept or bool(kept)
        return bool(before or asked or kept)

    @property
    def moves(self) -> bool:
        """Whether anything will be moved."""
        return bool(self._moved_for)

    def lets(self, holding: Allocation, books: CycleState) -> bool:
        """Whether all for whom something will be moved have their devices beside this as well,
        whose own are taken already: what is moved needs a place."""
        asked, kept = self._asked, self._kept
        self.over(books)
        then = books.copy()
        then.start(holding)
        found = self._reclaim(then.entitled.among(self._lacking), then)
        self._set_aside(asked, kept, books)
        return self._moved_for <= found.waiting.keys()

    def _set_aside(
        self, asked: tuple[Allocation, ...], kept: tuple[Placement, ...], books: CycleState
    ) -> None:
        self._asked, self._kept = asked, kept
        books.running.leave(each.request_id for each in asked)
        books.set_aside(kept)

    def over(self, books: CycleState) -> None:
        """The books are what they were: nobody was asked yet."""
        for holding in self._asked:
            books.running.remove(holding.request_id)
            books.running.add(holding)
        books.put_back(self._kept)
        self._asked = self._kept = ()


def _free(placed: Placement, pool: DevicePool) -> Iterator[Placement]:
    """What of it is free now: its part of a device, or whole devices and what is left of those
    that are lent in parts."""
    within = tuple(filter(pool.has_room_on, placed.devices))
    in_parts = () if placed.share else tuple(filter(pool.is_in_parts, within))
    if whole := tuple(each for each in within if each not in in_parts):
        yield Placement(devices=whole, share=placed.share)
    for device in in_parts:
        yield Placement(devices=(device,), share=pool.left_of(device))
