"""What a backup has to know of Carrel's database, read off a copy of whatever version.

``open_store`` would bring its tables up to date; a copy is kept, and read, as it is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from ..errors import BackupFailed


def revision(database: Path) -> str:
    """Of the tables. Raises BackupFailed where it is no database of Carrel's."""
    rows = _ask(database, "SELECT version_num FROM alembic_version")
    return str(rows[0][0]) if rows else ""


def attempts(database: Path) -> Mapping[str, int]:
    """The number of the newest attempt of every request, 0 where none was made."""
    found = _ask(database, "SELECT id, epoch FROM requests")
    return {str(name): int(str(epoch)) for name, epoch in found}


def _ask(database: Path, query: str) -> list[tuple[object, ...]]:
    # No other process has this copy: without a lock nothing is written beside it.
    uri = f"{database.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            return connection.execute(query).fetchall()
    except sqlite3.Error as error:
        raise BackupFailed(f"{database} is no database of Carrel's: {error}.") from error
