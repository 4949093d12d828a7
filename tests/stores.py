"""Make empty stores that are cheap: copies of one migrated SQLite file.

Each copy is a real file with the real locks, so that threads meet in it as they do in the service.
Left out is what would be repeated for each test: the migrations, the compilation of the SQL
statements, and the wait for the disk.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from functools import cache
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Dialect, Engine, event
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from carrel.courses.files.blobs import FolderBlobs
from carrel.courses.gradebook.open_writers import OpenCourseBook
from carrel.courses.gradebook.writer import GradebookWriter
from carrel.courses.services import CourseServices
from carrel.courses.store import SqlCourseStore
from carrel.hub.accounts.store import Accounts
from carrel.hub.interfaces.store import Store
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.quota.accounting import HALF_LIFE
from carrel.hub.store import SqlStore, open_store
from carrel.hub.store.sql.transactions import Transactions


def new_store(*, half_life: float = HALF_LIFE) -> SqlStore:
    """Return an empty store whose file is deleted together with it."""
    return SqlStore(TemporaryTransactions(), half_life=half_life)


def new_course_store(store: Store) -> SqlCourseStore:
    """Return the course store in the database of a store that ``new_store`` made."""
    return SqlCourseStore(cast(SqlStore, store).transactions)


def new_courses(
    context: Context, accounts: Accounts | None = None, *, root: Path | None = None
) -> CourseServices:
    """Return the services of courses over the store of ``context``.

    ``root`` is the folder of all courses, with their gradebooks.
    """
    return CourseServices.build(
        context,
        new_course_store(context.store),
        TemporaryBlobs(),
        accounts=accounts,
        root=root,
        gradebooks=None if root is None else gradebooks_in(root),
        prefixes=None if root is None else root.with_name("prefixes"),
    )


def gradebooks_in(root: Path) -> OpenCourseBook:
    """Open gradebooks in this process."""

    def open_book(*, course: str) -> GradebookWriter:
        from carrel.courses.gradebook.gradebook import CourseGradebook  # noqa: PLC0415 - slow

        return CourseGradebook(root / course, course)

    return open_book


class TemporaryTransactions(Transactions):
    """Transactions on a new copy of the template, deleted together with this object."""

    def __init__(self) -> None:
        template, dialect = _template()
        folder = _temporary_folder()
        path = folder / "carrel.db"
        path.write_bytes(template)
        super().__init__(URL.create("sqlite", database=str(path)))
        event.listen(self._engine, "connect", _without_sync)
        weakref.finalize(self, _delete, self._engine, folder)
        self._engine, self._writing = (
            _sharing_statements(engine, dialect) for engine in (self._engine, self._writing)
        )


class TemporaryBlobs(FolderBlobs):
    """Blobs in one folder, not in 256 that each test would have to make; deleted with this object.

    ``tests/contracts/test_blobs.py`` tests the real layout.
    """

    def __init__(self) -> None:
        self._folder = _temporary_folder()
        super().__init__(self._folder)
        self._laid_out = True
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def _path(self, digest: str) -> Path:
        return self._folder / digest

    def digests(self) -> set[str]:
        """Return the SHA-256 of everything that is stored."""
        return {path.name for path in self._folder.iterdir()}


@cache
def _template() -> tuple[bytes, Dialect]:
    """Return a database with all tables and no rows, and the dialect that was set up for it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        store = open_store(path)
        dialect = store.transactions.read(lambda connection: connection.dialect)
        store.close()
        return path.read_bytes(), dialect


_STATEMENTS: dict[Any, Any] = {}
"""Compiled statements by statement and dialect, for all stores of this process."""


def _sharing_statements(engine: Engine, dialect: Dialect) -> Engine:
    shared = engine.execution_options(compiled_cache=_STATEMENTS)
    shared.dialect = dialect
    return shared


def _temporary_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="carrel-store-"))


def _without_sync(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous = OFF")
    cursor.close()


def _delete(engine: Engine, folder: Path) -> None:
    engine.dispose()
    shutil.rmtree(folder, ignore_errors=True)
