"""What runs, and when it is expected to end."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import merge

from .model import Holding, Waiting
from .placement import Placement
from .quota import THOUSAND, Tree, size

_SHORTEST = 60.0
"""Seconds: the first step for what was expected to take less."""

End = tuple[float, str]
"""When a request's lease is expected to end, and its id."""


def span(request: Waiting) -> float:
    """Seconds that a request is expected to hold what it is given; at most its time limit.

    What earlier attempts saved of its work need not be done again.
    """
    whole = request.seconds
    if request.expected is not None and request.expected < whole:
        whole = request.expected
    if request.done:
        devices = size(request.devices, request.share) / THOUSAND
        whole = max(0.0, whole - request.done / devices) if devices else whole
    return whole


def holding_of(request: Waiting, placed: Placement, *, now: float) -> Holding:
    """What a request holds once it starts, for as long as its time limit."""
    return Holding(
        request_id=request.id,
        owner=request.owner,
        group=request.group,
        devices=placed.devices,
        since=now,
        until=now + request.seconds,
        kind=request.kind,
        priority=request.priority,
        preemptible=request.preemptible,
        expected=span(request) if request.done else request.expected,
        share=placed.share,
    )


def promised_end(holding: Holding) -> float:
    """When it was expected to end, as it was known when it began."""
    if holding.expected is None:
        return holding.until
    return min(holding.until, holding.since + holding.expected)


def expected_end(holding: Holding, now: float) -> float:
    """When it is expected to end, as it is known now.

    1. what was asked to go ends now
    2. what was expected to be over is expected to run twice as long, then four times, and so on,
       within its time limit (Tsafrir, Etsion and Feitelson, "Backfilling using system-generated
       predictions", IEEE TPDS 2007: a prediction that was outlived is corrected, in steps that
       grow). Between two steps the answer stays the same.
    3. what is past its time limit ends now
    """
    if holding.leaving:
        return now
    end = promised_end(holding)
    if end >= now or now >= holding.until:
        return max(end, now)
    seconds = max(_SHORTEST, end - holding.since)
    while holding.since + seconds < now:
        seconds *= 2
    return min(holding.until, holding.since + seconds)


class Running:
    """All holdings, found by group, by owner and by their ends."""

    def __init__(self, tree: Tree, holdings: Iterable[Holding] = ()) -> None:
        self._tree = tree
        self._all: dict[str, Holding] = {}
        self._in: dict[tuple[str, str], dict[str, Holding]] = {}
        self._groups: dict[str, dict[tuple[str, str], None]] = {}
        self._ends: list[End] = []
        for holding in holdings:
            self._put(holding)
        self._ends.sort()

    def copy(self) -> Running:
        made = Running(self._tree)
        made._all, made._ends = self._all.copy(), self._ends.copy()
        made._in = {key: inside.copy() for key, inside in self._in.items()}
        made._groups = {name: keys.copy() for name, keys in self._groups.items()}
        return made

    @property
    def holdings(self) -> Mapping[str, Holding]:
        return self._all

    def add(self, holding: Holding) -> None:
        self._put(holding)
        insort(self._ends, self._ends.pop())

    def _put(self, holding: Holding) -> None:
        """With its end behind all others, wherever that belongs."""
        key = (holding.group, holding.owner)
        self._all[holding.request_id] = holding
        self._in.setdefault(key, {})[holding.request_id] = holding
        self._groups.setdefault(holding.group, {})[key] = None
        self._ends.append(_end(holding))

    def remove(self, request_id: str) -> Holding:
        holding = self._all.pop(request_id)
        del self._in[holding.group, holding.owner][request_id]
        del self._ends[bisect_left(self._ends, _end(holding))]
        return holding

    def leave(self, request_ids: Iterable[str]) -> None:
        """These are asked to go."""
        for request_id in request_ids:
            self.add(replace(self.remove(request_id), leaving=True))

    def ends(self, now: float) -> Iterator[tuple[float, Holding]]:
        """Everything that runs, in the order in which it is expected to end."""
        passed = bisect_left(self._ends, (now, ""))
        outlived = sorted(
            (expected_end(self._all[request_id], now), request_id)
            for _, request_id in self._ends[:passed]
        )
        for end, request_id in merge(outlived, self._ends[passed:]):
            yield end, self._all[request_id]

    def ends_in(self, group: str, owner: str | None, now: float) -> list[tuple[float, Holding]]:
        """The same of a group and all below it, or of one owner in them."""
        keys = (
            key
            for name in self._tree.below(group)
            for key in ([(name, owner)] if owner is not None else self._groups.get(name, ()))
        )
        found = [
            (expected_end(each, now), each)
            for key in keys
            for each in self._in.get(key, {}).values()
        ]
        return sorted(found, key=lambda each: (each[0], each[1].request_id))


def _end(holding: Holding) -> End:
    """What was asked to go counts as past its end."""
    return (float("-inf") if holding.leaving else promised_end(holding), holding.request_id)
