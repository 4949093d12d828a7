"""A store with thousands of requests that have run: a few through its own moves, then copies.

A request that has run has about twenty rows. Some are made as the service makes them; their rows
are then copied under other names and at later times, which takes seconds where the moves would
take minutes.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.engine import URL

from carrel.hub.interfaces.store import Store
from carrel.hub.records.events import NewEvent
from carrel.hub.records.requests import JobSpec, NewRequest
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Kind
from carrel.hub.scheduling.model.states import State
from carrel.hub.store import SqlStore
from carrel.hub.store.sql.transactions import Transactions
from carrel.hub.transitions import lifecycle

from ..contracts.store_kit import DONE, PROCESS

SPAN_SECONDS = 30 * 86400.0
_FIRST = 60
_COPIED = {
    "requests": "id",
    "request_labels": "number",
    "leases": "request_id",
    "lease_devices": "lease_id",
    "attempts": "lease_id",
    "events": "request_id",
    "ledger": "request_id",
}
"""Tables in the order of their references, with the column that names the request."""
_NAMES = frozenset({"request_id", "lease_id", "idempotency_key"})
_TIMES = frozenset({"at", "charged_until"})

T = TypeVar("T")


def fill(state: Path, owners: Sequence[str], devices: Sequence[str], *, ended: int) -> None:
    """At least so many requests of the last 30 days, all of which have succeeded."""
    first = min(_FIRST, ended)
    copies = -(-ended // first) - 1
    step = SPAN_SECONDS / (copies + 1)
    begin = time.time() - SPAN_SECONDS

    def has_run(store: Store, number: int) -> None:
        at = begin + number * step / first
        store.submit(made(number, owners), at)
        _run(store, f"j-bench{number}", devices[number % len(devices)], at)

    each(state, range(first), has_run)
    with closing(sqlite3.connect(state / "carrel.db", timeout=30)) as database, database:
        for copy in range(1, copies + 1):
            for table, key in _COPIED.items():
                _copy(database, table, key, copy=copy, of=first, shift=copy * step)


def queue(state: Path, owners: Sequence[str], numbers: range) -> None:
    """Requests that wait from now on."""
    each(state, numbers, lambda store, number: _submitted(store, made(number, owners)))


def made(number: int, owners: Sequence[str]) -> NewRequest:
    return NewRequest(
        id=f"j-bench{number}",
        kind=Kind.JOB,
        owner=owners[number % len(owners)],
        group="cs101",
        devices=1,
        seconds=3600,
        idempotency_key=f"bench{number}",
        job=JobSpec(notebook_name="train.ipynb", parameters={"rate": number / 1000}),
        labels={"sweep": str(number // 10)},
    )


class Batch(Transactions):
    """One connection's transaction, for many of the store's functions at once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(self, work: Callable[[Connection], T]) -> T:
        return work(self._connection)

    def write(self, work: Callable[[Connection], T]) -> T:
        return work(self._connection)

    def close(self) -> None:
        """The connection belongs to whoever began the transaction."""


def each(state: Path, numbers: range, work: Callable[[Store, int], object]) -> None:
    """Do something for each number, in one transaction."""
    url = URL.create("sqlite", database=str(state / "carrel.db"))
    with closing(Transactions(url)) as transactions:

        def all_of_them(connection: Connection) -> None:
            for number in numbers:
                work(SqlStore(Batch(connection)), number)

        transactions.write(all_of_them)


def _submitted(store: Store, new: NewRequest) -> None:
    store.submit(new, time.time())


def _run(store: Store, request_id: str, device: str, at: float) -> None:
    start = Start(request_id=request_id, devices=(device,))
    (lease,) = store.grant([start], now=at + 60, lease_seconds=30)
    store.launch(lease.id, now=at + 61)
    store.apply_to_lease(lease.id, lifecycle.start, PROCESS, now=at + 62)
    cells = [
        NewEvent(seq=n, at=at + 62 + n, kind="cell", data={"index": n - 1, "state": "ok"})
        for n in range(1, 4)
    ]
    store.add_events(lease.id, cells)
    store.apply(request_id, lifecycle.stop, State.SUCCEEDED, DONE, now=at + 100)
    store.apply_to_lease(lease.id, lifecycle.finish, now=at + 101, charge_until=at + 100)


def _copy(
    database: sqlite3.Connection, table: str, key: str, *, copy: int, of: int, shift: float
) -> None:
    """The rows of the first requests once more, for the requests numbered from ``copy * of``."""
    new = {"tag": f"copy{copy}-", "numbers": 10_000 + copy * of, "shift": shift}
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    if table in ("events", "ledger"):
        columns.remove("id")  # It counts by itself.
    values = ", ".join(_value(column) for column in columns)
    named = "id LIKE 'j-bench%'" if key == "id" else f"{key} LIKE 'j-bench%'"
    if key == "number":
        named = "number IN (SELECT number FROM requests WHERE id LIKE 'j-bench%')"
    # Names of our own tables and columns, never anything that came from outside.
    database.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} WHERE {named}",  # noqa: S608  # see above
        new,
    )


def _value(column: str) -> str:
    if column == "number":
        return "number + :numbers"
    if column == "id" or column in _NAMES:
        return f"replace({column}, 'bench', :tag)"
    if column.endswith("_at") or column in _TIMES:
        return f"{column} + :shift"
    return column
