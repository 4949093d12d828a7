"""What can be asked: each function is the inside of one transaction and changes nothing."""

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
    """The request; the row is kept from changing where the database can do that."""
    query = REQUESTS.where(requests.c.id == request_id).with_for_update(of=requests)
    found = read_requests(connection, query)
    if not found:
        raise checks.no_request(request_id)
    return found[0]


def request_of_lease(connection: Connection, lease_id: str) -> RequestRecord:
    """The request that this lease, its newest or an older one, was granted to."""
    query = select(leases.c.request_id).where(leases.c.id == lease_id)
    request_id = connection.scalar(query)
    if request_id is None:
        raise checks.no_lease(lease_id)
    return request(connection, request_id)


def of_key(connection: Connection, owner: str, key: str) -> RequestRecord | None:
    """The request that was made under this idempotency key."""
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
    known = tuple(groups.values())
    return Snapshot(
        takes_work=conversions.takes_work(nodes_now, marks),
        unreachable=conversions.silences(marks),
        devices=tuple(read_devices(connection, marks).values()),
        groups=known,
        pending=queue.read(connection),
        allocations=allocations(connection),
        use=use.read(connection, now),
        budgets=budgets.read(connection, known, now),
        reserved=reserved(read_reservations(connection), groups, now, conversions.horizon(known)),
    )


_LIVE_LEASES = LEASES.where(leases.c.released_at.is_(None))


def allocations(connection: Connection) -> tuple[Allocation, ...]:
    """Every lease that is not released, oldest first."""
    found: dict[str, Allocation] = {}
    for row in connection.execute(_HELD):
        before = found.get(row.id)
        held = () if row.device_id is None else (row.device_id,)
        found[row.id] = Allocation(
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
    return tuple(found.values())


# A line for each device. Begun at the leases, of which few are live, and not at the queue.
_HELD = (
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


def held_by_node(connection: Connection) -> dict[str, int]:
    """How many leases of each node are not released."""
    counted = select(leases.c.node, func.count().label("held")).group_by(leases.c.node)
    live = connection.execute(counted.where(leases.c.released_at.is_(None)))
    return {row.node: row.held for row in live}


def live_leases(connection: Connection) -> tuple[LeaseRecord, ...]:
    return tuple(sorted(read_leases(connection, _LIVE_LEASES), key=_age))


def _age(lease: LeaseRecord) -> tuple[float, str]:
    return lease.granted_at, lease.id


def lease(connection: Connection, lease_id: str) -> LeaseRecord:
    found = read_leases(connection, LEASES.where(leases.c.id == lease_id))
    if not found:
        raise checks.no_lease(lease_id)
    return found[0]


def lease_of_token(connection: Connection, token_hash: str) -> LeaseRecord:
    found = read_leases(connection, LEASES.where(attempts.c.token_hash == token_hash))
    if not found:
        raise checks.no_lease("of this token")
    return found[0]


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
    """What the ledger holds, and what live leases have used since."""
    charged = sums.by_person(connection, owner)
    opened: dict[tuple[str, str], float] = {}
    for who, group, charged_until in connection.execute(_RUNNING):
        # Few leases live; asked for one owner, the database would look at all their requests.
        if owner not in (None, who):
            continue
        since = max(0.0, now - charged_until)
        opened[who, group] = opened.get((who, group), 0.0) + since
    return tuple(
        Usage(
            owner=who,
            group=group,
            charged=charged.get((who, group), 0.0),
            open=opened.get((who, group), 0.0),
        )
        for who, group in sorted({*charged, *opened})
    )


# A lease comes once for each of its devices.
_RUNNING = (
    select(requests.c.owner, requests.c.group_name, leases.c.charged_until)
    .join_from(leases, requests)
    .join(lease_devices, lease_devices.c.lease_id == leases.c.id)
    .where(leases.c.released_at.is_(None))
)
