"""The order of the queue.

It is computed before anything is placed, as if all requests were served one after the other: every
request is charged at once, so that the next one of its owner is further back. Fifty submissions of
one user therefore alternate with those of other users.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heapreplace, merge
from itertools import chain
from math import inf
from operator import itemgetter

from ..model.snapshot import Group, PendingRequest, PriorityClass, Snapshot
from ..quota.headroom import group_cap, member_cap
from ..quota.tree import THOUSAND
from .cycle_state import CycleState
from .fair_share import FairShare
from .queues import Entry, Queues, Served

When = tuple[bool, float, float, str]
Turn = tuple[When, Served | None]
"""A position and the request served there; None where a group only announces its first position.
Several positions are equal only where one group serves them one after the other."""

_when: Callable[[Turn], When] = itemgetter(0)
_served: Callable[[Turn], Served | None] = itemgetter(1)
_request: Callable[[Served], PendingRequest] = itemgetter(0)
Merge = Callable[[list[Iterator[Turn]]], Iterable[Turn]]


def _one_by_one(turns: list[Iterator[Turn]]) -> Iterable[Turn]:
    return merge(*turns, key=_when)


def _at_once(turns: list[Iterator[Turn]]) -> Iterable[Turn]:
    return sorted(chain.from_iterable(turns), key=_when)


class QueueOrder:
    """The order of all queued requests at one moment; later starts do not change it.

    0. preemptors until they start, then the requests relocated for them, while entitled (within
       guaranteed quota, or urgent). A victim and all other requests stay behind the preemptor;
       otherwise the same devices would be reclaimed again.
    1. requests of a group whose reservation is due, up to its size
    2. priority class: urgent, interactive, normal, opportunistic; in each class first the expedited
       requests, whose node or device failed (Slurm's expedited requeue), the oldest first
    3. at each level of the tree, from the root: requests within their group's guaranteed quota
    4. among siblings, the least charge over weight (``fair_share``); among equals the sibling
       whose next request is older
    5. to 8. among the requests of one owner: ``queues.entry``

    In 3 and 4 every request ahead counts as running: its devices and expected use are added to its
    owner and all groups above (virtual service, as the start tags of Goyal, Vin and Cheng,
    "Start-time fair queueing", SIGCOMM 1996). A request that a limit would hold anyway is not
    charged at the group of that limit and above. It has the position of the request before it in
    its group, or the first of the group. Every class starts with the real allocations.

    Siblings do not influence the order inside a group: the whole order is a merge of its parts.
    """

    def __init__(
        self,
        queues: Queues,
        state: CycleState,
        fair_share: FairShare,
        skipped_groups: Collection[str] = (),
        preemptors: Collection[str] = (),
    ) -> None:
        """Args:
        skipped_groups: groups that do not influence the order of the others.
        preemptors: requests for which victims will have been stopped."""
        self._queues = queues
        self._skipped_groups, self._future_preemptors = skipped_groups, preemptors
        self._tree = state.tree
        self._tally = state.tally.copy()
        self._fair_share = fair_share
        self._due = state.due()
        self._guaranteed = state.guaranteed
        self._entitlement = state.entitlement
        self._now = state.now

    def __iter__(self) -> Iterator[PendingRequest]:
        """Yield the requests lazily, one after the other."""
        return self._in_order(_one_by_one)

    def as_tuple(self) -> tuple[PendingRequest, ...]:
        """Return all requests in order; faster than iteration."""
        return tuple(self._in_order(_at_once))

    def _in_order(self, merged: Merge) -> Iterator[PendingRequest]:
        first = {request.id: request for request in chain(self._preemptors(), self._due_requests())}
        yield from first.values()
        for priority in self._queues.classes:
            below = self._below(None, priority, merged, self._skipped_groups)
            requests = map(_request, below)
            expedited = self._queues.expedited(priority)
            if expedited:
                new = {each.id: each for each in expedited if each.id not in first}
                yield from new.values()
                first |= new
            yield from (each for each in requests if each.id not in first) if first else requests
        yield from self._queues.orphans()

    def _preemptors(self) -> Iterator[PendingRequest]:
        """Yield the requests of rule 0."""
        victims, pending = self._queues.victims(), self._queues.pending
        stopped_for = (each.preemptor for each in victims)
        others = (pending.get(name) for name in chain(stopped_for, self._future_preemptors))
        moved = (each for each in victims if each.moved_for)
        for request in chain(filter(None, others), moved):
            yield from (each for each in self._behind(request) if each in self._entitlement)

    def _behind(self, request: PendingRequest) -> Iterator[PendingRequest]:
        """Return a request, preceded by the preemptors for which it was itself preempted."""
        found: dict[str, PendingRequest] = {}
        at: PendingRequest | None = request
        while at is not None and at.id not in found:
            found[at.id] = at
            at = self._queues.pending.get(at.preemptor)
        return reversed(found.values())

    def _due_requests(self) -> Iterator[PendingRequest]:
        """Yield the requests of rule 1, up to the unused size of each due reservation.

        Requests that a limit holds use a part of it as well.
        """
        for reserved in self._due:
            left = reserved.devices * THOUSAND - self._tally.groups[reserved.group]
            for priority in PriorityClass if self._tree.chain(reserved.group) else ():
                for request, weight, _, _ in self._below(reserved.group, priority, _one_by_one):
                    if left <= 0:
                        break
                    if 0 < weight <= left:
                        left -= weight
                        yield request

    def _below(
        self,
        parent: str | None,
        priority: PriorityClass,
        merged: Merge,
        skipped_groups: Collection[str] = (),
    ) -> Iterator[Served]:
        """Return the requests of a group and its subtree in order; for None, of all roots."""
        children = [
            child
            for child in self._queues.groups_below(parent, priority)
            if child.name not in skipped_groups
        ]
        if parent is None and len(children) == 1 and self._left_of_guarantee(children[0]) <= 0:
            # A single root without unused guaranteed quota changes no order.
            return self._below(children[0].name, priority, merged, skipped_groups)
        turns = [self._of_group(child, priority, merged, skipped_groups) for child in children]
        if parent is not None:
            turns.append(self._of_owners(parent, priority))
        return filter(None, map(_served, turns[0] if len(turns) == 1 else merged(turns)))

    def _of_owners(self, group: str, priority: PriorityClass) -> Iterator[Turn]:
        """Yield the requests of all owners directly in a group, with their positions.

        A request whose deadline is in danger is placed earlier by its own cost, and is charged all
        the same: however many deadlines there are, they pass other requests by no more than that.
        """
        now = self._now
        queues = self._queues.of_owners(group, priority, now)
        heap: list[tuple[When, int, int, Sequence[Entry]]] = []
        for charged, queue in zip(
            self._fair_share.of_owners(group, queues), queues.values(), strict=True
        ):
            (_, danger, submitted_at, name), served = queue[0]
            begins = charged if danger > now else charged - served[2]
            heap.append(((True, begins, submitted_at, name), charged, 0, queue))
        heapify(heap)
        while heap:
            turn, charged, at, queue = heap[0]
            served = queue[at][1]
            yield turn, served
            charged += served[2]
            at += 1
            if at == len(queue):
                heappop(heap)
                continue
            (_, danger, submitted_at, name), served = queue[at]
            begins = charged if danger > now else charged - served[2]
            own = (True, begins, submitted_at, name)
            heapreplace(heap, (own if own > turn else turn, charged, at, queue))

    def _of_group(
        self, group: Group, priority: PriorityClass, merged: Merge, skipped_groups: Collection[str]
    ) -> Iterator[Turn]:
        """Yield the requests of a child group, whose limits and guaranteed quota apply.

        The first position serves nothing and precedes all others of the group: the group is
        expanded only when the merge reaches it. Requests within its guaranteed quota come first,
        then the rest. A request that a limit of the group or of one below would hold has the last
        position and is not charged.
        """
        name, part = group.name, group.weight
        left, charged = self._left_of_guarantee(group), self._fair_share.of(name)
        turn: When = (left <= 0, charged / part, -inf, name)
        yield turn, None
        requests = self._below(name, priority, merged, skipped_groups)
        most, member_held, held = group_cap(group), member_cap(group), self._tally.groups[name]
        users, of_owners = self._tally.users, dict[str, int]()
        later: list[Served] = []
        # The second pass begins with the requests that the first one deferred.
        first = requests if left > 0 else ()
        for lent, queue in ((False, first), (True, chain(later, requests))):
            for served in queue:
                request, weight, needs, beyond = served
                if not lent and not 0 < weight <= left:
                    later.append(served)
                    continue
                owner = request.owner
                of_one = of_owners.get(owner)
                if of_one is None:
                    of_one = users.get((name, owner), 0)
                of_one += weight
                if beyond or held + weight > most or of_one > member_held:
                    if lent:
                        yield turn, (request, weight, needs, True)
                    else:
                        later.append(served)
                    continue
                key = (lent, charged / part, request.submitted_at, request.id)
                if key > turn:  # noqa: PLR1730 - the innermost loop of all
                    turn = key
                yield turn, served
                held += weight
                charged += needs
                of_owners[owner] = of_one
                if not lent:
                    left -= weight
                    if left <= 0:
                        break

    def _left_of_guarantee(self, group: Group) -> int:
        return self._guaranteed.get(group.name, 0) * THOUSAND - self._tally.groups[group.name]


def fair_share_of(snapshot: Snapshot, state: CycleState) -> FairShare:
    """Return the fair share of a snapshot."""
    return FairShare(state.tree, snapshot.use, snapshot.allocations, state.now)


def in_order(snapshot: Snapshot, state: CycleState) -> tuple[PendingRequest, ...]:
    """Return all queued requests in order."""
    queues = Queues(state.tree, snapshot.pending, learned=state.learned_order)
    return QueueOrder(queues, state, fair_share_of(snapshot, state)).as_tuple()
