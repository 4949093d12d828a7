"""Read which jobs have ended, in the order of their ends, from the events of the store."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, func, select

from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import TERMINAL
from ..store.sql.tables.core import events, requests
from ..store.sql.tables.notifications import notification_positions
from ..store.sql.transactions import Transactions
from ..store.sql.upserts import insert_new, put_row

_SOURCE: Final = "receipts"


class EndedJobs:
    """Ends of jobs by the number of their event; every method is one transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._read = transactions.read
        self._write = transactions.write

    def position(self) -> int:
        """Return the number of the last event that was read; at first, that of the newest event."""

        def work(connection: Connection) -> int:
            same = notification_positions.c.source == _SOURCE
            found = connection.scalar(select(notification_positions.c.position).where(same))
            if found is None:
                found = _newest(connection)
                values = {"source": _SOURCE, "position": found}
                insert_new(connection, notification_positions, values)
            return int(found)

        return self._write(work)

    def advance(self, position: int) -> None:
        """Store that all events up to this one were read."""
        values = {"source": _SOURCE, "position": position}
        self._write(lambda c: put_row(c, notification_positions, values, "source"))

    def after(self, position: int, *, limit: int) -> tuple[tuple[str, ...], int]:
        """Return the ids of jobs that have ended after this event, and the new position.

        A job that has never started is not among them.
        """
        query = (
            select(events.c.id, events.c.request_id)
            .join(requests, requests.c.id == events.c.request_id)
            .where(events.c.id > position, events.c.kind == "state", events.c.epoch >= 1)
            .where(events.c.data["state"].as_string().in_(sorted(map(str, TERMINAL))))
            .where(requests.c.kind == Kind.JOB)
            .order_by(events.c.id)
            .limit(limit)
        )

        def work(connection: Connection) -> tuple[tuple[str, ...], int]:
            newest = _newest(connection)
            found = connection.execute(query).all()
            until = found[-1].id if len(found) == limit else max(newest, position)
            return tuple(dict.fromkeys(row.request_id for row in found)), until

        return self._read(work)


def _newest(connection: Connection) -> int:
    return int(connection.scalar(select(func.max(events.c.id))) or 0)
