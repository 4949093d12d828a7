"""Running allocations by their expected ends, and how long requests are expected to run."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf, nextafter
from statistics import fmean

from ..model.snapshot import Allocation, PendingRequest
from ..placement.device_pool import Placement
from ..quota.tree import THOUSAND, GroupTree, size

COUNTED = 2
"""Number of earlier runs that an estimate uses."""


def likely_seconds(newest: Collection[float]) -> float:
    """Return the expected runtime: the mean of the last one or two similar runs.

    The live service and the simulator use the same function, but define similar runs differently.

    Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than
    user runtime estimates", IEEE TPDS 18(6), 2007: the last two jobs of a user predict about as
    well as anything that looks further back.
    """
    return fmean(newest)


_SHORTEST = 60.0
"""Seconds from which an outlived estimate is doubled, if it was shorter."""

End = tuple[float, str]
"""Expected end of a lease, and its request id."""


def expected_seconds(request: PendingRequest) -> float:
    """Return the expected runtime of a request in seconds; at most its time limit.

    Work that earlier attempts saved is not repeated. Where they ran longer than expected, the
    estimate is corrected, as for running allocations.
    """
    whole = request.seconds
    if request.expected is not None and request.expected < whole:
        whole = request.expected
    if not request.done or not request.devices:
        return whole
    done = request.done * THOUSAND / size(request.devices, request.share)
    return min(request.seconds, _corrected(whole, 0.0, nextafter(done, inf)) - done)


def allocation_of(request: PendingRequest, placed: Placement, *, now: float) -> Allocation:
    """Return the allocation of a request that starts now, until its time limit."""
    return Allocation(
        request_id=request.id,
        owner=request.owner,
        group=request.group,
        devices=placed.devices,
        since=now,
        until=now + request.seconds,
        kind=request.kind,
        priority=request.priority,
        preemptible=request.preemptible,
        expected=expected_seconds(request) if request.done else request.expected,
        restart_cost=request.restart_cost,
        share=placed.share,
        image=request.image,
        nodes=request.nodes,
    )


def planned_end(allocation: Allocation) -> float:
    """Return the end of an allocation that was expected at its start."""
    if allocation.expected is None:
        return allocation.until
    return min(allocation.until, allocation.since + allocation.expected)


def expected_end(allocation: Allocation, now: float) -> float:
    """Return the end of an allocation that is expected now.

    1. An allocation that is leaving ends now.
    2. One that has outlived its estimate is expected to run twice as long, then four times, and so
       on, within its time limit (Tsafrir, Etsion and Feitelson, "Backfilling using system-generated
       predictions", IEEE TPDS 2007). Between two steps the result stays the same.
    3. One past its time limit ends now.
    """
    if allocation.leaving:
        return now
    end = planned_end(allocation)
    if end >= now or now >= allocation.until:
        return max(end, now)
    return min(
        allocation.until,
        allocation.since + _corrected(end - allocation.since, allocation.since, now),
    )


def notice_end(now: float, grace: float, until: float) -> float:
    """Return the end of the grace period of a notice sent now; at most the end of the time
    limit."""
    return min(now + grace, max(now, until))


def _corrected(seconds: float, since: float, now: float) -> float:
    """Return an expected runtime, doubled until the end lies in the future."""
    if since + seconds < now:
        seconds = max(_SHORTEST, seconds)
    while since + seconds < now:
        seconds *= 2
    return seconds


class RunningSet:
    """All allocations, by group, by owner and by expected end."""

    def __init__(
        self, tree: GroupTree, allocations: Iterable[Allocation] = (), *, now: float
    ) -> None:
        self._tree = tree
        self._all: dict[str, Allocation] = {}
        self._in: dict[tuple[str, str], dict[str, Allocation]] = {}
        self._groups: dict[str, dict[tuple[str, str], None]] = {}
        self._now = now
        self._end: dict[str, float] = {}
        """Expected end by request id, as known now."""
        self._ends: list[End] = []
        """Expected ends in order."""
        for allocation in allocations:
            self._put(allocation)
        self._ends.sort()

    def copy(self) -> RunningSet:
        clone = RunningSet(self._tree, now=self._now)
        clone._all, clone._end, clone._ends = self._all.copy(), self._end.copy(), self._ends.copy()
        clone._in = {key: inside.copy() for key, inside in self._in.items()}
        clone._groups = {name: keys.copy() for name, keys in self._groups.items()}
        return clone

    def advance(self, now: float) -> None:
        """Advance the time: outlived estimates are corrected."""
        goes_back, self._now = now < self._now, now
        outlived = len(self._ends) if goes_back else bisect_left(self._ends, (now, ""))
        again, self._ends = self._ends[:outlived], self._ends[outlived:]
        for _, request_id in again:
            insort(self._ends, self._expect(self._all[request_id]))

    def _expect(self, allocation: Allocation) -> End:
        end = self._end[allocation.request_id] = expected_end(allocation, self._now)
        return (end, allocation.request_id)

    @property
    def allocations(self) -> Mapping[str, Allocation]:
        return self._all

    def add(self, allocation: Allocation) -> None:
        self._put(allocation)
        insort(self._ends, self._ends.pop())

    def _put(self, allocation: Allocation) -> None:
        """Add an allocation, and append its end to the list unsorted."""
        key = (allocation.group, allocation.owner)
        self._all[allocation.request_id] = allocation
        self._in.setdefault(key, {})[allocation.request_id] = allocation
        self._groups.setdefault(allocation.group, {})[key] = None
        self._ends.append(self._expect(allocation))

    def remove(self, request_id: str) -> Allocation:
        allocation = self._all.pop(request_id)
        del self._in[allocation.group, allocation.owner][request_id]
        del self._ends[bisect_left(self._ends, (self._end.pop(request_id), request_id))]
        return allocation

    def give_notice(self, request_ids: Iterable[str], grace: float = 0.0) -> None:
        """Mark these allocations as leaving, with a grace period in seconds."""
        for request_id in request_ids:
            allocation = self.remove(request_id)
            at = notice_end(self._now, grace, allocation.until)
            self.add(replace(allocation, leaving=True, leaves_at=at))

    def ends(self) -> Iterator[tuple[float, Allocation]]:
        """Return all allocations with their expected ends, in the order of the ends."""
        return ((end, self._all[request_id]) for end, request_id in self._ends)

    def ends_in(self, group: str, owner: str | None) -> list[tuple[float, Allocation]]:
        """``ends`` of a group and its subtree, or of one owner in them."""
        keys = (
            key
            for name in self._tree.subtree(group)
            for key in ([(name, owner)] if owner is not None else self._groups.get(name, ()))
        )
        ends = self._end
        found = [
            (ends[name], name, each)
            for key in keys
            for name, each in self._in.get(key, _NOTHING).items()
        ]
        found.sort()
        return [(end, each) for end, _, each in found]


_NOTHING: Mapping[str, Allocation] = {}
