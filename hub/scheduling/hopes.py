"""Whether anything that waits could start at all: what spares a step the walk along the queue.

Requests that are alike to placement and quota are looked at together, and of those of one owner
the one that would end first. The answer errs only towards yes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator

from .model import Kind, Waiting
from .placement import Shape, shape
from .quota import size
from .running import span
from .walk import Walk

_Alike = tuple[Shape, bool, bool]
_Of = dict[str, dict[str, list[tuple[float, str]]]]
"""By group and owner: the spans and ids of requests that are alike, the shortest first."""


class Hopes:
    """All that waits, by what it takes to start it."""

    def __init__(self) -> None:
        self._alike: dict[_Alike, _Of] = {}
        self._waiting: dict[str, Waiting] = {}
        self.on_cpu = 0
        """How many wait that need no device."""

    def add(self, request: Waiting) -> None:
        self.on_cpu += not request.devices
        self._waiting[request.id] = request
        owners = self._alike.setdefault(_alike(request), {}).setdefault(request.group, {})
        insort(owners.setdefault(request.owner, []), (span(request), request.id))

    def remove(self, request: Waiting) -> None:
        del self._waiting[request.id]
        self.on_cpu -= not request.devices
        key = _alike(request)
        groups = self._alike[key]
        owners = groups[request.group]
        queue = owners[request.owner]
        del queue[bisect_left(queue, (span(request), request.id))]
        if not queue:
            del owners[request.owner]
        if not owners:
            del groups[request.group]
        if not groups:
            del self._alike[key]

    def any_left(self, walk: Walk, done: Collection[str]) -> bool:
        """Whether anybody could start, but for those that the walk has come past already."""
        return any(walk.could_start(request) for request in self._candidates(walk, done))

    def of_group(self, group: str) -> Iterator[Waiting]:
        """Whoever waits in a group itself."""
        for groups in self._alike.values():
            for queue in groups.get(group, {}).values():
                yield from (self._waiting[request_id] for _, request_id in queue)

    def _candidates(self, walk: Walk, done: Collection[str]) -> Iterator[Waiting]:
        for groups in self._alike.values():
            one = self._first(groups)
            if not walk.may_fit(one):
                continue
            weight = size(one.devices, one.share)
            for group, owners in groups.items():
                if weight and weight > walk.books.room_of(group):
                    continue
                for queue in owners.values():
                    left = next((name for _, name in queue if name not in done), None)
                    if left is not None:
                        yield self._waiting[left]

    def _first(self, groups: _Of) -> Waiting:
        owners = next(iter(groups.values()))
        return self._waiting[next(iter(owners.values()))[0][1]]


def _alike(request: Waiting) -> _Alike:
    return (shape(request), request.kind is Kind.SESSION, request.preemptible)
