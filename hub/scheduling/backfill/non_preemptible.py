"""Who is first of those that would have devices for good, and who may pass.

What cannot be asked back is lent only as far as others could still reclaim all that they are
guaranteed. The first request that this holds has a time at which it is expected to start, as the
head of the queue has (``backfill``): a later one that could not be asked back either starts only
where that does not move. Else small sessions that come and go would keep a larger one waiting
for ever.
"""

from __future__ import annotations

from math import inf

from ..model.snapshot import Allocation, PendingRequest
from ..queue.cycle_state import CycleState
from .shadow_time import ShadowState


class NonPreemptibleBackfill:
    """The first that lacks what nobody is guaranteed; its time is worked out when another one
    could start."""

    def __init__(self, head: PendingRequest, books: CycleState) -> None:
        self._head, self._books = head, books
        self._later: ShadowState | None = None

    def copy(self, books: CycleState) -> NonPreemptibleBackfill:
        made = NonPreemptibleBackfill(self._head, books)
        made._later = None if self._later is None else self._later.copy()
        return made

    def started(self, holding: Allocation, ends_at: float) -> None:
        """What is there at the head's time is to be counted."""
        if self._later is not None and not holding.preemptible and ends_at > self._later.at:
            self._later = None

    def look_again(self) -> None:
        """Something else is held, kept or leaving: what was worked out is out of date."""
        self._later = None

    def allows(self, request: PendingRequest, ends_at: float) -> bool:
        """Whether the head starts as early beside it; where it never does, nobody waits for it,
        nor does whoever stays within a guarantee."""
        if request.preemptible or request in self._books.entitled:
            return True
        if self._later is None:
            self._later = ShadowState(self._head, self._books)
        later = self._later
        return ends_at <= later.at or later.at == inf or later.would_let(request)
