"""The store: every method is one transaction, and safe to repeat after a crash.

Two implementations pass the same contract suite: ``hub.store.sql`` and ``hub.store.memory``.
``now`` is always passed in. Methods that change a request append a ``state`` event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..scheduling.lifecycle import State
from ..scheduling.model import Device, Group, Health, Holding, Snapshot, Start
from .records import (
    Cause,
    EventRecord,
    Glance,
    Handle,
    LeaseRecord,
    LedgerEntry,
    NewEvent,
    NewRequest,
    RequestFilter,
    RequestRecord,
    Usage,
)


class Store(Protocol):
    """What the service remembers."""

    # -- the pool and the quota tree ------------------------------------------------------

    def put_group(self, group: Group) -> None:
        """Create or replace a group's quota.

        Raises:
            InvalidInput: the parent is unknown or would make a circle.
        """

    def group(self, name: str) -> Group:
        """Raises NotFound, whose text lists the groups there are."""

    def groups(self) -> tuple[Group, ...]:
        """All groups, by name."""

    def set_teachers(self, group: str, teachers: Sequence[str]) -> None:
        """Replace the people who hold the role of teacher in a group."""

    def teachers(self, group: str) -> tuple[str, ...]: ...

    def taught_by(self, person: str) -> frozenset[str]:
        """Groups in which this person is a teacher."""

    def sync_devices(self, node: str, devices: Sequence[Device]) -> None:
        """Make the inventory of a node what was just seen.

        A device that is missing from ``devices`` becomes ``Health.GONE``, never deleted;
        one of a node that had simulated devices and now has none of them is removed if no
        live lease holds it.
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

    def session_count(self, owner: str, server_name: str) -> int:
        """How many session requests this server ever had: makes the next idempotency key."""

    def snapshot(self) -> Snapshot:
        """What ``decide`` reads: devices, groups, everything queued, every lease not released."""

    def holdings(self) -> tuple[Holding, ...]:
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

    def stop(self, request_id: str, target: State, cause: Cause, *, now: float) -> RequestRecord:
        """Ask it to end in ``target``.

        ``queued`` and ``granted`` end at once (and give their devices back);
        ``starting`` and ``running`` become ``stopping``; in ``stopping`` and in a terminal
        state nothing changes: the first cause stands.
        """

    def finish(self, lease_id: str, *, now: float, charge_until: float) -> RequestRecord:
        """Death is confirmed: ``stopping → target``, lease released, ledger complete.

        Repeating it changes nothing.
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

    def glance(self, after: int | None) -> Glance:
        """What all event streams look at with every beat; None: from now on, nothing touched."""

    def close(self) -> None: ...
