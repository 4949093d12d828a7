"""The store: every method is one transaction, and safe to repeat after a crash.

``tests/contracts`` tests it on every database that Carrel supports.
``now`` is always passed in. Methods that change a request append a ``state`` event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Concatenate, ParamSpec, Protocol

from ..records.audit import AuditEntry, ChangeFilter
from ..records.calendar import Reservation, Term
from ..records.clock import ClockOffset
from ..records.events import ChangeDigest, EventRecord, NewEvent
from ..records.leases import LeaseRecord
from ..records.ledger import LedgerEntry, Usage
from ..records.requests import NewRequest, RequestFilter, RequestRecord
from ..scheduling.model.plan import Start
from ..scheduling.model.snapshot import (
    Allocation,
    BudgetBalance,
    Device,
    Group,
    Health,
    Mark,
    MarkKind,
    Snapshot,
)
from ..transitions.transition import Transition
from .images import ImagePinStore
from .usage import UsageStore

P = ParamSpec("P")


class Store(UsageStore, ImagePinStore, Protocol):
    """What the service remembers; how it looks back on it is in ``history``."""

    def together(self) -> AbstractContextManager[None]:
        """What this thread reads within is all of one moment.

        For a page that reads many things: nothing is to be waited for in it, and what is
        written within may not be seen there.
        """

    # -- the pool and the quota tree ------------------------------------------------------

    # A ``change`` that is given goes into the audit list in the same transaction.

    def put_group(self, group: Group, *, change: AuditEntry | None = None) -> None:
        """Create or replace a group's quota.

        Raises:
            InvalidInput: the parent is unknown or would make a circle.
        """

    def group(self, name: str) -> Group:
        """Raises NotFound, whose text lists the groups there are."""

    def groups(self) -> tuple[Group, ...]:
        """All groups, by name."""

    def set_teachers(
        self, group: str, teachers: Sequence[str], *, change: AuditEntry | None = None
    ) -> None:
        """Replace the people who hold the role of teacher in a group."""

    def teachers(self, group: str) -> tuple[str, ...]: ...

    def taught_by(self, person: str) -> frozenset[str]:
        """Groups in which this person is a teacher."""

    def remove_group(self, name: str, *, at: float, change: AuditEntry | None = None) -> None:
        """Forget a group's quota; its requests and ledger lines are kept.

        Raises:
            NotFound: there is none.
            Conflict: requests of it live, or groups stand below it.
        """

    def terms(self) -> tuple[Term, ...]:
        """All of them, the first one first."""

    def put_term(self, term: Term, *, change: AuditEntry | None = None) -> None:
        """Make or change one. Raises InvalidInput where it overlaps another."""

    def remove_term(self, name: str, *, change: AuditEntry | None = None) -> bool:
        """Returns whether there was one; without one nothing is written."""

    def reservations(self) -> tuple[Reservation, ...]:
        """All of them, also past ones, by their first day."""

    def budgets(self, now: float) -> tuple[BudgetBalance, ...]:
        """Of every group that has a budget, by name, as in the snapshot."""

    def put_reservation(
        self, reservation: Reservation, *, change: AuditEntry | None = None
    ) -> None:
        """Raises NotFound for an unknown group."""

    def remove_reservation(self, name: str, *, change: AuditEntry | None = None) -> bool:
        """Returns whether there was one; without one nothing is written."""

    def nodes(self) -> tuple[str, ...]:
        """Return all nodes that were ever seen, by name."""

    def marks(self) -> tuple[Mark, ...]:
        """What keeps new work off devices and nodes, by target and kind."""

    def put_mark(self, mark: Mark, *, change: AuditEntry | None = None) -> None:
        """Set it, in place of one of the same target and kind. Raises NotFound."""

    def remove_mark(self, target: str, kind: MarkKind, *, change: AuditEntry | None = None) -> bool:
        """Returns whether there was one; without one nothing is written."""

    # -- audit log ------------------------------------------------------------------------

    def add_change(self, change: AuditEntry) -> None:
        """Append an audit entry about a change outside of this store."""

    def changes(self, which: ChangeFilter) -> tuple[AuditEntry, ...]:
        """Newest first."""

    def sync_devices(self, node: str, devices: Sequence[Device]) -> None:
        """Make the inventory of a node what was just seen.

        A device that is missing from ``devices`` becomes ``Health.GONE``, never deleted;
        one of a node that had simulated devices and now has none of them is removed if no
        live lease holds it. Marks stay, whatever was seen.
        """

    def set_health(self, device_id: str, health: Health, why: str) -> None: ...

    def devices(self) -> tuple[Device, ...]:
        """All devices, by node and index."""

    # -- requests -------------------------------------------------------------------------

    def submit(self, new: NewRequest, now: float) -> RequestRecord:
        """Store a request in ``queued``; the same owner and key return the first one."""

    def request(self, request_id: str) -> RequestRecord:
        """Raises NotFound."""

    def requests(self, which: RequestFilter) -> tuple[RequestRecord, ...]:
        """Newest first, at most ``which.limit``."""

    def live_session(self, owner: str, server_name: str) -> RequestRecord | None:
        """Return the session request of this server that has not ended."""

    def snapshot(self, now: float) -> Snapshot:
        """What ``decide`` reads: devices, groups, everything queued, every lease not released,
        what was used, decayed to the end of this minute, what is left of budgets, and what is
        reserved before anything that starts now would have to end."""

    def queued(self, owner: str) -> frozenset[str]:
        """Return the ids of the user's queued requests."""

    def allocations(self) -> tuple[Allocation, ...]:
        """Return all unreleased leases as in the snapshot, without reading the queue."""

    def waiting_for_devices(self) -> int:
        """Return the number of queued requests with devices."""

    # -- the moves of the lifecycle -------------------------------------------------------

    def grant(
        self, starts: Sequence[Start], *, now: float, lease_seconds: float
    ) -> tuple[LeaseRecord, ...]:
        """Write a lease per start: ``queued → granted``, epoch + 1.

        A start whose request is no longer queued, or one of whose devices is leased or not
        healthy, is left out; the others go ahead.
        """

    def launch(self, lease_id: str, *, now: float, token_hash: str = "") -> RequestRecord:
        """``granted → starting``; repeating it in ``starting`` replaces the token.

        Raises:
            StaleEpoch: the lease is released or no longer the request's newest.
            IllegalMove: the request is past ``starting``.
        """

    def apply(
        self,
        request_id: str,
        transition: Callable[Concatenate[RequestRecord, P], Transition],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> RequestRecord:
        """Apply a function of ``hub.transitions`` to a request, in one transaction.

        Example: ``store.apply(request.id, lifecycle.halt, cause, now=now)``. The request as it is
        at that moment is passed first. Repeating a transition changes nothing.

        Raises:
            NotFound: there is no such request.
            CarrelError: as the transition says; nothing is changed then.
        """

    def apply_to_lease(
        self,
        lease_id: str,
        transition: Callable[Concatenate[RequestRecord, str, P], Transition],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> RequestRecord:
        """The same for the request that a lease was granted to; the lease id is passed second."""

    # -- what people change about a request that goes on ----------------------------------

    def keep_place(
        self, request_id: str, server_name: str, *, now: float, desk: NewRequest | None = None
    ) -> RequestRecord:
        """A session that waits for devices keeps its place under this server name and will be
        held for its owner; ``desk`` is submitted in the same transaction.

        One that is to be claimed already stays as it is, its name included.

        Raises:
            Conflict: it does not wait for devices, or another live session has the name.
        """

    # -- leases, events, ledger -----------------------------------------------------------

    def leases(self) -> tuple[LeaseRecord, ...]:
        """Return all leases that are not released."""

    def lease(self, lease_id: str) -> LeaseRecord:
        """Raises NotFound."""

    def lease_of_token(self, token_hash: str) -> LeaseRecord:
        """The lease whose attempt was given this token. Raises NotFound."""

    def renew(self, lease_ids: Sequence[str], *, now: float, until: float) -> None:
        """A sign of life: ``seen_at = now``, ``expires_at = until``, suspect → live."""

    def suspect(self, lease_ids: Sequence[str]) -> None: ...

    def charge(self, *, now: float) -> None:
        """Write the ledger up to ``seen_at`` for every live lease."""

    def clock_offset(self) -> ClockOffset | None:
        """Return the offset that the last life of the service kept; None on a new site."""

    def keep_clock_offset(self, offset: ClockOffset) -> None: ...

    def move_times(self, step: float, offset: ClockOffset) -> None:
        """Move the times of all running work by ``step`` seconds and keep the new offset.

        The rule is ``transitions.clock_step``. Both in one transaction: a crash repeats neither.
        """

    def add_events(self, lease_id: str, events: Sequence[NewEvent]) -> tuple[EventRecord, ...]:
        """Append what is new; a ``seq`` seen before is dropped. Returns what was added.

        Raises:
            StaleEpoch: the lease is not the request's newest, or the request has ended.
        """

    def events(
        self,
        request_id: str,
        *,
        after: int = 0,
        limit: int = 1000,
        kinds: frozenset[str] | None = None,
    ) -> tuple[EventRecord, ...]:
        """Oldest first; only of these kinds, where they are given."""

    def usage(self, *, now: float, owner: str | None = None) -> tuple[Usage, ...]:
        """By owner and group."""

    def ledger(
        self, *, owner: str | None = None, request_id: str | None = None
    ) -> tuple[LedgerEntry, ...]:
        """Oldest first."""

    def charged(self, request_ids: Sequence[str]) -> Mapping[str, float]:
        """Device-seconds in the ledger by request; a request without any is 0."""

    def glance(self, after: int | None) -> ChangeDigest:
        """Return what all event streams read when they are notified; None: nothing touched yet."""

    def close(self) -> None: ...
