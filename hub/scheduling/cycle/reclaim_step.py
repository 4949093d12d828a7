"""Step 4 of the cycle: what is asked back for those that may ask."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from ..model.snapshot import Allocation, PendingRequest, Snapshot
from ..placement.device_pool import DevicePool
from ..placement.gangs import least
from ..preemption.reclaim import nobody_to_ask, reclaim
from ..preemption.reclaim_rounds import ReclaimPlan
from ..preemption.victim_search import cost
from ..queue.cycle_state import CycleState
from ..queue.fair_share import FairShare
from ..queue.order import QueueOrder, debts_of
from ..queue.queues import Queues
from ..quota.headroom import cap, cap_of_one, is_as_large, is_as_large_for_one, room
from ..quota.tree import Tally, size
from .dispatch import Dispatch, DispatchHold, DispatchStart


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimStep:
    """Says what is asked back in one cycle. Nothing is called before anybody asks.

    Attributes:
        holdings: what ran before this cycle.
        queues: all that waits, with or without what started in this cycle.
    """

    holdings: Callable[[], Sequence[Allocation]]
    debts: Callable[[], FairShare]
    queues: Callable[[], Queues]

    def __call__(self, claims: Iterable[PendingRequest], books: CycleState) -> ReclaimPlan:
        """What is asked back for these.

        They ask in the order in which they would be served: what a group is guaranteed is shared
        by its people as devices are, and who is first in line is not passed by who asks for less.
        """
        claims = tuple(claims)
        if not claims:
            return ReclaimPlan()
        before = self.holdings()
        if nobody_to_ask(claims, before, books.tree, books.entitled):
            return ReclaimPlan()

        def allowed(
            form: PendingRequest, fewest: PendingRequest, pool: DevicePool, tally: Tally
        ) -> bool:
            """Limits look at all that it would like."""
            limit = room(form, books.tree, tally, books.budgets)
            return (
                limit is None
                and books.leaves_guarantees(fewest)
                and books.would_leave_what_is_kept(fewest, pool, tally)
            )

        return reclaim(
            QueueOrder(Queues(books.tree, claims), books, self.debts()).whole(),
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

    def _in_vain(self, found: ReclaimPlan, books: CycleState) -> Collection[str]:
        """For whom something is asked back, and who would be held when that has left: since it
        would run into a reservation, or could not give back what others are guaranteed, or behind
        who is first in line for a limit."""
        then, queues = books.copy(), self.queues()
        then.end_all(stop.request_id for stop in found.stops)
        asking = [queues.waiting[name] for name in {stop.for_request for stop in found.stops}]
        held = {each.id for each in asking if then.kept_from(least(each)) is not None}
        lines: dict[str, set[str]] = {}
        for each in asking:
            top = None if each.id in held else _widest_line(each, then, queues)
            if top is not None:
                lines.setdefault(top, set()).add(each.id)
        for top, names in lines.items():
            held.update(self._in_line(names, top, then.copy(), books))
        return held

    def _in_line(
        self, asking: Collection[str], top: str, then: CycleState, books: CycleState
    ) -> Iterator[str]:
        """Those that stand in line for a limit of a group or of one below it, along the queue of
        that group alone."""
        running = books.running.holdings
        waiting = (each for each in self.queues().of(top) if each.id not in running)
        walk, left = Dispatch(then), set(asking)
        for request in QueueOrder(Queues(then.tree, waiting), then, self.debts()):
            if request.id in left:
                left.remove(request.id)
                served = walk.serve(request)
                if isinstance(served, DispatchHold) and served.limit is not None:
                    yield request.id
                if not left:
                    return
            elif not walk.passes_over(request):
                walk.serve(request)


def _widest_line(request: PendingRequest, books: CycleState, queues: Queues) -> str | None:
    """The topmost group at a limit of which anybody may stand in line ahead of this request:
    somebody waits for more than it leaves. One as large as the pool is full when that is."""
    tally, lendable = books.tally, books.caps.lendable
    for group in reversed(books.tree.chain(request.group)):
        left = inf if is_as_large(group, lendable) else cap(group) - tally.groups[group.name]
        of_one = (
            inf
            if is_as_large_for_one(group, lendable)
            else cap_of_one(group) - tally.users[group.name, request.owner]
        )
        if left == of_one == inf:
            continue
        for each in queues.of(group.name):
            weight = size(each.devices, each.share)
            if weight > left or (weight > of_one and each.owner == request.owner):
                return group.name
    return None


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
