"""Queries of requests, leases and events; functions run inside a transaction of the caller."""

from __future__ import annotations

from sqlalchemy import (
    Connection,
    func,
    select,
)

from ...records.calendar import reserved
from ...records.events import EventRecord
from ...records.leases import LeaseRecord
from ...records.ledger import Usage
from ...records.requests import RequestRecord
from ...scheduling.model.snapshot import Allocation, Kind, PriorityClass, Snapshot
from ...scheduling.model.states import State
from ..rules import checks, conversions
from .calendar import SqlBudgets, read_reservations
from .queue import Queue
from .tables.core import attempts, events, lease_devices, leases, nodes, requests
from .tables.pool_rows import read_devices, read_groups, read_marks
from .tables.request_rows import LEASES, REQUESTS, read_leases, read_requests, to_events
from .usage.decayed_usage import DecayedUsageSums
from .usage.ledger_sums import LedgerSums


def request(connection: Connection, request_id: str) -> RequestRecord:
    """Return a request; its row is locked if the database supports that."""
    query = REQUESTS.where(requests.c.id == request_id).with_for_update(of=requests)
    records = read_requests(connection, query)
    if not records:
        raise checks.no_request(request_id)
    return records[0]


def request_of_lease(connection: Connection, lease_id: str) -> RequestRecord:
    """Return the request of a lease; the lease need not be its newest."""
    query = select(leases.c.request_id).where(leases.c.id == lease_id)
    request_id = connection.scalar(query)
    if request_id is None:
        raise checks.no_lease(lease_id)
    return request(connection, request_id)


def request_by_key(connection: Connection, owner: str, key: str) -> RequestRecord | None:
    """Return the request that the owner submitted with this idempotency key."""
    query = REQUESTS.where(requests.c.owner == owner, requests.c.idempotency_key == key)
    return next(iter(read_requests(connection, query)), None)


def live_session(connection: Connection, owner: str, server_name: str) -> RequestRecord | None:
    query = REQUESTS.where(
        requests.c.kind == str(Kind.SESSION),
        requests.c.owner == owner,
        requests.c.server_name == server_name,
        requests.c.ended_at.is_(None),
    )
    return next(iter(read_requests(connection, query)), None)


def snapshot(
    connection: Connection, queue: Queue, use: DecayedUsageSums, budgets: SqlBudgets, now: float
) -> Snapshot:
    nodes_now, marks = connection.scalars(select(nodes.c.name)).all(), read_marks(connection)
    groups = read_groups(connection)
    all_groups = tuple(groups.values())
    horizon = conversions.horizon(all_groups)
    return Snapshot(
        takes_work=conversions.takes_work(nodes_now, marks),
        unreachable=conversions.cordon_reasons(marks),
        devices=tuple(read_devices(connection, marks).values()),
        groups=all_groups,
        pending=queue.read(connection),
        allocations=allocations(connection),
        use=use.read(connection, now),
        budgets=budgets.read(connection, all_groups, now),
        reserved=reserved(read_reservations(connection), groups, now, horizon),
    )


_LIVE_LEASES = LEASES.where(leases.c.released_at.is_(None))


def allocations(connection: Connection) -> tuple[Allocation, ...]:
    """Return every lease that is not released, oldest first."""
    by_lease: dict[str, Allocation] = {}
    for row in connection.execute(_ALLOCATIONS):
        before = by_lease.get(row.id)
        held = () if row.device_id is None else (row.device_id,)
        by_lease[row.id] = Allocation(
            request_id=row.request_id,
            owner=row.owner,
            group=row.group_name,
            devices=(*before.devices, *held) if before else held,
            since=row.granted_at,
            until=row.granted_at + row.seconds,
            kind=Kind(row.kind),
            priority=PriorityClass(row.priority),
            preemptible=row.preemptible,
            expected=row.expected,
            saved_at=row.saved_at,
            leaving=conversions.leaving(row.notice is not None, State(row.state)),
            leaves_at=None if row.notice is None else row.notice["stops_at"],
            image=row.image or "",
        )
    return tuple(by_lease.values())


# One row per device. Starts at the leases, of which few are live, not at the queue.
_ALLOCATIONS = (
    select(leases.c.id, leases.c.request_id, leases.c.granted_at)
    .add_columns(requests.c.owner, requests.c.group_name, requests.c.seconds)
    .add_columns(requests.c.kind, requests.c.priority, requests.c.preemptible, requests.c.expected)
    .add_columns(requests.c.notice, requests.c.state, requests.c.image, attempts.c.saved_at)
    .add_columns(lease_devices.c.device_id)
    .join_from(leases, requests)
    .outerjoin(attempts, attempts.c.lease_id == leases.c.id)
    .outerjoin(lease_devices, lease_devices.c.lease_id == leases.c.id)
    .where(leases.c.released_at.is_(None))
    .order_by(leases.c.granted_at, leases.c.id, lease_devices.c.position)
)


def leases_by_node(connection: Connection) -> dict[str, int]:
    """Return the number of leases that are not released, by node."""
    counted = select(leases.c.node, func.count().label("held")).group_by(leases.c.node)
    live = connection.execute(counted.where(leases.c.released_at.is_(None)))
    return {row.node: row.held for row in live}


def live_leases(connection: Connection) -> tuple[LeaseRecord, ...]:
    return tuple(sorted(read_leases(connection, _LIVE_LEASES), key=_age))


def _age(lease: LeaseRecord) -> tuple[float, str]:
    return lease.granted_at, lease.id


def lease(connection: Connection, lease_id: str) -> LeaseRecord:
    records = read_leases(connection, LEASES.where(leases.c.id == lease_id))
    if not records:
        raise checks.no_lease(lease_id)
    return records[0]


def lease_of_token(connection: Connection, token_hash: str) -> LeaseRecord:
    records = read_leases(connection, LEASES.where(attempts.c.token_hash == token_hash))
    if not records:
        raise checks.no_lease("of this token")
    return records[0]


def find_events(
    connection: Connection,
    request_id: str,
    *,
    after: int,
    limit: int,
    kinds: frozenset[str] | None = None,
) -> tuple[EventRecord, ...]:
    query = (
        select(events)
        .where(events.c.request_id == request_id, events.c.id > after)
        .order_by(events.c.id)
        .limit(max(0, limit))
    )
    if kinds is not None:
        query = query.where(events.c.kind.in_(sorted(kinds)))
    return to_events(connection.execute(query))


def usage(
    connection: Connection, sums: LedgerSums, *, now: float, owner: str | None
) -> tuple[Usage, ...]:
    """Return the charged usage and the usage of live leases that is not charged yet."""
    charged = sums.by_person(connection, owner)
    running: dict[tuple[str, str], float] = {}
    for person, group, charged_until in connection.execute(_LIVE_USAGE):
        # Filtered here: few leases are live, but the database would scan all requests of an owner.
        if owner not in (None, person):
            continue
        seconds = max(0.0, now - charged_until)
        running[person, group] = running.get((person, group), 0.0) + seconds
    return tuple(
        Usage(
            owner=person,
            group=group,
            charged=charged.get((person, group), 0.0),
            open=running.get((person, group), 0.0),
        )
        for person, group in sorted({*charged, *running})
    )


# One row per lease and device.
_LIVE_USAGE = (
    select(requests.c.owner, requests.c.group_name, leases.c.charged_until)
    .join_from(leases, requests)
    .join(lease_devices, lease_devices.c.lease_id == leases.c.id)
    .where(leases.c.released_at.is_(None))
)
