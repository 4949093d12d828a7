"""Step 4 of the cycle: what is asked back for those that may ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .books import Books
from .fairshare import Debts
from .model import Holding, Waiting
from .ordering import Order
from .placement import Pool
from .preemption import Reclaimed, nobody_to_ask, reclaim
from .queues import Queues
from .quota import Tally
from .room import room


def reclaim_for(
    claims: Iterable[Waiting],
    holdings: Callable[[], Sequence[Holding]],
    books: Books,
    debts: Debts,
) -> Reclaimed:
    """What is asked back for these, of what ran before this cycle (``holdings``, which is called
    where anybody asks).

    They ask in the order in which they would be served: what a group is guaranteed is shared by
    its people as devices are, and who is first in line is not passed by who asks for less.
    """
    claims = tuple(claims)
    if not claims:
        return Reclaimed()
    before = holdings()
    if nobody_to_ask(claims, before, books.tree, books.entitled):
        return Reclaimed()

    def allowed(form: Waiting, fewest: Waiting, pool: Pool, tally: Tally) -> bool:
        """Limits look at all that it would like."""
        limit = room(form, books.tree, tally, books.budgets)
        return (
            limit is None
            and books.leaves_guarantees(fewest)
            and books.would_leave_what_is_kept(fewest, pool, tally)
        )

    return reclaim(
        Order(Queues(books.tree, claims), books, debts).whole(),
        pool=books.pool,
        tally=books.tally,
        tree=books.tree,
        holdings=before,
        now=books.now,
        forms=books.variants,
        allowed=allowed,
        may_return=lambda request: books.kept_from(request) is None,
    )
