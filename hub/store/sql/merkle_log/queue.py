"""Queue a written row for the log, in the transaction that writes it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, insert

from ..tables.merkle_log import log_queue


def queue_line(connection: Connection, source: str, key: Sequence[object]) -> None:
    """Queue the row of the table ``source`` with this primary key."""
    connection.execute(insert(log_queue).values(source=source, row_key=key_text(key)))


def key_text(key: Sequence[object]) -> str:
    """Return a primary key as text, the columns separated by a slash."""
    return "/".join(map(str, key))
