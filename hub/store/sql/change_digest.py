"""Read the changes of the store since an event, in one query set for all event streams."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from ...records.events import ChangeDigest, Touched
from ...records.leases import LeaseState
from . import queries
from .queue import Queue
from .tables.core import events, group_teachers, leases, requests
from .tables.pool_rows import read_devices, read_marks


def read_digest(connection: Connection, after: int | None, queue: Queue) -> ChangeDigest:
    last = connection.scalar(select(func.max(events.c.id))) or 0
    queued = queue.read(connection)
    return ChangeDigest(
        last=last,
        touched=() if after is None or after >= last else _touched(connection, after),
        suspect=frozenset(connection.scalars(_SUSPECT)),
        devices=tuple(read_devices(connection, read_marks(connection)).values()),
        allocations=queries.allocations(connection),
        waiting=sum(request.devices > 0 for request in queued),
        queued=queued,
        taught=_taught(connection),
    )


_SUSPECT = select(leases.c.request_id).where(
    leases.c.released_at.is_(None), leases.c.state == str(LeaseState.SUSPECT)
)


def _touched(connection: Connection, after: int) -> tuple[Touched, ...]:
    newest = (
        select(events.c.request_id, func.max(events.c.id).label("event_id"))
        .where(events.c.id > after)
        .group_by(events.c.request_id)
        .subquery()
    )
    query = (
        select(newest.c.request_id, newest.c.event_id, requests.c.owner, requests.c.group_name)
        .join(requests, requests.c.id == newest.c.request_id)
        .order_by(newest.c.event_id)
    )
    return tuple(
        Touched(request_id=name, owner=owner, group=group, event_id=event_id)
        for name, event_id, owner, group in connection.execute(query)
    )


def _taught(connection: Connection) -> dict[str, frozenset[str]]:
    groups: dict[str, frozenset[str]] = {}
    for group, person in connection.execute(
        select(group_teachers.c.group_name, group_teachers.c.person)
    ):
        groups[person] = groups.get(person, frozenset()) | {group}
    return groups
