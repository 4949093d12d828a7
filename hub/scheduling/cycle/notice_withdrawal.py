"""Whose notice serves nobody any more, looked at while the grace time runs.

Between the notice and its end the world goes on: whoever asks may come to ask for less, may be
held by a budget, or find that something else has ended. What was asked to go then loses its work
for nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from ..model.snapshot import Allocation, Snapshot
from ..preemption.stop_cost import cost
from ..queue.cycle_state import CycleState
from ..queue.fair_share import FairShare
from ..queue.order import QueueOrder
from ..queue.queues import Queues
from .decision import debts_of
from .dispatch import Dispatch, DispatchStart

_Begun = frozenset[tuple[str, int]]
"""Who starts, with how many devices."""


def spared(
    snapshot: Snapshot, asked: Mapping[str, str], now: float, *, over: Collection[str] = ()
) -> tuple[str, ...]:
    """Those that were asked to go and may stay.

    1. Suppose that all that was asked to go has gone: who starts, of all those that may ask? Whom
       it was asked for goes first (``QueueOrder``).
    2. One after the other, the dearest to stop first: where as much starts although it is
       still there, it stays.
    3. But where somebody would not start even so, those that were asked for it stay asked until
       their grace time is over: what holds it may pass.

    Attributes:
        asked: for which request each of them was asked to go, by its own request. Whatever else
            is leaving goes in any case.
        over: those whose grace time is over.
    """
    trial = _Trial(snapshot, asked, now)
    begun = trial.begun(())
    held = trial.wanted - {name for name, _ in begun}
    stay: tuple[str, ...] = ()
    for name in trial.dearest_first():
        if asked[name] in held and name not in over:
            continue
        more = (*stay, name)
        if trial.begun(more) == begun:
            stay = more
    return stay


class _Trial:
    """What would start were some of those that were asked to go still there."""

    def __init__(self, snapshot: Snapshot, asked: Mapping[str, str], now: float) -> None:
        self._snapshot, self._asked, self._now = snapshot, asked, now
        books = CycleState(snapshot, now)
        self.wanted = {each.id for each in snapshot.waiting} & set(asked.values())
        may_ask = {each.id for each in books.entitled.among(snapshot.waiting)} | self.wanted
        claims = (each for each in snapshot.waiting if each.id in may_ask)
        self._queues = Queues(books.tree, claims)
        self._debts: FairShare = debts_of(snapshot, books)

    def dearest_first(self) -> list[str]:
        costs = {
            each.request_id: cost(replace(each, leaving=False), self._now)
            for each in self._snapshot.holdings
            if each.request_id in self._asked
        }
        return sorted(costs, key=lambda name: (-costs[name], name))

    def begun(self, stay: Collection[str]) -> _Begun:
        holdings = tuple(_left(self._snapshot.holdings, stay))
        books = CycleState(replace(self._snapshot, holdings=holdings), self._now)
        return frozenset(
            (each.request.id, len(each.holding.devices)) for each in self._starts(books)
        )

    def _starts(self, books: CycleState) -> Iterator[DispatchStart]:
        walk = Dispatch(books)
        for request in QueueOrder(self._queues, books, self._debts, promised=sorted(self.wanted)):
            served = None if walk.passes_over(request) else walk.serve(request)
            if isinstance(served, DispatchStart):
                yield served


def _left(holdings: Iterable[Allocation], stay: Collection[str]) -> Iterator[Allocation]:
    """What runs once all others that leave have gone."""
    for each in holdings:
        if each.request_id in stay:
            yield replace(each, leaving=False, leaves_at=None)
        elif not each.leaving:
            yield each
