"""Transactions on one database, from any number of threads and processes.

SQLite lets one writer in at a time. A write therefore says so with its first word (``BEGIN
IMMEDIATE``): what it reads cannot change before it writes, and it never fails half way because
another transaction wrote first. Threads of one process queue at a lock, which is fair and quick;
other processes are waited for inside SQLite (``busy_timeout``), within a bound.

``synchronous`` is FULL: with less, WAL mode may lose the last commits when the power fails. A
lease is written before anything starts under it, and a lease that came back as "never granted"
would lend a device twice.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from threading import Lock, local
from typing import Any, TypeVar

from pydantic_core import from_json
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, TimeoutError
from sqlalchemy.pool import ConnectionPoolEntry

from ...errors import Unavailable

T = TypeVar("T")

PATIENCE = 10.0
"""Seconds for which a locked database is tried again before it is called unavailable."""
BUSY_TIMEOUT = 2.0
"""Seconds that SQLite itself waits for a lock, each time it is asked."""
_UNWRITABLE = (
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
)
_RETRY_PAUSE = 0.01
_CACHE_KIB = 16 << 10
"""Of each connection that reads so much; 5,000 requests with all that belongs to them are less."""
_CONNECTIONS = 16
"""At most; a thread that finds none free waits for the few milliseconds that another needs."""


class Transactions:
    """Runs functions, each in one transaction, on a connection of its own.

    Args:
        url: of the database.
        patience: see ``PATIENCE``.
        busy_timeout: see ``BUSY_TIMEOUT``.
    """

    def __init__(
        self, url: URL, *, patience: float = PATIENCE, busy_timeout: float = BUSY_TIMEOUT
    ) -> None:
        self._where = url.render_as_string(hide_password=True)
        self._patience = patience
        self._writer = Lock()
        self._engine = create_engine(
            url,
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_timeout=patience,
            pool_use_lifo=True,  # the one that was used last has the most in its cache
            json_deserializer=_from_json,
        )
        if self._engine.dialect.name == "sqlite":
            self._where = url.database or self._where
            _speak_sqlite(self._engine, busy_timeout)
        self._writing = self._engine.execution_options(carrel_writes=True)
        self._shared = _Shared()

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` on one consistent view of the database."""
        shared = self._shared.connection
        if shared is not None:
            return self._try(lambda: work(shared))
        return self._try(lambda: self._run(self._engine, work))

    def read_once(self, question: Hashable, work: Callable[[Connection], T]) -> T:
        """``read``, but within ``together`` the same question is asked only once."""
        if self._shared.connection is None:
            return self.read(work)
        known: dict[Hashable, T] = self._shared.known
        if question not in known:
            known[question] = self.read(work)
        return known[question]

    @contextmanager
    def together(self) -> Iterator[None]:
        """All that this thread reads within is read from one view, in one transaction."""
        if self._shared.connection is not None:
            yield
            return
        with self._try(self._engine.connect) as connection, connection.begin():
            self._shared.connection, self._shared.known = connection, {}
            try:
                yield
            finally:
                self._shared.connection = None

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` as the only writer; whatever it raises undoes all of it."""

        def alone() -> T:
            if not self._writer.acquire(timeout=self._patience):
                raise self._locked()
            try:
                return self._run(self._writing, work)
            finally:
                self._writer.release()

        return self._try(alone)

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
    """Several times quicker than the standard library, which reads what is no proper Unicode."""
    try:
        return from_json(text)
    except ValueError:
        return json.loads(text)


class _Shared(local):
    """The transaction that a thread reads in for a while, and what it has read in it."""

    connection: Connection | None = None
    known: dict[Hashable, Any]


def _speak_sqlite(engine: Engine, busy_timeout: float) -> None:
    """Take transactions out of the driver's hands, and set what each connection needs."""

    @event.listens_for(engine, "connect")
    def connected(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # The driver would begin transactions by its own rules, and too late for our reads.
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
    """The primary result code (https://www.sqlite.org/rescode.html), None elsewhere."""
    code: int | None = getattr(error.orig, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
