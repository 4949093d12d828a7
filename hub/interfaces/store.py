"""The store: every method is one transaction, and safe to repeat after a crash.

``tests/contracts`` tests it on every database that Carrel supports.
``now`` is always passed in. Methods that change a request append a ``state`` event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from ..records.audit import AuditEntry, ChangeFilter
from ..records.calendar import Reservation, Term
from ..records.events import ChangeDigest, EventRecord, NewEvent
from ..records.json_value import Json
from ..records.leases import Handle, LeaseRecord
from ..records.ledger import LedgerEntry, Usage
from ..records.notices import StopNotice
from ..records.requests import Cause, NewRequest, RequestChange, RequestFilter, RequestRecord
from ..scheduling.model.idleness import IdleWarning
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
from ..scheduling.model.states import State
from .images import ImagePinStore
from .usage import UsageStore


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
        """Every node that was ever seen, by name."""

    def marks(self) -> tuple[Mark, ...]:
        """What keeps new work off devices and nodes, by target and kind."""

    def put_mark(self, mark: Mark, *, change: AuditEntry | None = None) -> None:
        """Set it, in place of one of the same target and kind. Raises NotFound."""

    def remove_mark(self, target: str, kind: MarkKind, *, change: AuditEntry | None = None) -> bool:
        """Returns whether there was one; without one nothing is written."""

    # -- who changed what -----------------------------------------------------------------

    def add_change(self, change: AuditEntry) -> None:
        """A line of the audit list about something that is not kept here."""

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
        """The one session request of this server that has not ended."""

    def snapshot(self, now: float) -> Snapshot:
        """What ``decide`` reads: devices, groups, everything queued, every lease not released,
        what was used, decayed to the end of this minute, what is left of budgets, and what is
        reserved before anything that starts now would have to end."""

    def queued(self, owner: str) -> frozenset[str]:
        """Ids of the requests of this person that wait."""

    def holdings(self) -> tuple[Allocation, ...]:
        """Every lease that is not released, as in the snapshot; without reading the queue."""

    def waiting_for_devices(self) -> int:
        """How many queued requests ask for devices."""

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

    def started(self, lease_id: str, handle: Handle, *, now: float) -> RequestRecord:
        """``starting → running``; the same handle again changes nothing.

        Raises:
            StaleEpoch: as above, or another process already runs under this lease.
        """

    def stop(
        self,
        request_id: str,
        target: State,
        cause: Cause,
        *,
        now: float,
        change: AuditEntry | None = None,
    ) -> RequestRecord:
        """Ask it to end in ``target``.

        ``queued`` and ``granted`` end at once (and give their devices back);
        ``starting`` and ``running`` become ``stopping``; in ``stopping`` and in a terminal
        state nothing changes: the first cause stands.
        """

    def halt(self, request_id: str, cause: Cause, *, now: float) -> RequestRecord:
        """Ask for another attempt, in its old place.

        ``granted`` is queued at once; ``starting`` and ``running`` become ``stopping``, and
        so does what is stopping as failed; in all other states nothing changes.
        """

    def notify(self, request_id: str, notice: StopNotice, *, now: float) -> RequestRecord:
        """Note that the devices of a running request are asked back; the first notice stands.

        In states without devices nothing changes.
        """

    def withdraw_notice(self, request_id: str, why: str, *, now: float) -> RequestRecord:
        """Take such a notice back, if there is one and nothing has come of it."""

    def preempt(
        self, request_id: str, cause: Cause, notice: StopNotice, *, now: float
    ) -> RequestRecord:
        """Stop what was asked back by this notice, towards another attempt in its old place:
        behind whom it made room for, and before all others where it was moved.

        ``granted`` is queued at once and uncharged; ``starting`` and ``running`` become
        ``stopping``; in all other states nothing changes.
        """

    def finish(self, lease_id: str, *, now: float, charge_until: float) -> RequestRecord:
        """Death is confirmed: ``stopping → target``, lease released, ledger complete.

        What was halted or preempted goes on to ``queued``. A lease that ends with
        ``DEVICE_FAULT`` gets a credit over all that it was charged. Repeating it changes nothing.
        """

    def give_back(self, lease_id: str, *, now: float, charge_until: float) -> RequestRecord:
        """Nothing ran: ``granted | starting → queued``; repeating it changes nothing."""

    def lose(
        self,
        lease_id: str,
        cause: Cause,
        *,
        now: float,
        charge_until: float,
        requeue: bool = False,
    ) -> RequestRecord:
        """Death without an end: ``starting | running → lost → failed``, lease released.

        With ``requeue`` it is tried again: ``lost → queued``, in its old place.
        """

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

    def claim(self, request_id: str, *, now: float) -> RequestRecord:
        """Its owner comes for the device that is held; repeating it changes nothing.

        Raises:
            Conflict: nothing is held: it starts by itself, waits still, or has ended.
        """

    def unclaimed(
        self, request_id: str, cause: Cause, *, now: float, charge_until: float
    ) -> RequestRecord:
        """End what is held and was not claimed: ``granted → cancelled``, lease released.

        One that was claimed meanwhile stays as it is.
        """

    def extend(
        self, request_id: str, seconds: int, *, by: str, now: float, seen: int | None = None
    ) -> RequestRecord:
        """Add to the time limit of what runs.

        With ``seen``, add to that limit: one that reaches so far already stays as it is.

        Raises:
            Conflict: it does not run.
        """

    def change(self, request_id: str, wanted: RequestChange, *, now: float) -> RequestRecord:
        """Ask for less from now on, or in another group, and keep the age in the queue.

        Raises:
            Conflict: it does not wait, or more was wanted.
        """

    # -- sessions that hold devices and do nothing ---------------------------------------

    def warn_idle(self, request_id: str, warning: IdleWarning, *, now: float) -> RequestRecord:
        """Note that a running session is idle; one that does not run stays as it is."""

    def withdraw_warning(self, request_id: str, why: str, *, now: float) -> RequestRecord:
        """Take such a warning back, if there is one."""

    def keep_idle(self, request_id: str, *, now: float) -> RequestRecord:
        """Its owner keeps it in spite of the warning.

        Raises:
            Conflict: it is not warned, or was kept before.
        """

    # -- leases, events, ledger -----------------------------------------------------------

    def leases(self) -> tuple[LeaseRecord, ...]:
        """Every lease that is not released."""

    def lease(self, lease_id: str) -> LeaseRecord:
        """Raises NotFound."""

    def lease_of_token(self, token_hash: str) -> LeaseRecord:
        """The lease whose attempt was given this token. Raises NotFound."""

    def renew(self, lease_ids: Sequence[str], *, now: float, until: float) -> None:
        """A sign of life: ``seen_at = now``, ``expires_at = until``, suspect → live."""

    def suspect(self, lease_ids: Sequence[str]) -> None: ...

    def charge(self, *, now: float) -> None:
        """Write the ledger up to ``seen_at`` for every live lease."""

    def add_events(self, lease_id: str, events: Sequence[NewEvent]) -> tuple[EventRecord, ...]:
        """Append what is new; a ``seq`` seen before is dropped. Returns what was added.

        Raises:
            StaleEpoch: the lease is not the request's newest, or the request has ended.
        """

    def tell(
        self, request_id: str, kind: str, data: Mapping[str, Json], *, now: float
    ) -> RequestRecord:
        """Add a line of the service's own to the history of a request that has not ended."""

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
        """What all event streams look at with every beat; None: from now on, nothing touched."""

    def close(self) -> None: ...
