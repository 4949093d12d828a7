"""Shadow time under reservations and guaranteed quota: when the head starts, and beside what.

The withheld devices change until then: a group that does not lend its guaranteed quota withholds
devices when it no longer uses them itself, reservations start and end, and non-preemptible requests
must leave other groups able to reclaim. Plain EASY backfill has no such rules.
"""

from __future__ import annotations

from copy import copy
from math import inf

from ..model.snapshot import Allocation, PendingRequest
from ..placement.device_pool import DevicePool, Placement
from ..placement.gangs import forms
from ..queue.cycle_state import CycleState
from ..queue.running_set import allocation_of


class ShadowState:
    """The state at the first moment at which the head can start.

    Attributes:
        at: that moment; infinity if the head never starts.
    """

    def __init__(self, head: PendingRequest, state: CycleState) -> None:
        self._head, self._state = head, state.copy()
        self.at = inf
        ends, ended, at = list(state.running.ends()), 0, state.now
        while at < inf:
            while ended < len(ends) and ends[ended][0] <= at:
                self._state.end(ends[ended][1].request_id)
                ended += 1
            self._state.advance(at)
            if self.form is not None:
                self.at = at
                return
            at = min(
                ends[ended][0] if ended < len(ends) else inf, self._state.next_reservation_edge()
            )

    def copy(self) -> ShadowState:
        clone = copy(self)
        clone._state = self._state.copy()
        return clone

    @property
    def form(self) -> PendingRequest | None:
        """The head in the form in which it starts then, with a model that its group may use."""
        state = self._state
        for form in forms(self._head):
            if state.keeps_reserved(form) and state.hold_reason(form) is None:
                for each in state.variants(form):
                    if state.pool.fits(each):
                        return each
        return None

    def place(self) -> tuple[Placement | None, DevicePool]:
        """Return the placement of the head, and the pool without it."""
        form, pool = self.form, self._state.pool.copy()
        return None if form is None else pool.take(form), pool

    def starts_beside(self, allocation: Allocation) -> bool:
        """Return whether the head still starts beside this allocation; if so, it is added."""
        self._state.pool.occupy(allocation)
        self._state.start(allocation)
        if self.form is not None:
            return True
        self._state.end(allocation.request_id)
        return False

    def would_start_beside(self, request: PendingRequest) -> bool:
        """Return whether the head still starts beside a request, wherever that is placed."""
        state = self._state
        places = (state.pool.take(each) for each in state.variants(request))
        placed = next(filter(None, places), None)
        if placed is None:
            return False
        allocation = allocation_of(request, placed, now=state.now)
        state.start(allocation)
        found = self.form is not None
        state.end(allocation.request_id)
        return found


class NonPreemptibleBackfill:
    """Backfill behind the first non-preemptible request that would use others' guaranteed quota.

    A later non-preemptible request starts only if it does not delay that one. Otherwise small
    sessions that come and go could starve a larger one. The shadow time is computed when another
    request could start.
    """

    def __init__(self, head: PendingRequest, state: CycleState) -> None:
        self._head, self._state = head, state
        self._shadow: ShadowState | None = None

    def copy(self, state: CycleState) -> NonPreemptibleBackfill:
        clone = NonPreemptibleBackfill(self._head, state)
        clone._shadow = None if self._shadow is None else self._shadow.copy()
        return clone

    def started(self, allocation: Allocation, ends_at: float) -> None:
        """Clear the shadow time if a started allocation outlasts it."""
        if self._shadow is not None and not allocation.preemptible and ends_at > self._shadow.at:
            self._shadow = None

    def invalidate(self) -> None:
        """Clear the shadow time, because other devices are held, withheld or leaving."""
        self._shadow = None

    def allows(self, request: PendingRequest, ends_at: float) -> bool:
        """Return whether a request may start: it does not delay the first one.

        A request within its guaranteed quota never waits for the first one; no request does if that
        can never start.
        """
        if request.preemptible or request in self._state.entitlement:
            return True
        if self._shadow is None:
            self._shadow = ShadowState(self._head, self._state)
        shadow = self._shadow
        return ends_at <= shadow.at or shadow.at == inf or shadow.would_start_beside(request)
