"""EASY backfill: who may start although somebody ahead lacks devices.

The head of the queue is given the earliest time at which it is expected to fit. Whoever comes
later starts only where that does not move: it ends before, or it uses devices that the head
leaves free even then (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; Mu'alem and
Feitelson, IEEE TPDS 2001).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from math import inf

from ..model.snapshot import Allocation, PendingRequest
from ..placement.device_pool import DevicePool, Placement, Shape, shape
from ..placement.gangs import is_elastic, least, smallest_member
from ..queue.cycle_state import CycleState
from ..queue.running_set import allocation_of
from ..quota.tree import THOUSAND, size
from .limits import LimitBackfill
from .shadow_time import ShadowState

_Alike = tuple[str, Shape, bool]
"""Group, what is asked for, and whether it may be asked back."""


class DeviceBackfill:
    """The head's time and devices, worked out when somebody else could start.

    Attributes:
        at: when the head is expected to fit; None: not asked yet.
    """

    def __init__(
        self, head: PendingRequest, variants: Sequence[PendingRequest], state: CycleState
    ) -> None:
        self.head = head
        self.at: float | None = None
        self._variants = variants
        self._fewest = 0 if head.share else size(least(head).devices)
        self._smallest = 0 if head.share else smallest_member(head)
        self._state = state
        self._spare = state.pool
        """What is free now and not for the head."""
        self._extra = 0
        """Thousandths of a device that the head leaves free when it fits."""
        self._shadow: ShadowState | None = None
        """Where devices are kept for others: when none is from the head."""
        self._refused: dict[_Alike, float] = {}
        """What would keep the head from its devices then, if it ran until so late."""

    def copy(self, state: CycleState) -> DeviceBackfill:
        made = copy(self)
        made._state = state
        made._spare = self._spare.copy()
        made._shadow = None if self._shadow is None else self._shadow.copy()
        made._refused = self._refused.copy()
        return made

    def reserve(self, limit_backfill: LimitBackfill) -> None:
        """Work out when the head starts, and keep room for it under its limits until then."""
        if self.at is not None:
            return
        state = self._state
        if state.has_reserved:
            self._shadow = ShadowState(self.head, state)
            self.at = self._shadow.at
            placed, pool = self._shadow.place()
        else:
            pool = state.pool.copy()
            self.at, placed = self._shadow_time(pool)
        self._set_reservation(placed, pool)
        limit_backfill.reserve_headroom(self.head, self.at, state)

    def invalidate(self) -> None:
        """Something else is kept or leaving: what was worked out is out of date."""
        self.at = self._shadow = None
        self._refused.clear()

    def allows(self, request: PendingRequest, ends_at: float) -> bool:
        """Whether there is time or room for it beside the head, as far as that is known yet."""
        if self.at is None or ends_at <= self.at:
            return True
        weight = size(request.devices, request.share)
        if weight > self._extra or self._is_refused(request, ends_at):
            return False
        pool = self._spare if self._shadow is None else self._state.pool
        return any(map(pool.fits, self._state.variants(request)))

    def take(self, fitting: Sequence[PendingRequest], ends_at: float) -> Placement | None:
        """Devices that are free for one request, in one of its variants, until it ends."""
        request, pool = fitting[0], self._state.pool
        preferred = self._state.group_nodes(request.group)
        if self.at is not None and ends_at <= self.at:
            placed = pool.take(request, preferred)
            if placed is not None:
                self._use_until_head(placed)
            return placed
        weight = size(request.devices, request.share)
        until = self._state.now + request.seconds
        if weight > self._extra or self._is_refused(request, until):
            return None
        tried: Allocation | None = None
        for free in self._places():
            placed = next(filter(None, (free.take(each, preferred) for each in fitting)), None)
            if placed is None:
                continue
            tried = allocation_of(request, placed, now=self._state.now)
            if self._head_unaffected(tried, ends_at):
                pool.occupy(placed)
                self._count_later(weight)
                return placed
            free.release(placed)
        if tried is not None:
            self._refused[_alike(request)] = tried.until
        return None

    def _places(self) -> Iterator[DevicePool]:
        """Where a later one may find room: the head can start elsewhere, where that is tried, and
        with no fewer devices."""
        yield self._spare
        if self._shadow is not None and not is_elastic(self.head):
            yield self._state.pool.copy()

    def _count_later(self, weight: int) -> None:
        """Somebody later has so much past the head's time, beside where the head starts."""
        if self._shadow is None:
            self._extra -= weight
        else:
            self._set_reservation(*self._shadow.place())

    def _set_reservation(self, placed: Placement | None, pool: DevicePool) -> None:
        """The head starts there, and leaves this free when it does."""
        self._extra = pool.free_count() * THOUSAND
        self._spare = self._state.pool.copy()
        if placed is not None:
            self._reserve_for_head(placed)

    def _head_unaffected(self, allocation: Allocation, ends_at: float) -> bool:
        """Whether it is not kept from the head what this would hold: then, where what is kept
        changes as work ends; else now."""
        if self._shadow is not None:
            return ends_at <= self._shadow.at or self._shadow.starts_beside(allocation)
        state = self._state
        if not state.may_hold_back(self.head):
            return True
        state.pool.occupy(allocation)
        state.start(allocation)
        lets = state.hold_reason(self.head) is None
        state.end(allocation.request_id)
        return lets

    def _is_refused(self, request: PendingRequest, until: float) -> bool:
        """Whether one like it was, that would not have run for longer."""
        return bool(self._refused) and until >= self._refused.get(_alike(request), inf)

    def _reserve_for_head(self, placed: Placement) -> None:
        """The head's devices are not spare. One that is lent as a whole until then does not come
        to have room for others next to the head's part of it."""
        if placed.share is None or self._spare.is_available(placed.devices[0]):
            self._spare.occupy(placed)

    def _use_until_head(self, placed: Placement) -> None:
        """It ends before the head starts. What is left of a device that it breaks is the head's:
        nobody may be there for longer."""
        if placed.share is not None and not self._spare.is_shared(placed.devices[0]):
            placed = Placement(devices=placed.devices)
        self._spare.occupy(placed)

    def _shadow_time(self, pool: DevicePool) -> tuple[float, Placement | None]:
        """When the head fits as what runs comes to its end, and where. The pool changes.

        It is asked again only when a node has come to have enough for a member of the head.
        """
        for end in pool.release_as_they_end(self._state.running.ends(), self._smallest):
            for each in self._variants if pool.free_count() * THOUSAND >= self._fewest else ():
                placed = pool.take(each)
                if placed is not None:
                    return end, placed
        return inf, None


def _alike(request: PendingRequest) -> _Alike:
    return (request.group, shape(request), request.preemptible)
