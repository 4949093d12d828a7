"""When those at the head of the queue are expected to start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from math import inf

from .books import Books
from .model import Estimate, Holding, Reason, Snapshot, Waiting
from .running import expected_end, promised_end
from .walk import Held, walk

FIRST_PAGE = 20
"""How many waiting requests are given an estimate: those that people see first."""

_OF_GROUP = frozenset({Reason.GROUP_MAXIMUM, Reason.BORROWING, Reason.BUDGET})
_OF_OWNER = frozenset({Reason.USER_MAXIMUM, Reason.SESSIONS})


def estimates(
    page: Sequence[Waiting], running: Sequence[Holding], snapshot: Snapshot, now: float
) -> Mapping[str, Estimate]:
    """Expected start by request id; one that never comes to start has none.

    It is told twice: once with everything ending when it is expected to, once with everything
    using its whole time limit. The interval lies between; where nothing but limits is known,
    both are the same.

    ``page`` is the head of the ordered queue, which is taken to stay in its order, and is all
    that is looked at: requests behind it could only take devices that those on the page are
    kept from by a limit of their own.
    """
    settled = [_as_expected(holding, now) for holding in running]
    soon = _forecast(page, replace(snapshot, holdings=tuple(settled)), now)
    limits = [_to_its_limit(holding, now) for holding in running]
    if limits == settled and all(request.expected is None for request in page):
        late = soon
    else:
        unknown = [replace(request, expected=None) for request in page]
        late = _forecast(unknown, replace(snapshot, holdings=tuple(limits)), now)
    return {
        name: Estimate(at=min(soon[name], late[name]), latest=max(soon[name], late[name]))
        for name in soon.keys() & late.keys()
    }


def _as_expected(holding: Holding, now: float) -> Holding:
    end = expected_end(holding, now)
    return replace(holding, until=end, expected=None)


def _to_its_limit(holding: Holding, now: float) -> Holding:
    """What was asked to go does not use its limit."""
    end = now if holding.leaving else max(holding.until, now)
    return replace(holding, until=end, expected=None)


def _forecast(page: Sequence[Waiting], snapshot: Snapshot, now: float) -> Mapping[str, float]:
    """Let time pass from one end to the next, and go along the page by the rules of the cycle."""
    books = Books(snapshot, now)
    found: dict[str, float] = {}
    ends = [(promised_end(holding), holding.request_id) for holding in snapshot.holdings]
    heapify(ends)
    _, held = walk(page, books)
    while held:
        at = min(ends[0][0], books.next_edge()) if ends else books.next_edge()
        if at == inf:
            break
        edge = at == books.next_edge()
        books.at(at)
        ended = [books.end(request_id) for request_id in _ended(ends, at)]
        moved = _Moved(ended, books)
        if not edge and not any(moved.may_help(each) for each in held):
            continue
        started, held = walk((each.request for each in held), books)
        for each in started:
            found[each.request.id] = at
            heappush(ends, (promised_end(each.holding), each.request.id))
    return found


def _ended(ends: list[tuple[float, str]], at: float) -> Iterator[str]:
    while ends and ends[0][0] <= at:
        yield heappop(ends)[1]


class _Moved:
    """What has ended at one moment, and whom that may help."""

    def __init__(self, ended: Sequence[Holding], books: Books) -> None:
        self._books = books
        chains = [(books.tree.known(each.group), each.owner) for each in ended]
        self._groups = {group.name for chain, _ in chains for group in chain}
        self._users = {(group.name, owner) for chain, owner in chains for group in chain}

    def may_help(self, held: Held) -> bool:
        """Whether it is worth asking again: room under its limit, or devices where it fits."""
        if held.reason in _OF_GROUP:
            return held.detail in self._groups
        if held.reason in _OF_OWNER:
            return (held.detail, held.request.owner) in self._users
        return any(map(self._books.pool.fits, self._books.variants(held.request)))
