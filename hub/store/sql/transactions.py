"""Run transactions on one database, from any number of threads and processes.

SQLite allows one writer at a time. A write therefore starts with ``BEGIN IMMEDIATE``: the rows that
it reads cannot change before it writes, and it never fails half way because another transaction
wrote first. Threads of one process wait for a lock, which is fair and fast; for other processes,
SQLite waits up to ``busy_timeout``.

``synchronous`` is FULL, because with less, WAL mode may lose the last commits when the power fails.
A lease is stored before any work starts under it: if the lease were lost, its devices would be
granted twice.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, local
from typing import Any, Final, TypeVar

from pydantic_core import from_json
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, TimeoutError
from sqlalchemy.pool import ConnectionPoolEntry

from ...errors import Unavailable

T = TypeVar("T")

PATIENCE = 10.0
"""Seconds for which a locked database is retried before ``Unavailable`` is raised."""
BUSY_TIMEOUT = 2.0
"""Seconds that SQLite waits for a lock in one statement."""
_UNWRITABLE = (
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
)
_RETRY_PAUSE = 0.01
_CACHE_KIB = 16 << 10
"""Largest page cache of a connection; 5,000 requests with all their rows need less."""
_CONNECTIONS = 16
"""Most connections in the pool; a thread waits for a free one, usually a few milliseconds."""


class Transactions:
    """Runs functions in transactions, each on a connection of its own.

    Args:
        url: of the database.
        patience: see ``PATIENCE``.
        busy_timeout: see ``BUSY_TIMEOUT``.
    """

    def __init__(
        self, url: URL, *, patience: float = PATIENCE, busy_timeout: float = BUSY_TIMEOUT
    ) -> None:
        self._where = url.render_as_string(hide_password=True)
        self.file: Final = (
            Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None
        )
        """The file of the database; None where it is on a server or in memory."""
        self._patience = patience
        self._writer = Lock()
        self._engine = create_engine(
            url,
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_timeout=patience,
            pool_use_lifo=True,  # the connection that was used last has the fullest cache
            json_deserializer=_from_json,
        )
        if self._engine.dialect.name == "sqlite":
            self._where = url.database or self._where
            _configure_sqlite(self._engine, busy_timeout)
        self._writing = self._engine.execution_options(carrel_writes=True)
        self._shared = _Shared()

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` on a consistent view of the database."""
        shared = self._shared.connection
        if shared is not None:
            return self._try(lambda: work(shared))
        return self._try(lambda: self._run(self._engine, work))

    def read_once(self, key: Hashable, work: Callable[[Connection], T]) -> T:
        """Run ``work`` as ``read`` does, but within ``together`` once per ``key``."""
        if self._shared.connection is None:
            return self.read(work)
        results: dict[Hashable, T] = self._shared.results
        if key not in results:
            results[key] = self.read(work)
        return results[key]

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make all reads of this thread in the block use one transaction and one view."""
        if self._shared.connection is not None:
            yield
            return
        with self._try(self._engine.connect) as connection, connection.begin():
            self._shared.connection, self._shared.results = connection, {}
            try:
                yield
            finally:
                self._shared.connection = None

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` as the only writer; an exception rolls the transaction back."""

        def run_exclusively() -> T:
            if not self._writer.acquire(timeout=self._patience):
                raise self._locked()
            try:
                return self._run(self._writing, work)
            finally:
                self._writer.release()

        return self._try(run_exclusively)

    def close(self) -> None:
        self._engine.dispose()

    @staticmethod
    def _run(engine: Engine, work: Callable[[Connection], T]) -> T:
        with engine.begin() as connection:
            return work(connection)

    def _try(self, attempt: Callable[[], T]) -> T:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return attempt()
            except TimeoutError as error:  # no connection became free in time
                raise self._locked() from error
            except DBAPIError as error:
                if _sqlite_code(error) == sqlite3.SQLITE_FULL:
                    raise Unavailable(
                        f"The disk that holds the database {self._where} is full.",
                        accepted="Nothing was changed. Free some space and try again.",
                    ) from error
                if _sqlite_code(error) in _UNWRITABLE:
                    raise Unavailable(
                        f"The database {self._where} cannot be written: its file or file system "
                        "is read-only or damaged.",
                        accepted="Nothing was changed. Ask an administrator to make it writable.",
                    ) from error
                if _sqlite_code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise
                if time.monotonic() >= deadline:
                    raise self._locked() from error
            time.sleep(_RETRY_PAUSE)

    def _locked(self) -> Unavailable:
        return Unavailable(
            f"The database {self._where} is locked by another process"
            f" (waited {self._patience:g} seconds).",
            accepted="Nothing was changed. Try again in a moment.",
        )


def _from_json(text: str) -> object:
    """Parse JSON several times faster than the standard library.

    The standard library is the fallback, because it accepts text that is not valid Unicode.
    """
    try:
        return from_json(text)
    except ValueError:
        return json.loads(text)


class _Shared(local):
    """The transaction of a thread within ``together``, and the results of ``read_once``."""

    connection: Connection | None = None
    results: dict[Hashable, Any]


def _configure_sqlite(engine: Engine, busy_timeout: float) -> None:
    """Control transactions instead of the driver, and set the pragmas of every connection."""

    @event.listens_for(engine, "connect")
    def connected(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # By default, the driver begins a transaction before the first write, after our reads.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {int(busy_timeout * 1000)}")
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get("carrel_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _sqlite_code(error: DBAPIError) -> int | None:
    """Return the primary result code (https://www.sqlite.org/rescode.html).

    None in other databases.
    """
    code: int | None = getattr(error.orig, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
