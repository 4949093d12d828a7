"""Days (UTC) of the ledger's lines, as SQL says them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, cast, func

from ....records.usage import DAY
from .core import ledger


def rounded_down(dialect: str, value: ColumnElement[Any]) -> ColumnElement[int]:
    """What is given is never negative. PostgreSQL's cast alone would round."""
    down = value if dialect == "sqlite" else func.floor(value)
    return cast(down, Integer)


def first_day(connection: Connection) -> ColumnElement[int]:
    """The number of the day on which a line begins."""
    return rounded_down(connection.dialect.name, ledger.c.starts_at / DAY)


def spans_midnight(connection: Connection) -> ColumnElement[bool]:
    return ledger.c.ends_at > (first_day(connection) + 1) * DAY
