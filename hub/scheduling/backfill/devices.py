"""EASY backfill of devices.

The head of the queue reserves the earliest time at which it is expected to fit (its shadow
time). A later request starts only if it does not delay the head: it ends before that time, or uses
devices that the head leaves free (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; Mu'alem
and Feitelson, IEEE TPDS 2001).
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
"""Group, shape, and whether it is preemptible: requests that are alike for backfill."""


class DeviceBackfill:
    """Shadow time and reserved devices of the head, computed when another request could start.

    Attributes:
        at: when the head is expected to fit; None: not computed yet.
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
        """The free devices that are not reserved for the head."""
        self._extra = 0
        """Thousandths of a device that the head leaves free when it starts."""
        self._shadow: ShadowState | None = None
        """State at the shadow time, where devices are withheld for other groups."""
        self._refused: dict[_Alike, float] = {}
        """Requests that would delay the head, with the time limit ends that were refused."""

    def copy(self, state: CycleState) -> DeviceBackfill:
        clone = copy(self)
        clone._state = state
        clone._spare = self._spare.copy()
        clone._shadow = None if self._shadow is None else self._shadow.copy()
        clone._refused = self._refused.copy()
        return clone

    def reserve(self, limit_backfill: LimitBackfill) -> None:
        """Compute the shadow time, and reserve headroom under the limits of the head from then."""
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
        """Clear the shadow time, because other devices are withheld or leaving."""
        self.at = self._shadow = None
        self._refused.clear()

    def allows(self, request: PendingRequest, ends_at: float) -> bool:
        """Return False if a request is known to delay the head; ``take`` decides."""
        if self.at is None or ends_at <= self.at:
            return True
        weight = size(request.devices, request.share)
        if weight > self._extra or self._is_refused(request, ends_at):
            return False
        pool = self._spare if self._shadow is None else self._state.pool
        return any(map(pool.fits, self._state.variants(request)))

    def take(self, fitting: Sequence[PendingRequest], ends_at: float) -> Placement | None:
        """Take devices for a request, in one of its fitting variants, without delaying the head."""
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
        """Yield the pools to try for a request that ends after the shadow time.

        First the spare devices; then all free devices, if the head may be placed elsewhere and is
        not elastic.
        """
        yield self._spare
        if self._shadow is not None and not is_elastic(self.head):
            yield self._state.pool.copy()

    def _count_later(self, weight: int) -> None:
        """Account for devices that a later request holds past the shadow time."""
        if self._shadow is None:
            self._extra -= weight
        else:
            self._set_reservation(*self._shadow.place())

    def _set_reservation(self, placed: Placement | None, pool: DevicePool) -> None:
        """Reserve this placement for the head; ``pool`` has the devices that are free then."""
        self._extra = pool.free_count() * THOUSAND
        self._spare = self._state.pool.copy()
        if placed is not None:
            self._reserve_for_head(placed)

    def _head_unaffected(self, allocation: Allocation, ends_at: float) -> bool:
        """Return whether no rule withholds devices from the head because of this allocation.

        It is checked at the shadow time if rules can change by then, otherwise now.
        """
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
        """Return whether a similar request that would end no later was refused."""
        return bool(self._refused) and until >= self._refused.get(_alike(request), inf)

    def _reserve_for_head(self, placed: Placement) -> None:
        """Remove the devices of the head from the spare ones.

        If the head needs a share of a device that is held as a whole until then, the rest of that
        device does not become spare.
        """
        if placed.share is None or self._spare.is_available(placed.devices[0]):
            self._spare.occupy(placed)

    def _use_until_head(self, placed: Placement) -> None:
        """Use spare devices until the head starts; the rest of a newly split device is reserved."""
        if placed.share is not None and not self._spare.is_shared(placed.devices[0]):
            placed = Placement(devices=placed.devices)
        self._spare.occupy(placed)

    def _shadow_time(self, pool: DevicePool) -> tuple[float, Placement | None]:
        """Return when and where the head fits as running work ends; the pool changes.

        The head is tried again only when a node has enough devices for one of its members.
        """
        for end in pool.release_as_they_end(self._state.running.ends(), self._smallest):
            for each in self._variants if pool.free_count() * THOUSAND >= self._fewest else ():
                placed = pool.take(each)
                if placed is not None:
                    return end, placed
        return inf, None


def _alike(request: PendingRequest) -> _Alike:
    return (request.group, shape(request), request.preemptible)
