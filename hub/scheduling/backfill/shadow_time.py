"""What the head of the queue will find when it starts: not the devices alone.

What is kept for others changes until then. A group that does not lend its guarantee keeps what it
uses itself now as soon as it uses it no more; reservations begin and end; and what cannot be asked
back is lent only as far as others could still reclaim all of theirs. EASY backfill knows
none of these: the rule is Carrel's own.
"""

from __future__ import annotations

from copy import copy
from math import inf

from ..model.snapshot import Allocation, PendingRequest
from ..placement.device_pool import DevicePool, Placement
from ..placement.gangs import forms
from ..queue.cycle_state import CycleState
from ..queue.running_set import holding_of


class ShadowState:
    """The books of the first moment at which nothing keeps the head from devices.

    Attributes:
        at: that moment; infinity where it never comes.
    """

    def __init__(self, head: PendingRequest, books: CycleState) -> None:
        self._head, self._books = head, books.copy()
        self.at = inf
        ends, ended, at = list(books.running.ends()), 0, books.now
        while at < inf:
            while ended < len(ends) and ends[ended][0] <= at:
                self._books.end(ends[ended][1].request_id)
                ended += 1
            self._books.at(at)
            if self.form is not None:
                self.at = at
                return
            at = min(ends[ended][0] if ended < len(ends) else inf, self._books.next_edge())

    def copy(self) -> ShadowState:
        made = copy(self)
        made._books = self._books.copy()
        return made

    @property
    def form(self) -> PendingRequest | None:
        """The head as it would start then, with a model that it may have."""
        books = self._books
        for form in forms(self._head):
            if books.leaves_what_is_kept(form) and books.kept_from(form) is None:
                for each in books.variants(form):
                    if books.pool.fits(each):
                        return each
        return None

    def place(self) -> tuple[Placement | None, DevicePool]:
        """Where the head starts then, and what is free beside it, kept from it or not."""
        form, pool = self.form, self._books.pool.copy()
        return None if form is None else pool.take(form), pool

    def lets(self, holding: Allocation) -> bool:
        """Whether the head starts then next to this as well, which is held from now on if so."""
        self._books.pool.hold(holding)
        self._books.start(holding)
        if self.form is not None:
            return True
        self._books.end(holding.request_id)
        return False

    def would_let(self, request: PendingRequest) -> bool:
        """The same of a request, wherever its devices will be; nothing is held."""
        books = self._books
        places = (books.pool.take(each) for each in books.variants(request))
        placed = next(filter(None, places), None)
        if placed is None:
            return False
        holding = holding_of(request, placed, now=books.now)
        books.start(holding)
        found = self.form is not None
        books.end(holding.request_id)
        return found


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
