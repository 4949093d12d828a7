"""Backfill under limits: the first request that a limit holds reserves headroom.

As EASY backfill does for devices (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995), a later
request may use headroom under the same limit if that does not delay the first one: it is expected
to end before, or uses only headroom that the first one does not need.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from math import inf

from ..model.plan import Reason
from ..model.snapshot import PendingRequest
from ..queue.cycle_state import CycleState
from ..quota.headroom import Key, LimitReached, group_cap, member_cap
from ..quota.tree import size


@dataclass(slots=True)
class _Head:
    """The reservation of the first request under a limit.

    Attributes:
        at: when it is expected to have headroom; None: not computed yet.
        spare: thousandths of a device under the limit that it leaves to others from then on.
    """

    weight: int
    limit: int
    at: float | None = None
    spare: int = 0


class LimitBackfill:
    """The first request under each limit."""

    def __init__(self) -> None:
        self._heads: dict[Key, _Head] = {}
        self._reserved: dict[Key, _Head] = {}
        """Reservations of the head of the queue, which lacks devices, under its limits."""

    def copy(self) -> LimitBackfill:
        clone = LimitBackfill()
        clone._heads = {key: copy(head) for key, head in self._heads.items()}
        clone._reserved = {key: copy(head) for key, head in self._reserved.items()}
        return clone

    def add_head(
        self, request: PendingRequest, limit: LimitReached, state: CycleState
    ) -> Key | None:
        """Add a request that waits for headroom; return the limit if others may wait behind it.

        A request larger than the limit blocks no other. Budgets are not refunded as work ends, and
        all sessions count the same: no request can pass another under these limits.
        """
        if limit.permanent or limit.reason in (Reason.BUDGET, Reason.SESSIONS):
            return None
        of_member = limit.reason is Reason.USER_MAXIMUM
        key = (limit.group, request.owner if of_member else None)
        if key not in self._heads:
            group = state.tree.ancestry(limit.group)[0]
            weight = size(request.devices, request.share)
            self._heads[key] = _Head(
                weight=weight, limit=member_cap(group) if of_member else group_cap(group)
            )
        return key

    def reserve_headroom(self, request: PendingRequest, at: float, state: CycleState) -> None:
        """Reserve the headroom that a request needs when it starts at this time.

        A limit as large as the pool has headroom whenever the pool has free devices.
        """
        weight = size(request.devices, request.share)
        pool = state.holdable
        for group in state.tree.chain(request.group):
            limits = {
                (group.name, None): group_cap(group),
                (group.name, request.owner): member_cap(group),
            }
            for key, most in limits.items():
                if most < pool:
                    self._reserved[key] = _Head(weight=weight, limit=most)
                    _compute(self._reserved[key], key, state, at)

    def invalidate(self) -> None:
        """Clear computed times and reserved headroom, because other allocations are leaving."""
        self._reserved.clear()
        for each in self._heads.values():
            each.at = None

    def blocking_limit(
        self, request: PendingRequest, ends_at: float, state: CycleState
    ) -> Key | None:
        """Return the limit whose first request would be delayed if this one ran until then."""
        weight = size(request.devices, request.share)
        for key, head in self._of(request, state):
            at = _compute(head, key, state) if head.at is None else head.at
            if ends_at > at and weight > head.spare:
                return key
        return None

    def is_known_to_block(self, request: PendingRequest, ends_at: float, state: CycleState) -> bool:
        """``blocking_limit`` with the times that are computed already; the state does not change.

        The expected time of a first request depends on when it is computed.
        """
        weight = size(request.devices, request.share)
        return any(
            head.at is not None and ends_at > head.at and weight > head.spare
            for _, head in self._of(request, state)
        )

    def started(self, request: PendingRequest, ends_at: float, state: CycleState) -> None:
        """Account for headroom that a started request uses past the time of a first request."""
        weight = size(request.devices, request.share)
        for _, head in self._of(request, state):
            if head.at is not None and ends_at > head.at:
                head.spare -= weight

    def _of(self, request: PendingRequest, state: CycleState) -> Iterator[tuple[Key, _Head]]:
        """Yield the first requests under all limits of a request."""
        if not self._heads and not self._reserved:
            return
        for key in _keys(request, state):
            for head in (self._heads.get(key), self._reserved.get(key)):
                if head is not None:
                    yield key, head


def _keys(request: PendingRequest, state: CycleState) -> Iterator[Key]:
    for group in state.tree.chain(request.group):
        yield (group.name, request.owner)
        yield (group.name, None)


def _compute(head: _Head, key: Key, state: CycleState, at: float | None = None) -> float:
    """Compute when the head has headroom (unless given), and the spare headroom from then on."""
    name, owner = key
    tally = state.tally
    held = tally.groups[name] if owner is None else tally.users[name, owner]
    most = head.limit - head.weight
    if at is None and held <= most:
        at = state.now
    for end, allocation in state.running.ends_in(name, owner):
        if at is not None and end > at:
            break
        held -= size(len(allocation.devices), allocation.share)
        if at is None and held <= most:
            at = end
    head.at = inf if at is None else at
    head.spare = most - held
    return head.at
