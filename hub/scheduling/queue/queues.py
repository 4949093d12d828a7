"""Queued requests by priority class, group and owner; those of one owner in queue order."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from operator import itemgetter
from types import MappingProxyType

from ..model.learned_order import LearnedOrder, features
from ..model.snapshot import Group, PendingRequest, PriorityClass
from ..quota.tree import THOUSAND, GroupTree, size
from .fair_share import MICRO, cost
from .running_set import expected_seconds

AGEING = 0.01
"""Device-seconds of expected work that one second of waiting offsets. It prevents starvation; a
larger value favours age over size, and lengthens waits."""
DANGER = 2.0
"""A deadline is in danger when less than this many times the expected runtime is left."""

_RANK = MappingProxyType({name: rank for rank, name in enumerate(PriorityClass)})

OwnKey = tuple[float, float, float, str]
Served = tuple[PendingRequest, int, int, bool]
"""A request, its weight in thousandths of a device, its expected use in millionths of a
device-second, and whether a limit would hold it."""
Entry = tuple[OwnKey, Served]


def rank(priority: PriorityClass) -> int:
    """Return the rank of a priority class; 0 is served first."""
    return _RANK[priority]


def entry(request: PendingRequest, learned: LearnedOrder | None) -> Entry:
    """Return a request with its sort key among the requests of one owner in one group.

    5. least expected device-seconds left, less a credit for the time that it has waited: shortest
       first (weighted by devices, as QSSF of Hu et al., SC 2021) without starvation. A learned
       order divides these device-seconds, but not the credit.
    6. least slack of its deadline
    7. submission time, which a requeued request keeps
    8. request id: arbitrary, and always the same

    Two requests never swap as time passes, since both gain the same by waiting. A request whose
    deadline is in danger precedes all others of its owner (``Queues.of_owners``), and moves ahead
    of other owners in its group by as much as it costs (``QueueOrder``).
    """
    submitted_at, deadline, seconds = (
        request.submitted_at,
        request.deadline,
        expected_seconds(request),
    )
    weight = size(request.devices, request.share)
    needs = cost(weight, seconds)
    danger = inf if deadline is None else deadline - DANGER * seconds
    value = needs / MICRO
    if learned is not None:
        value /= learned.discount(
            features(seconds, weight / THOUSAND, submitted_at, gang=bool(request.gang))
        )
    key = (value + AGEING * submitted_at, danger, submitted_at, request.id)
    return key, (request, weight, needs, False)


class Queues:
    """The queues of all owners, by priority class and group."""

    def __init__(
        self,
        tree: GroupTree,
        pending: Iterable[PendingRequest] = (),
        *,
        learned: LearnedOrder | None,
    ) -> None:
        self._tree = tree
        self._learned = learned
        self._own: dict[tuple[PriorityClass, str], dict[str, list[Entry]]] = {}
        self._below: defaultdict[tuple[PriorityClass, str], int] = defaultdict(int)
        """Number of queued requests in a group and its subtree, by class."""
        self._classes = dict.fromkeys(PriorityClass, 0)
        """Number of queued requests of all groups, by class."""
        self._dated: dict[tuple[PriorityClass, str], set[str]] = {}
        """Owners whose queues ever had a deadline."""
        self._orphans: list[tuple[float, str, PendingRequest]] = []
        """Requests whose group, or one above it, is missing."""
        self._pending: dict[str, PendingRequest] = {}
        self._victims: dict[str, PendingRequest] = {}
        self._expedited: dict[str, PendingRequest] = {}
        for request in pending:
            self._put(request)
        for (priority, group), owners in self._own.items():
            for queue in owners.values():
                queue.sort(key=itemgetter(0))
            self._count(priority, group, sum(map(len, owners.values())))
        self._orphans.sort(key=itemgetter(0, 1))

    @property
    def pending(self) -> dict[str, PendingRequest]:
        return self._pending

    def add(self, request: PendingRequest) -> None:
        queue = self._put(request)
        if queue is None:
            self._orphans.sort(key=itemgetter(0, 1))
        else:
            insort(queue, queue.pop())
            self._count(request.priority, request.group, 1)

    def _put(self, request: PendingRequest) -> list[Entry] | None:
        """Append to the queue of its owner, unsorted; None where its group is missing."""
        self._pending[request.id] = request
        if request.preemptor:
            self._victims[request.id] = request
        key = (request.priority, request.group)
        owners = self._own.get(key)
        if owners is None:
            if not self._tree.chain(request.group):
                self._orphans.append((request.submitted_at, request.id, request))
                return None
            owners = self._own[key] = {}
        if request.expedited:
            self._expedited[request.id] = request
        queue = owners.get(request.owner)
        if queue is None:
            queue = owners[request.owner] = []
        queue.append(entry(request, self._learned))
        if request.deadline is not None:
            self._dated.setdefault(key, set()).add(request.owner)
        return queue

    def _count(self, priority: PriorityClass, group: str, more: int) -> None:
        self._classes[priority] += more
        for each in self._tree.chain(group):
            self._below[priority, each.name] += more

    def remove(self, request_id: str) -> PendingRequest:
        request = self._pending.pop(request_id)
        self._victims.pop(request_id, None)
        self._expedited.pop(request_id, None)
        if not self._tree.chain(request.group):
            del self._orphans[bisect_left(self._orphans, (request.submitted_at, request.id))]
            return request
        key = (request.priority, request.group)
        queue = self._own[key][request.owner]
        del queue[bisect_left(queue, entry(request, self._learned)[:1])]
        if not queue:
            del self._own[key][request.owner]
        self._count(request.priority, request.group, -1)
        return request

    # -- reading --------------------------------------------------------------------------

    def victims(self) -> list[PendingRequest]:
        """Return requests that were preempted or relocated for another, the oldest first."""
        return sorted(self._victims.values(), key=lambda each: (each.submitted_at, each.id))

    def expedited(self, priority: PriorityClass) -> list[PendingRequest]:
        """Return the expedited requests of a class, the oldest first."""
        found = (each for each in self._expedited.values() if each.priority is priority)
        return sorted(found, key=lambda each: (each.submitted_at, each.id))

    def orphans(self) -> Iterator[PendingRequest]:
        """Return requests that cannot start because a group is missing, the oldest first."""
        return (request for _, _, request in self._orphans)

    @property
    def classes(self) -> list[PriorityClass]:
        """The classes with queued requests, in the order in which they are served."""
        return [priority for priority, count in self._classes.items() if count]

    def groups_below(self, parent: str | None, priority: PriorityClass) -> list[Group]:
        """Return the children of a group (for None: the roots) that have queued requests."""
        below = self._below
        return [each for each in self._tree.children(parent) if below[priority, each.name]]

    def of(self, group: str) -> Iterator[PendingRequest]:
        """Yield all queued requests of a group and its subtree, in arbitrary order."""
        for name in self._tree.subtree(group):
            for priority in PriorityClass:
                for queue in self._own.get((priority, name), _NO_OWNERS).values():
                    yield from (served[0] for _, served in queue)

    def of_owners(
        self, group: str, priority: PriorityClass, now: float
    ) -> Mapping[str, Sequence[Entry]]:
        """Return the queues of a group itself by owner.

        Requests whose deadlines are in danger come first, by least slack.
        """
        owners = self._own.get((priority, group), _NO_OWNERS)
        dated = self._dated.get((priority, group))
        if not dated:
            return owners
        return {
            owner: sorted(queue, key=lambda each: _urgency(each, now)) if owner in dated else queue
            for owner, queue in owners.items()
        }


_NO_OWNERS: Mapping[str, list[Entry]] = MappingProxyType({})


def _urgency(entry: Entry, now: float) -> tuple[float, OwnKey]:
    danger = entry[0][1]
    return (danger if danger <= now else inf, entry[0])
