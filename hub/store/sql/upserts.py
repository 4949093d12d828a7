"""Write rows that another writer may have inserted since they were looked for.

SQLite has one writer at a time. PostgreSQL has several: there an insertion may fail although its
transaction saw no such row. Functions run inside a transaction of the caller.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, Table, insert, update
from sqlalchemy.exc import IntegrityError


def insert_new(connection: Connection, table: Table, values: Mapping[str, object]) -> bool:
    """Insert a row; return False, and change nothing, where a constraint of the table refuses it.

    The caller knows which: a row with its key exists, or one that it refers to does not.
    """
    try:
        with connection.begin_nested():
            connection.execute(insert(table).values(values))
    except IntegrityError:
        return False
    return True


def put_row(connection: Connection, table: Table, values: Mapping[str, object], *key: str) -> None:
    """Change the row with this key, or insert it: what refers to the row stays as it is."""
    same = [table.c[name] == values[name] for name in key]
    others = {name: value for name, value in values.items() if name not in key}
    change = update(table).where(*same).values(others)
    if connection.execute(change).rowcount or insert_new(connection, table, values):
        return
    if not connection.execute(change).rowcount:
        connection.execute(insert(table).values(values))  # raises the error of its constraint
