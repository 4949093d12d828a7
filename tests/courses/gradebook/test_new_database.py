"""A new gradebook database is the one that nbgrader would create."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from carrel.courses.gradebook.new_database import create_database


def contents(path: Path) -> tuple[set[str], list[object]]:
    """Return the definitions of all tables, and the version."""
    with closing(sqlite3.connect(path)) as database:
        found = database.execute("select sql from sqlite_master where sql is not null")
        tables = {" ".join(sql.lower().split()) for (sql,) in found}
        return tables, database.execute("select version_num from alembic_version").fetchall()


def test_tables_and_version_are_nbgraders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # nbgrader calls alembic by name.
    folder = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    Gradebook(f"sqlite:///{tmp_path / 'theirs.db'}").close()
    for _ in range(2):  # a second call changes nothing
        create_database(f"sqlite:///{tmp_path / 'ours.db'}")
    assert contents(tmp_path / "ours.db") == contents(tmp_path / "theirs.db")
