"""What waits, by class, group and owner; inside each in the order in which it is served."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from operator import itemgetter
from types import MappingProxyType

from .fairshare import MICRO, cost
from .model import Group, PriorityClass, Waiting
from .quota import Tree, size
from .running import span

AGEING = 0.01
"""Device-seconds of expected work that one second of waiting makes up for. It only has to see to
it that nothing starves: more of it serves age instead of size, and makes people wait longer."""
DANGER = 2.0
"""A deadline is in danger when less time is left than this many times what it would take."""

_RANK = MappingProxyType({name: rank for rank, name in enumerate(PriorityClass)})

OwnKey = tuple[float, float, float, str]
Served = tuple[Waiting, int, int, bool]
"""A request, its weight in thousandths of a device, what it is expected to use in millionths of
a device-second, and whether a limit would hold it anyway."""
Entry = tuple[OwnKey, Served]


def rank(priority: PriorityClass) -> int:
    """0 for the class that is served first."""
    return _RANK[priority]


def entry(request: Waiting) -> Entry:
    """A request with its place among those of one owner in one group; the smaller goes first.

    5. what is expected to be left of its work, in device-seconds, less a part for the time that
       it has waited: the shortest first (weighted by devices, as QSSF of Hu et al., SC 2021),
       and nothing starves
    6. the least slack of its deadline
    7. age: who was submitted earlier; a request that comes back to the queue keeps its age
    8. request id: arbitrary, and the same every time

    No two of them change places as time passes: what they gain by waiting is the same. A
    deadline in danger goes before all of this (``Queues.of_owner``).
    """
    submitted_at = request.submitted_at
    danger = inf if request.deadline is None else request.deadline - DANGER * span(request)
    needs = cost(request)
    key = (needs / MICRO + AGEING * submitted_at, danger, submitted_at, request.id)
    return key, (request, size(request.devices, request.share), needs, False)


class Queues:
    """The queues of all owners."""

    def __init__(self, tree: Tree, waiting: Iterable[Waiting] = ()) -> None:
        self._tree = tree
        self._own: dict[tuple[PriorityClass, str], dict[str, list[Entry]]] = {}
        self._below: defaultdict[tuple[PriorityClass, str], int] = defaultdict(int)
        """How many wait in a group and below it, by class."""
        self._dated: set[tuple[PriorityClass, str, str]] = set()
        """Queues in which there ever was a deadline."""
        self._strays: list[tuple[float, str, Waiting]] = []
        """Those whose group, or one above it, is missing."""
        self._waiting: dict[str, Waiting] = {}
        for request in waiting:
            self._put(request)
        for owners in self._own.values():
            for queue in owners.values():
                queue.sort(key=itemgetter(0))
        self._strays.sort(key=itemgetter(0, 1))

    @property
    def waiting(self) -> dict[str, Waiting]:
        return self._waiting

    def add(self, request: Waiting) -> None:
        queue = self._put(request)
        if queue is None:
            self._strays.sort(key=itemgetter(0, 1))
        else:
            insort(queue, queue.pop())

    def _put(self, request: Waiting) -> list[Entry] | None:
        """At the end of a queue, which is not sorted then; None where its group is missing."""
        self._waiting[request.id] = request
        chain = self._tree.chain(request.group)
        if not chain:
            self._strays.append((request.submitted_at, request.id, request))
            return None
        priority = request.priority
        owners = self._own.setdefault((priority, request.group), {})
        queue = owners.setdefault(request.owner, [])
        queue.append(entry(request))
        if request.deadline is not None:
            self._dated.add((priority, request.group, request.owner))
        for group in chain:
            self._below[priority, group.name] += 1
        return queue

    def remove(self, request_id: str) -> Waiting:
        request = self._waiting.pop(request_id)
        chain = self._tree.chain(request.group)
        if not chain:
            del self._strays[bisect_left(self._strays, (request.submitted_at, request.id))]
            return request
        key = (request.priority, request.group)
        queue = self._own[key][request.owner]
        del queue[bisect_left(queue, entry(request)[:1])]
        if not queue:
            del self._own[key][request.owner]
        for group in chain:
            self._below[request.priority, group.name] -= 1
        return request

    # -- reading --------------------------------------------------------------------------

    def strays(self) -> Iterator[Waiting]:
        """Whoever cannot start, because the group is missing: the oldest first."""
        return (request for _, _, request in self._strays)

    def groups_below(self, parent: str | None, priority: PriorityClass) -> list[Group]:
        """The groups right below one (below None: the roots) in which somebody waits."""
        below = self._below
        return [each for each in self._tree.children(parent) if below[priority, each.name]]

    def owners(self, group: str, priority: PriorityClass) -> Iterable[str]:
        """Whoever waits in a group itself."""
        return self._own.get((priority, group), {}).keys()

    def urgent_in(self, group: str) -> bool:
        return bool(self._own.get((PriorityClass.URGENT, group)))

    def of_owner(
        self, group: str, owner: str, priority: PriorityClass, now: float
    ) -> Sequence[Entry]:
        """The queue of one owner: deadlines in danger, the least slack first, then the rest."""
        queue = self._own[priority, group][owner]
        if (priority, group, owner) not in self._dated:
            return queue
        return sorted(queue, key=lambda each: _urgency(each, now))


def _urgency(entry: Entry, now: float) -> tuple[float, OwnKey]:
    danger = entry[0][1]
    return (danger if danger <= now else inf, entry[0])
