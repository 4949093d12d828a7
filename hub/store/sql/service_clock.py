"""The stored clock offset and the times of running work.

Functions run inside a transaction of the caller.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select, update

from ...records.clock import ClockOffset
from ...records.leases import LeaseRecord
from ...transitions import clock_step
from .tables.core import attempts, leases, requests, service_clock
from .tables.request_rows import (
    REQUESTS,
    attempt_changes,
    lease_columns,
    read_requests,
    request_changes,
)

_RUNNING = REQUESTS.where(leases.c.released_at.is_(None), leases.c.id.is_not(None))


def offset(connection: Connection) -> ClockOffset | None:
    row = connection.execute(select(service_clock)).one_or_none()
    return None if row is None else ClockOffset(boot=row.boot, seconds=row.seconds)


def keep_offset(connection: Connection, new: ClockOffset) -> None:
    connection.execute(delete(service_clock))
    connection.execute(insert(service_clock).values(id=1, boot=new.boot, seconds=new.seconds))


def move_times(connection: Connection, step: float, new: ClockOffset) -> None:
    for request in read_requests(connection, _RUNNING):
        after = clock_step.moved(request, step)
        connection.execute(
            update(requests).where(requests.c.id == request.id).values(request_changes(after))
        )
        if after.lease is not None:
            _write_lease(connection, after.lease)
    keep_offset(connection, new)


def _write_lease(connection: Connection, lease: LeaseRecord) -> None:
    changes = lease_columns(lease)
    connection.execute(update(leases).where(leases.c.id == changes.pop("id")).values(changes))
    connection.execute(
        update(attempts).where(attempts.c.lease_id == lease.id).values(attempt_changes(lease))
    )
