"""What those that lack devices will ask back, looked at before anybody behind them starts.

Who is asked is decided at the end of a cycle. Had whoever came later taken a device by then that
the asking back counts on, more would be stopped than is needed: one small job that starts in
between costs a larger one its work. The rule is Carrel's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from .books import Books
from .model import Holding, Waiting
from .placement import Placement, Pool
from .preemption import Reclaimed


class Asking:
    """On the way along one queue: what is kept until those that lack devices have asked.

    Attributes:
        has_kept: whether free devices were kept at any time.
    """

    def __init__(self, reclaim: Callable[[Iterable[Waiting], Books], Reclaimed]) -> None:
        """``reclaim``: says what is asked back for these, with books that have come so far."""
        self._reclaim = reclaim
        self._lacking: list[Waiting] = []
        self._new: list[Waiting] = []
        self._kept: tuple[Placement, ...] = ()
        self._asked: tuple[Holding, ...] = ()
        self.has_kept = False

    def copy(self) -> Asking:
        made = Asking(self._reclaim)
        made._lacking, made._new = self._lacking.copy(), self._new.copy()
        made._kept, made._asked = self._kept, self._asked
        made.has_kept = self.has_kept
        return made

    def lacks(self, request: Waiting) -> None:
        """Too few devices are free for it, or those are for somebody ahead of it."""
        self._new.append(request)

    def keep(self, head: Waiting, books: Books) -> bool:
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
        self._asked = tuple(books.running.holdings[stop.request_id] for stop in found.stops)
        books.running.leave(found.stops)
        others = (placed for name, placed in found.waiting.items() if name != head.id)
        self._kept = tuple(free for each in others for free in _free(each, books.pool))
        self.has_kept = self.has_kept or bool(self._kept)
        books.set_aside(self._kept)
        return bool(before or self._asked or self._kept)

    def over(self, books: Books) -> None:
        """The books are what they were: nobody was asked yet."""
        for holding in self._asked:
            books.running.remove(holding.request_id)
            books.running.add(holding)
        books.put_back(self._kept)
        self._asked = self._kept = ()


def _free(placed: Placement, pool: Pool) -> Iterator[Placement]:
    """What of it is free now: its part of a device, or whole devices and what is left of those
    that are lent in parts."""
    within = tuple(filter(pool.has_room_on, placed.devices))
    in_parts = () if placed.share else tuple(filter(pool.is_in_parts, within))
    if whole := tuple(each for each in within if each not in in_parts):
        yield Placement(devices=whole, share=placed.share)
    for device in in_parts:
        yield Placement(devices=(device,), share=pool.left_of(device))
