"""Step 4 of the cycle: what is asked back for those that may ask."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from .books import Books
from .fairshare import Debts
from .model import Holding, Waiting
from .ordering import Order
from .placement import Pool
from .preemption import Reclaimed, nobody_to_ask, reclaim
from .queues import Queues
from .quota import Tally
from .room import room
from .walk import Held, Walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaim:
    """Says what is asked back in one cycle. Nothing is called before anybody asks.

    Attributes:
        holdings: what ran before this cycle.
        queues: all that waits, with or without what started in this cycle.
    """

    holdings: Callable[[], Sequence[Holding]]
    debts: Callable[[], Debts]
    queues: Callable[[], Queues]

    def __call__(self, claims: Iterable[Waiting], books: Books) -> Reclaimed:
        """What is asked back for these.

        They ask in the order in which they would be served: what a group is guaranteed is shared
        by its people as devices are, and who is first in line is not passed by who asks for less.
        """
        claims = tuple(claims)
        if not claims:
            return Reclaimed()
        before = self.holdings()
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
            Order(Queues(books.tree, claims), books, self.debts()).whole(),
            pool=books.pool,
            tally=books.tally,
            tree=books.tree,
            holdings=before,
            now=books.now,
            forms=books.variants,
            allowed=allowed,
            may_return=lambda request: books.kept_from(request) is None,
            reserved=books.due_devices(),
            in_vain=lambda found: self._in_vain(found, books),
        )

    def _in_vain(self, found: Reclaimed, books: Books) -> Collection[str]:
        """For whom something is asked back, and who would be held when that has left: by somebody
        ahead, who waits for room under the same limit."""
        then = books.copy()
        then.end_all({stop.request_id for stop in found.stops})
        asking = {stop.for_request for stop in found.stops}
        held, walk, running = set[str](), Walk(then), books.running.holdings
        for request in Order(self.queues(), then, self.debts()):
            if not asking:
                break
            if request.id not in running:
                served = walk.serve(request)
                if request.id in asking:
                    asking.remove(request.id)
                    if isinstance(served, Held) and served.limit is not None:
                        held.add(request.id)
        return held
