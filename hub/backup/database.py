"""Queries on a copy of Carrel's database, whatever the version of its tables.

``open_store`` would migrate the tables; a copy must not change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from ..errors import BackupFailed


def revision(database: Path) -> str:
    """Return the revision of the tables. Raises BackupFailed if it is not Carrel's database."""
    rows = _query(database, "SELECT version_num FROM alembic_version")
    return str(rows[0][0]) if rows else ""


def attempts(database: Path) -> Mapping[str, int]:
    """Return the number of the newest attempt by request, 0 if there was no attempt."""
    found = _query(database, "SELECT id, epoch FROM requests")
    return {str(name): int(str(epoch)) for name, epoch in found}


def _query(database: Path, query: str) -> list[tuple[object, ...]]:
    # No other process opens this copy; immutable avoids lock files beside it.
    uri = f"{database.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            return connection.execute(query).fetchall()
    except sqlite3.Error as error:
        raise BackupFailed(f"{database} is not a database of Carrel: {error}.") from error
