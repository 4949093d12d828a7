"""Store regrade requests with their threads; functions run inside a transaction of the caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from sqlalchemy import ColumnElement, Connection, insert, select, update

from ...hub.store.sql.tables.courses import regrade_messages, regrade_requests
from ..model.records import RegradeMessage, RegradeRequest
from . import rows
from .not_found import no_regrade

_SUBJECT = ("course", "assignment", "person", "notebook", "cell")


def open_request(connection: Connection, asked: RegradeRequest) -> RegradeRequest:
    """Store a request, or return the open one about the same cell."""
    same = [regrade_requests.c[name] == getattr(asked, name) for name in _SUBJECT]
    for known in find(connection, *same, regrade_requests.c.closed_at.is_(None)):
        return known
    values = {name: getattr(asked, name) for name in _SUBJECT}
    values |= {"opened_at": asked.opened_at, "closed_by": ""}
    made = connection.scalar(
        insert(regrade_requests).values(values).returning(regrade_requests.c.id)
    )
    for message in asked.messages:
        _add_message(connection, int(made), message)
    return found(connection, int(made))


def update_request(
    connection: Connection, regrade_id: int, change: Callable[[RegradeRequest], RegradeRequest]
) -> RegradeRequest:
    """Change a request that no other transaction changes meanwhile."""
    this = regrade_requests.c.id == regrade_id
    connection.execute(select(regrade_requests.c.id).where(this).with_for_update())
    before = found(connection, regrade_id)
    after = change(before)
    for message in after.messages[len(before.messages) :]:
        _add_message(connection, regrade_id, message)
    end = {"closed_at": after.closed_at, "closed_by": after.closed_by}
    connection.execute(update(regrade_requests).where(this).values(end))
    return found(connection, regrade_id)


def found(connection: Connection, regrade_id: int) -> RegradeRequest:
    """Raises NotFound."""
    for each in find(connection, regrade_requests.c.id == regrade_id):
        return each
    raise no_regrade(regrade_id)


def find(connection: Connection, *which: ColumnElement[bool]) -> list[RegradeRequest]:
    """The requests that match, oldest first."""
    query = select(regrade_requests).where(*which).order_by(regrade_requests.c.id)
    requests = connection.execute(query).all()
    ids = select(regrade_requests.c.id).where(*which)
    messages = connection.execute(
        select(regrade_messages)
        .where(regrade_messages.c.regrade.in_(ids))
        .order_by(regrade_messages.c.id)
    ).all()
    return [
        rows.regrade(each, [message for message in messages if message.regrade == each.id])
        for each in requests
    ]


def _add_message(connection: Connection, regrade_id: int, message: RegradeMessage) -> None:
    values = {"regrade": regrade_id, **asdict(message)}
    connection.execute(insert(regrade_messages).values(values))
