"""Whether anything that waits could start at all: what spares a step the walk along the queue.

Requests that are alike to placement and quota are looked at together, and of those of one owner
the one that would end first. The answer errs only towards yes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from ..model.snapshot import Kind, PendingRequest, PriorityClass
from ..placement.device_pool import Shape, shape
from ..queue.running_set import span
from ..quota.entitlement import Entitlement
from ..quota.tree import size
from .dispatch import Dispatch

_Alike = tuple[Shape, bool, bool, bool]
"""What a request looks like to placement, whether it is a session, whether it may be stopped
and whether it is urgent."""
_Queue = list[tuple[float, str, PendingRequest]]
"""Spans, ids and requests of one owner that are alike, the shortest first."""
_Owners = dict[str, _Queue]


class StartableIndex:
    """All that waits, by what it takes to start it."""

    def __init__(self) -> None:
        self._alike: dict[_Alike, dict[str, _Owners]] = {}
        self._groups: dict[str, dict[_Alike, _Owners]] = {}
        """The same queues by group."""
        self._urgent: Counter[str] = Counter()
        """How many urgent ones wait in a group itself."""
        self.on_cpu = 0
        """How many wait that need no device."""

    def add(self, request: PendingRequest) -> None:
        self.on_cpu += not request.devices
        key, group = _alike(request), request.group
        self._urgent[group] += key[3]
        owners = self._alike.setdefault(key, {}).setdefault(group, {})
        self._groups.setdefault(group, {})[key] = owners
        insort(owners.setdefault(request.owner, []), (span(request), request.id, request))

    def remove(self, request: PendingRequest) -> None:
        self.on_cpu -= not request.devices
        key, group = _alike(request), request.group
        self._urgent[group] -= key[3]
        owners = self._alike[key][group]
        queue = owners[request.owner]
        del queue[bisect_left(queue, (span(request), request.id))]
        if not queue:
            del owners[request.owner]
        if not owners:
            del self._alike[key][group], self._groups[group][key]
        if not self._alike[key]:
            del self._alike[key]
        if not self._groups[group]:
            del self._groups[group]

    def somebody(self, walk: Dispatch, done: Collection[str]) -> PendingRequest | None:
        """Who could start, but for those that the walk has come past already; None: nobody."""
        return next(filter(walk.could_start, self._candidates(walk, done)), None)

    def claims(self, entitled: Entitlement) -> Iterator[PendingRequest]:
        """Whoever waits for devices and may ask back what others borrow."""
        for group, alike in self._groups.items():
            left = entitled.left(group)
            if left <= 0 and not self._urgent[group]:
                continue
            for (form, _, _, urgent), owners in alike.items():
                devices, *_, share = form
                if devices and (urgent or size(devices, share) <= left):
                    for queue in owners.values():
                        yield from (request for _, _, request in queue)

    def _candidates(self, walk: Dispatch, done: Collection[str]) -> Iterator[PendingRequest]:
        for groups in self._alike.values():
            one = _first(groups)
            if not walk.may_fit(one):
                continue
            weight = walk.weight_here(one)
            for group, owners in groups.items():
                if weight and weight > walk.room_in(group):
                    continue
                for queue in owners.values():
                    left = next((each for _, name, each in queue if name not in done), None)
                    if left is not None:
                        yield left


def _first(groups: Mapping[str, _Owners]) -> PendingRequest:
    owners = next(iter(groups.values()))
    return next(iter(owners.values()))[0][2]


def _alike(request: PendingRequest) -> _Alike:
    return (
        shape(request),
        request.kind is Kind.SESSION,
        request.preemptible,
        request.priority is PriorityClass.URGENT,
    )
