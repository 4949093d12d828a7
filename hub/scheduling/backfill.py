"""EASY backfill: who may start although somebody ahead lacks devices.

The head of the queue is given the earliest time at which it is expected to fit. Whoever comes
later starts only where that does not move: it ends before, or it uses devices that the head
leaves free even then (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; Mu'alem and
Feitelson, IEEE TPDS 2001).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from math import inf

from .books import Books
from .gangs import forms, least, smallest_member
from .line import Line
from .model import Waiting
from .placement import Placement, Pool
from .quota import THOUSAND, size


class Backfill:
    """The head's time and devices, worked out when somebody else could start.

    Attributes:
        at: when the head is expected to fit; None: not asked yet.
    """

    def __init__(self, head: Waiting, variants: Sequence[Waiting], books: Books) -> None:
        self.head = head
        self.at: float | None = None
        self._variants = variants
        self._fewest = 0 if head.share else size(least(head).devices)
        self._smallest = 0 if head.share else smallest_member(head)
        self._books = books
        self._spare = books.pool
        """What is free now and not for the head."""
        self._extra = 0
        """Thousandths of a device that the head leaves free when it fits."""

    def copy(self, books: Books) -> Backfill:
        made = copy(self)
        made._books = books
        made._spare = self._spare.copy()
        return made

    def look_ahead(self, line: Line) -> None:
        """Work out when the head starts, and keep room for it under its limits until then."""
        if self.at is not None:
            return
        pool = self._books.pool.copy()
        at, placed = self._earliest(pool)
        self._spare = self._books.pool.copy()
        if placed is not None:
            self._keep(placed)
        self._extra = pool.free_count() * THOUSAND - self._books.kept_for_others(self.head)
        self.at = at
        line.keep_room(self.head, at, self._books)

    def look_again(self) -> None:
        """Something else is kept or leaving: what was worked out is out of date."""
        self.at = None

    def allows(self, request: Waiting, ends_at: float) -> bool:
        """Whether there is time or room for it beside the head, as far as that is known yet."""
        if self.at is None or ends_at <= self.at:
            return True
        if size(request.devices, request.share) > self._extra:
            return False
        return any(map(self._spare.fits, self._books.variants(request)))

    def take(self, fitting: Sequence[Waiting], ends_at: float) -> Placement | None:
        """Devices that are free for one request, in one of its variants, until it ends."""
        pool, home = self._books.pool, self._books.home(fitting[0].group)
        if self.at is not None and ends_at <= self.at:
            placed = pool.take(fitting[0], home)
            if placed is not None:
                self._not_spare(placed)
            return placed
        weight = size(fitting[0].devices, fitting[0].share)
        if weight > self._extra:
            return None
        for each in fitting:
            placed = self._spare.take(each, home)
            if placed is not None:
                pool.hold(placed)
                self._extra -= weight
                return placed
        return None

    def _keep(self, placed: Placement) -> None:
        """The head's devices are not spare. One that is lent as a whole until then does not come
        to have room for others next to the head's part of it."""
        if placed.share is None or self._spare.has_room_on(placed.devices[0]):
            self._spare.hold(placed)

    def _not_spare(self, placed: Placement) -> None:
        """It ends before the head starts. What is left of a device that it breaks is the head's:
        nobody may be there for longer."""
        if placed.share is not None and not self._spare.is_in_parts(placed.devices[0]):
            placed = Placement(devices=placed.devices)
        self._spare.hold(placed)

    def _earliest(self, pool: Pool) -> tuple[float, Placement | None]:
        """When the head fits as what runs comes to its end, and where. The pool changes.

        Where nothing is kept for others it is asked again only when a node has come to have
        enough for a member of the head.
        """
        books = self._books
        kept = books.kept_for_others(self.head)
        for end in pool.as_they_end(books.running.ends(), 0 if kept else self._smallest):
            for each in self._asks_for(pool.free_count() * THOUSAND, kept):
                placed = pool.take(each)
                if placed is not None:
                    return end, placed
        return inf, None

    def _asks_for(self, free: int, kept: int) -> Sequence[Waiting]:
        """The head in its variants, a gang with as many members as leave others what is kept
        for them; nothing where so many thousandths of a device cannot be enough."""
        if not kept:
            return self._variants if free >= self._fewest else ()
        leaving = (
            each for each in forms(self.head) if free - size(each.devices, each.share) >= kept
        )
        asked = next(leaving, None)
        return () if asked is None else self._books.variants(asked)
