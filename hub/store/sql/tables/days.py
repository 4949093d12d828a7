"""SQL expressions for the days (UTC) of ledger lines."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, cast, func

from ....records.usage import DAY
from .core import ledger


def rounded_down(dialect: str, value: ColumnElement[Any]) -> ColumnElement[int]:
    """Round a value that is not negative down; PostgreSQL's cast alone would round to nearest."""
    down = value if dialect == "sqlite" else func.floor(value)
    return cast(down, Integer)


def first_day(connection: Connection) -> ColumnElement[int]:
    """Return the number of the day on which a line begins, counted from the epoch."""
    return rounded_down(connection.dialect.name, ledger.c.starts_at / DAY)


def spans_midnight(connection: Connection) -> ColumnElement[bool]:
    return ledger.c.ends_at > (first_day(connection) + 1) * DAY
