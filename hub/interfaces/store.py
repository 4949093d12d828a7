"""The port to the store: every method is one transaction and can be repeated after a crash.

``tests/contracts`` tests implementations on every supported database. The time is always passed in
as ``now``, in seconds since the epoch. Methods that change the state of a request append a
``state`` event. Methods that take ``change`` add it to the audit log in the same transaction, and
raise ChangedMeanwhile if the change is based on an outdated version of its target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Concatenate, ParamSpec, Protocol

from ..records.audit import AuditEntry, ChangeFilter
from ..records.calendar import Reservation, Term
from ..records.clock import ClockOffset
from ..records.events import ChangeDigest, EventRecord, NewEvent
from ..records.identity import ProgramCharge
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
from .announcements import AnnouncementStore
from .gallery import GalleryStore
from .images import ImagePinStore
from .programs import ProgramStore
from .run_times import ForecastStore
from .schedules import ScheduleStore
from .secrets import SecretStore
from .usage import UsageStore
from .utilization import UtilizationStore

P = ParamSpec("P")


class Store(
    UsageStore,
    AnnouncementStore,
    ForecastStore,
    GalleryStore,
    ImagePinStore,
    ProgramStore,
    ScheduleStore,
    SecretStore,
    UtilizationStore,
    Protocol,
):
    """Everything that the service stores; see ``UsageStore`` for queries on past usage."""

    def together(self) -> AbstractContextManager[None]:
        """Run all reads of this thread inside the block in one transaction, on one state.

        For pages that read many things. The block must not wait for anything, and reads inside it
        may not see writes inside it.
        """

    # -- the pool and the quota tree ------------------------------------------------------

    def put_group(self, group: Group, *, change: AuditEntry | None = None) -> None:
        """Create or replace a group's quota.

        Raises:
            InvalidInput: the parent is unknown, or the tree would have a cycle.
        """

    def group(self, name: str) -> Group:
        """Return a group. Raises NotFound, with the existing groups in the message."""

    def groups(self) -> tuple[Group, ...]:
        """Return all groups, by name."""

    def set_teachers(
        self, group: str, teachers: Sequence[str], *, change: AuditEntry | None = None
    ) -> None:
        """Replace the teachers of a group."""

    def teachers(self, group: str) -> tuple[str, ...]:
        """Return the teachers of a group."""

    def taught_by(self, person: str) -> frozenset[str]:
        """Return the groups in which this user is a teacher."""

    def remove_group(self, name: str, *, at: float, change: AuditEntry | None = None) -> None:
        """Delete a group's quota; its requests and ledger entries are kept.

        Raises:
            NotFound: there is no such group.
            Conflict: the group has live requests or subgroups.
        """

    def terms(self) -> tuple[Term, ...]:
        """Return all terms, the first one first."""

    def put_term(self, term: Term, *, change: AuditEntry | None = None) -> None:
        """Create or replace a term. Raises InvalidInput if it overlaps another."""

    def remove_term(self, name: str, *, change: AuditEntry | None = None) -> bool:
        """Delete a term and return True; without one, write nothing and return False."""

    def reservations(self) -> tuple[Reservation, ...]:
        """Return all reservations, past ones included, by their first day."""

    def budgets(self, now: float) -> tuple[BudgetBalance, ...]:
        """Return the balance of every group with a budget, by name, as in the snapshot."""

    def put_reservation(
        self, reservation: Reservation, *, change: AuditEntry | None = None
    ) -> None:
        """Create or replace a reservation. Raises NotFound for an unknown group."""

    def remove_reservation(self, name: str, *, change: AuditEntry | None = None) -> bool:
        """Delete a reservation and return True; without one, write nothing and return False."""

    def remove_notification_channels_of(self, owner: str) -> int:
        """Delete all notification channels of a user; return how many there were."""

    def nodes(self) -> tuple[str, ...]:
        """Return all nodes that were ever seen, by name."""

    def marks(self) -> tuple[Mark, ...]:
        """Return all drains and quarantines of devices and nodes, by target and kind."""

    def put_mark(self, mark: Mark, *, change: AuditEntry | None = None) -> None:
        """Create or replace the mark of this kind on a target. Raises NotFound for the target."""

    def remove_mark(self, target: str, kind: MarkKind, *, change: AuditEntry | None = None) -> bool:
        """Delete a mark and return True; without one, write nothing and return False."""

    # -- audit log ------------------------------------------------------------------------

    def add_change(self, change: AuditEntry) -> None:
        """Append an audit entry about a change outside this store."""

    def changes(self, which: ChangeFilter) -> tuple[AuditEntry, ...]:
        """Return audit entries, newest first."""

    def check_unchanged(self, change: AuditEntry) -> None:
        """Raise ChangedMeanwhile if the change is outdated; store nothing (``records.edits``)."""

    def sync_devices(self, node: str, devices: Sequence[Device]) -> None:
        """Replace the inventory of a node by the devices that were just detected.

        A device that is missing from ``devices`` becomes ``Health.GONE`` and is not deleted.
        Exception: when a node no longer has simulated devices, its simulated devices without a
        live lease are deleted. Marks are kept.
        """

    def remove_node(self, name: str, *, change: AuditEntry | None = None) -> None:
        """Delete a node with its devices and their marks; past requests keep its name.

        Raises:
            NotFound: there is no such node.
            Conflict: a lease there is not released.
        """

    def set_health(self, device_id: str, health: Health, why: str) -> None:
        """Set the health of a device, with the reason as a sentence."""

    def devices(self) -> tuple[Device, ...]:
        """Return all devices, by node and index."""

    # -- requests -------------------------------------------------------------------------

    def submit(
        self,
        new: NewRequest,
        now: float,
        *,
        charge: ProgramCharge | None = None,
        secrets: Sequence[str] = (),
    ) -> RequestRecord:
        """Store a request in ``queued``.

        If the owner submitted one with the same idempotency key before, return that one.

        Args:
            charge: of a job that a program submits.
            secrets: that a session uses; those of a job are in its specification.

        Raises:
            Forbidden, OverMaximum: the program may not submit it any more; nothing is stored.
        """

    def request(self, request_id: str) -> RequestRecord:
        """Return a request. Raises NotFound."""

    def requests(self, which: RequestFilter) -> tuple[RequestRecord, ...]:
        """Return the matching requests, newest first, at most ``which.limit``."""

    def live_session(self, owner: str, server_name: str) -> RequestRecord | None:
        """Return the session request of this server that has not ended."""

    def snapshot(self, now: float) -> Snapshot:
        """Return the input of ``decide``.

        It holds devices, groups, queued requests, unreleased leases, past usage decayed to the end
        of this minute, budget balances, and the reservations that begin before the longest request
        that starts now would end.
        """

    def queued(self, owner: str) -> frozenset[str]:
        """Return the ids of the user's queued requests."""

    def allocations(self) -> tuple[Allocation, ...]:
        """Return all unreleased leases as in the snapshot, without reading the queue."""

    def waiting_for_devices(self) -> int:
        """Return the number of queued requests with devices."""

    # -- the transitions of a request -----------------------------------------------------

    def grant(
        self, starts: Sequence[Start], *, now: float, lease_seconds: float
    ) -> tuple[LeaseRecord, ...]:
        """Store a lease for each start: ``queued → granted``, epoch + 1.

        Starts are skipped if their request is no longer queued, or if one of their devices is
        leased or unhealthy.
        """

    def launch(self, lease_id: str, *, now: float, token_hash: str = "") -> RequestRecord:
        """Move a request ``granted → starting``; in ``starting``, only replace the token.

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

        Example: ``store.apply(request.id, lifecycle.halt, cause, now=now)``. The stored request is
        passed as the first argument. Transitions are idempotent.

        Raises:
            NotFound: there is no such request.
            CarrelError: the transition raised it, and nothing was changed.
        """

    def apply_to_lease(
        self,
        lease_id: str,
        transition: Callable[Concatenate[RequestRecord, str, P], Transition],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> RequestRecord:
        """Apply a transition to the request of a lease; the lease id is the second argument."""

    # -- changes by the owner -------------------------------------------------------------

    def keep_place(
        self, request_id: str, server_name: str, *, now: float, desk: NewRequest | None = None
    ) -> RequestRecord:
        """Keep the place of a queued session under a new server name, and hold it once granted.

        ``desk`` is submitted in the same transaction. A session that must be claimed already keeps
        its server name.

        Raises:
            Conflict: the session is not queued for devices, or another live session has the name.
        """

    # -- leases, events, ledger -----------------------------------------------------------

    def leases(self) -> tuple[LeaseRecord, ...]:
        """Return all unreleased leases."""

    def lease(self, lease_id: str) -> LeaseRecord:
        """Return a lease. Raises NotFound."""

    def lease_of_token(self, token_hash: str) -> LeaseRecord:
        """Return the lease whose attempt has this token. Raises NotFound."""

    def postpone(self, starts: Mapping[str, float], *, until: float) -> None:
        """Move the start of live leases, of which nothing was charged, and renew them from there.

        The charge and the time limit of a lease count from its start. An engine with a queue of
        its own takes the devices of a lease later than it was granted.
        """

    def renew(self, signs: Mapping[str, float], *, until: float) -> None:
        """Record signs of life as ``seen_at``: ``expires_at = until``, suspect → live."""

    def suspect(self, lease_ids: Sequence[str]) -> None:
        """Mark live leases as suspect, because their heartbeat is missing."""

    def charge(self, lease_ids: Sequence[str], *, now: float) -> None:
        """Charge live leases up to their ``seen_at`` in the ledger."""

    def clock_offset(self) -> ClockOffset | None:
        """Return the clock offset of the previous service process; None on a new site."""

    def keep_clock_offset(self, offset: ClockOffset) -> None:
        """Store the clock offset for the next service process."""

    def move_times(self, step: float, offset: ClockOffset) -> None:
        """Move the times of all running work by ``step`` seconds and store the new offset.

        ``transitions.clock_step`` defines which times move. One transaction, so that a crash cannot
        apply the step twice.
        """

    def add_events(self, lease_id: str, events: Sequence[NewEvent]) -> tuple[EventRecord, ...]:
        """Append new events and return them; events with a known ``seq`` are dropped.

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
        """Return at most ``limit`` events with ids above ``after``, oldest first.

        ``kinds`` limits them to these kinds.
        """

    def usage(self, *, now: float, owner: str | None = None) -> tuple[Usage, ...]:
        """Return the device-seconds used, charged and open, by owner and group."""

    def ledger(
        self, *, owner: str | None = None, request_id: str | None = None
    ) -> tuple[LedgerEntry, ...]:
        """Return ledger entries, oldest first."""

    def charged(self, request_ids: Sequence[str]) -> Mapping[str, float]:
        """Return the charged device-seconds of each request; 0 for requests without charges."""

    def change_digest(self, after: int | None) -> ChangeDigest:
        """Return the data that event streams need when they are notified.

        ``touched`` covers the events with ids above ``after``; it is empty for None.
        """

    def close(self) -> None:
        """Close all connections to the database."""
