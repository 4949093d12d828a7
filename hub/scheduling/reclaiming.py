"""Step 4 of the cycle: what is asked back for those that may ask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .books import Books
from .model import Holding, Waiting
from .preemption import Reclaimed, reclaim
from .queues import entry, rank
from .room import room


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
