"""Step 4 of the cycle: who may ask back what others borrow, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .books import Books
from .model import Holding, PriorityClass, Waiting
from .preemption import Reclaimed, reclaim
from .queues import entry, rank
from .quota import THOUSAND, size
from .room import room


class Entitled:
    """Who may ask, as the books are now."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._left: dict[str, int] = {}

    def __contains__(self, request: Waiting) -> bool:
        """Whether it is urgent, or some group of its chain stays within its guarantee with it."""
        if not request.devices:
            return False
        if request.priority is PriorityClass.URGENT:
            return True
        return size(request.devices, request.share) <= self.left(request.group)

    def left(self, group: str) -> int:
        """Of the guarantees along a group's chain, the most that is left of one."""
        if group not in self._left:
            tally, guaranteed = self._books.tally.groups, self._books.guaranteed
            self._left[group] = max(
                (
                    guaranteed[each.name] * THOUSAND - tally[each.name]
                    for each in self._books.tree.chain(group)
                ),
                default=0,
            )
        return self._left[group]


def reclaim_for(claims: Iterable[Waiting], holdings: Sequence[Holding], books: Books) -> Reclaimed:
    """What is asked back for these, of what ran before this cycle.

    Inside a class they ask in the order in which one owner's requests are served. It need not
    be that of the whole queue: all ask for what they are guaranteed, and nobody's guarantee is
    another's.
    """
    asking = sorted(claims, key=lambda each: (rank(each.priority), entry(each)[0]))
    if not asking:
        return Reclaimed()
    return reclaim(
        asking,
        pool=books.pool,
        tally=books.tally,
        tree=books.tree,
        holdings=holdings,
        now=books.now,
        forms=books.variants,
        allowed=lambda request, tally: room(request, books.tree, tally, books.budgets) is None,
    )
