"""Who stands in line for room under a limit, and who may pass.

The first request that a limit holds is its head. As EASY backfill does for devices (Lifka, "The
ANL/IBM SP scheduling system", JSSPP 1995), a later one may take room under the same limit where
that does not delay the head: it is expected to end before the head expects its room, or it uses
only room that the head will not need.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from math import inf

from ..model.plan import Reason
from ..model.snapshot import PendingRequest
from ..queue.cycle_state import CycleState
from ..quota.headroom import Key, LimitReached, cap, cap_of_one
from ..quota.tree import size


@dataclass(slots=True)
class _Head:
    """What the first in line for a limit needs.

    Attributes:
        at: when it is expected to have its room; None: not worked out yet.
        spare: thousandths of a device under the limit that it leaves to others from then on.
    """

    weight: int
    cap: int
    at: float | None = None
    spare: int = 0


class LimitBackfill:
    """The heads of all limits that somebody waits for."""

    def __init__(self) -> None:
        self._heads: dict[Key, _Head] = {}
        self._kept: dict[Key, _Head] = {}
        """The head of the queue, who lacks devices, under each of its limits."""

    def copy(self) -> LimitBackfill:
        made = LimitBackfill()
        made._heads = {key: copy(head) for key, head in self._heads.items()}
        made._kept = {key: copy(head) for key, head in self._kept.items()}
        return made

    def wait_for(
        self, request: PendingRequest, limit: LimitReached, books: CycleState
    ) -> Key | None:
        """A request waits for room under a limit; the limit that others wait for as well.

        It stands in nobody's way where it is larger than the limit itself. Budgets do not come
        back as work ends, and all sessions count the same: nobody can pass anybody there.
        """
        if limit.for_good or limit.reason in (Reason.BUDGET, Reason.SESSIONS):
            return None
        of_one = limit.reason is Reason.USER_MAXIMUM
        key = (limit.group, request.owner if of_one else None)
        if key not in self._heads:
            group = books.tree.known(limit.group)[0]
            weight = size(request.devices, request.share)
            self._heads[key] = _Head(weight=weight, cap=cap_of_one(group) if of_one else cap(group))
        return key

    def keep_room(self, request: PendingRequest, at: float, books: CycleState) -> None:
        """A request will start at this time: nobody may use up the room that it has now.

        A limit as large as all that can be held has room for it when the pool has.
        """
        weight = size(request.devices, request.share)
        pool = books.could_be_held
        for group in books.tree.chain(request.group):
            limits = {
                (group.name, None): cap(group),
                (group.name, request.owner): cap_of_one(group),
            }
            for key, most in limits.items():
                if most < pool:
                    self._kept[key] = _Head(weight=weight, cap=most)
                    _work_out(self._kept[key], key, books, at)

    def look_again(self) -> None:
        """Something else is leaving: what was worked out is out of date, and so is the time for
        which room is kept."""
        self._kept.clear()
        for each in self._heads.values():
            each.at = None

    def holds(self, request: PendingRequest, ends_at: float, books: CycleState) -> Key | None:
        """The limit whose head would be delayed if this request ran until then."""
        weight = size(request.devices, request.share)
        for key, head in self._of(request, books):
            at = _work_out(head, key, books) if head.at is None else head.at
            if ends_at > at and weight > head.spare:
                return key
        return None

    def is_known_to_hold(self, request: PendingRequest, ends_at: float, books: CycleState) -> bool:
        """The same as far as it is worked out already. To ask changes nothing: what a head
        expects depends on when it is asked first."""
        weight = size(request.devices, request.share)
        return any(
            head.at is not None and ends_at > head.at and weight > head.spare
            for _, head in self._of(request, books)
        )

    def passed(self, request: PendingRequest, ends_at: float, books: CycleState) -> None:
        """It started: what it holds past a head's time is no longer spare."""
        weight = size(request.devices, request.share)
        for _, head in self._of(request, books):
            if head.at is not None and ends_at > head.at:
                head.spare -= weight

    def _of(self, request: PendingRequest, books: CycleState) -> Iterator[tuple[Key, _Head]]:
        """The heads of all limits of a request."""
        if not self._heads and not self._kept:
            return
        for key in _keys(request, books):
            for head in (self._heads.get(key), self._kept.get(key)):
                if head is not None:
                    yield key, head


def _keys(request: PendingRequest, books: CycleState) -> Iterator[Key]:
    for group in books.tree.chain(request.group):
        yield (group.name, request.owner)
        yield (group.name, None)


def _work_out(head: _Head, key: Key, books: CycleState, at: float | None = None) -> float:
    """The head's time (unless it is given), and what is spare under the limit from then on."""
    name, owner = key
    tally = books.tally
    held = tally.groups[name] if owner is None else tally.users[name, owner]
    most = head.cap - head.weight
    if at is None and held <= most:
        at = books.now
    for end, holding in books.running.ends_in(name, owner):
        if at is not None and end > at:
            break
        held -= size(len(holding.devices), holding.share)
        if at is None and held <= most:
            at = end
    head.at = inf if at is None else at
    head.spare = most - held
    return head.at
