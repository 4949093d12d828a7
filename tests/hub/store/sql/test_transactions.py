"""SQLite beyond the contract: crashes, locks, and query plans with a long history."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from carrel.hub.errors import NotFound, Unavailable
from carrel.hub.records.identity import Program, ProgramCharge
from carrel.hub.records.requests import NewRequest, RequestFilter, RequestRecord
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Device, Group, Kind
from carrel.hub.scheduling.model.states import LIVE, TERMINAL, State
from carrel.hub.store import SqlStore, open_store
from carrel.hub.store.sql import queries
from carrel.hub.store.sql.transactions import Transactions
from carrel.hub.transitions import lifecycle

from ..processes import child

GPU = Device(id="D0", node="n", index=0, model="H100", memory_bytes=1)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "carrel.db"


@pytest.fixture
def store(database: Path) -> Iterator[SqlStore]:
    made = open_store(database, patience=0.2, busy_timeout=0.05)
    made.put_group(Group(name="lab", max_devices=1, max_devices_per_user=1))
    made.sync_devices("n", [GPU])
    yield made
    made.close()


def _job(number: int) -> NewRequest:
    return NewRequest(
        id=f"j-{number}",
        kind=Kind.JOB,
        owner="ada",
        group="lab",
        devices=1,
        seconds=60,
        idempotency_key=str(number),
    )


def test_reads_within_together_are_consistent(store: SqlStore) -> None:
    with ThreadPoolExecutor(1) as others:
        with store.together():
            before = store.waiting_for_devices()
            others.submit(store.submit, _job(1), 100.0).result()
            with store.together():
                assert store.waiting_for_devices() == before == 0
            assert store.requests(RequestFilter()) == ()
        assert store.waiting_for_devices() == 1


def test_reads_within_together_are_cached_until_its_end(store: SqlStore) -> None:
    asked: list[str] = []
    with ThreadPoolExecutor(1) as others:
        with store.together():
            before = store.groups(), store.devices(), store.marks(), store.taught_by("eve")
            sa.event.listen(
                sa.Engine, "before_cursor_execute", note := lambda *given: asked.append(given[2])
            )
            again = store.groups(), store.devices(), store.marks(), store.taught_by("eve")
            sa.event.remove(sa.Engine, "before_cursor_execute", note)
            assert (again, asked) == (before, [])
            others.submit(store.set_teachers, "lab", ["eve"]).result()
            assert store.taught_by("eve") == frozenset()
        assert store.taught_by("eve") == {"lab"}


def test_an_error_ends_the_shared_transaction(store: SqlStore) -> None:
    with pytest.raises(NotFound), store.together():
        store.request("j-1")
    store.submit(_job(1), 100.0)
    assert store.request("j-1").id == "j-1"


class TestCrashes:
    def test_case_1_a_lease_outlives_the_process_that_wrote_it(
        self, store: SqlStore, database: Path
    ) -> None:
        store.submit(_job(1), 100.0)
        process = child(
            """
            store = open_store(path)
            start = Start(request_id="j-1", devices=("D0",))
            (lease,) = store.grant([start], now=101.0, lease_seconds=30)
            print(lease.id, flush=True)
            input()
            """,
            path=str(database),
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "j-1.1\n"
        process.kill()
        process.communicate(timeout=90)
        assert store.lease("j-1.1").devices == ("D0",)
        again = open_store(database)
        assert again.leases() == store.leases()
        again.close()

    def test_case_12_a_killed_transaction_changes_nothing(
        self, store: SqlStore, database: Path
    ) -> None:
        store.submit(_job(1), 100.0)
        process = child(
            """
            from sqlalchemy import Engine, event
            store = open_store(path)
            @event.listens_for(Engine, "before_cursor_execute")
            def die(connection, cursor, statement, *more):
                if statement.startswith("INSERT INTO events"):
                    print("kept all but the events", flush=True)
                    input()
            store.grant([Start(request_id="j-1", devices=("D0",))], now=101.0, lease_seconds=30)
            """,
            path=str(database),
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "kept all but the events\n"
        process.kill()
        process.communicate(timeout=90)
        assert store.request("j-1").state is State.QUEUED
        start = Start(request_id="j-1", devices=("D0",))
        assert len(store.grant([start], now=102.0, lease_seconds=30)) == 1


class TestLocks:
    def test_case_22_a_locked_database_is_unavailable_after_a_while(
        self, store: SqlStore, database: Path
    ) -> None:
        with sqlite3.connect(database, isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match=r"carrel\.db is locked .*Nothing was changed"):
                store.submit(_job(1), 100.0)
            assert store.requests(RequestFilter()) == ()
            with pytest.raises(Unavailable):
                open_store(database, patience=0.1, busy_timeout=0.05)
            other.execute("ROLLBACK")
        other.close()
        assert store.submit(_job(1), 100.0).state is State.QUEUED

    def test_a_short_lock_is_waited_for(self, database: Path) -> None:
        patient = open_store(database, patience=30, busy_timeout=0.01)
        other = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        # Ends while the store retries: each try takes ten times the time-out of SQLite.
        release = threading.Timer(0.1, lambda: other.execute("ROLLBACK"))
        release.start()
        patient.put_group(Group(name="lab"))
        release.join()
        assert len(patient.groups()) == 1
        other.close()
        patient.close()

    def test_many_threads_write_and_read(self, database: Path) -> None:
        store = open_store(database)
        store.put_group(Group(name="lab"))

        def work(number: int) -> RequestRecord:
            made = store.submit(_job(number), float(number))
            assert store.request(made.id) == made
            return made

        with ThreadPoolExecutor(40) as threads:
            made = list(threads.map(work, range(200)))
        found = store.requests(RequestFilter(limit=1000))
        assert {request.id for request in found} == {request.id for request in made}
        store.close()


class TestConstraints:
    @pytest.mark.parametrize(
        "sql",
        [
            "INSERT INTO lease_devices VALUES ('j-2.1', 'D0', 0, NULL)",
            "INSERT INTO leases SELECT 'x', request_id, 2, node, state, 0, 0, 0, 0, NULL"
            " FROM leases WHERE id = 'j-1.1'",
            "UPDATE requests SET idempotency_key = '1' WHERE id = 'j-2'",
            "UPDATE requests SET state = 'failed' WHERE id = 'j-1'",
            "UPDATE leases SET state = 'released'",
            "INSERT INTO ledger SELECT NULL, 'j-1.1', 'j-1', 1, 'ada', 'lab', 1, 5, 5, 0, 'charge'",
            "INSERT INTO requests (number, id, kind, owner, group_name, devices, seconds,"
            " idempotency_key, priority, server_name, labels, state, epoch, submitted_at)"
            " SELECT 99, 's-9', kind, owner, group_name, devices, seconds, 'k9', priority,"
            " server_name, labels, state, 0, 0 FROM requests WHERE id = 's-1'",
            "INSERT INTO group_teachers VALUES ('nowhere', 'tom')",
        ],
        ids=[
            "a device in two leases",
            "two leases of one request",
            "one key for two requests",
            "an end without its time",
            "a release without its time",
            "a charge for nothing",
            "two live sessions of one server",
            "a group that is not there",
        ],
    )
    def test_the_database_refuses(self, store: SqlStore, database: Path, sql: str) -> None:
        for number in (1, 2):
            store.submit(_job(number), 100.0)
        store.sync_devices("n", [GPU, Device(id="D1", node="n", index=1, model="", memory_bytes=1)])
        starts = [Start(request_id=f"j-{n}", devices=(f"D{n - 1}",)) for n in (1, 2)]
        store.grant(starts, now=101.0, lease_seconds=30)
        session = NewRequest(
            id="s-1",
            kind=Kind.SESSION,
            owner="ada",
            group="lab",
            devices=1,
            seconds=60,
            idempotency_key="s",
        )
        store.submit(session, 100.0)
        engine = sa.create_engine(f"sqlite:///{database}")
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")
            with pytest.raises(IntegrityError):
                connection.exec_driver_sql(sql)
        engine.dispose()

    def test_a_lost_race_for_a_key_reads_the_winner(
        self, store: SqlStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With several writers, the first look-up may be too early."""
        first = store.submit(_job(1), 100.0)
        looks = []
        look = queries.request_by_key

        def too_early(connection: sa.Connection, owner: str, key: str) -> RequestRecord | None:
            looks.append(key)
            return None if len(looks) == 1 else look(connection, owner, key)

        monkeypatch.setattr(queries, "request_by_key", too_early)
        assert store.submit(_job(1), 101.0) == first
        assert len(store.events("j-1")) == 1


def test_frequent_statements_do_not_read_the_whole_history(store: SqlStore, database: Path) -> None:
    """Check SQLite's query plans, which do not depend on the speed of the machine."""
    said: list[tuple[str, object]] = []

    def note(_c: object, _cursor: object, sql: str, values: object, *_: object) -> None:
        said.append((sql, values))

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        store.submit(_job(1), 100.0)
        (lease,) = store.grant(
            [Start(request_id="j-1", devices=("D0",))], now=101.0, lease_seconds=30
        )
        store.launch(lease.id, now=102.0, token_hash="h")
        store.lease_of_token("h")
        store.add_program(_PROGRAM, "hash", most=1)
        charge = ProgramCharge(program=_PROGRAM, device_seconds=60.0, needs_approval=False)
        store.submit(_job(2), 103.0, charge=charge)
        store.program_jobs()
        store.program_usage(frozenset({"p-1"}), 104.0)
        store.programs_used(frozenset({"p-1"}), 104.0)
        store.renew({lease.id: 103.0}, until=133.0)
        store.charge([lease.id], now=104.0)
        store.snapshot(200)
        store.leases()
        store.events("j-1")
        store.usage(now=104.0, owner="ada")
        store.ledger(owner="ada")
        store.ledger(request_id="j-1")
        store.charged(["j-1"])
        store.live_session("ada", "")
        store.requests(RequestFilter(owner="ada"))
        for each in _FILTERS:
            store.requests(each)
            store.requests(replace(each, before="j-1"))
        store.apply_to_lease(lease.id, lifecycle.give_back, now=105.0, charge_until=105.0)
        plans = _plans(database, said)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    assert len(plans) > len(said) // 2
    assert [plan for plan in plans if _reads_everything(plan)] == []


def test_the_budget_of_a_program_takes_as_many_statements_for_one_job_as_for_several(
    store: SqlStore,
) -> None:
    store.add_program(_PROGRAM, "hash", most=1)
    charge = ProgramCharge(program=_PROGRAM, device_seconds=60.0, needs_approval=False)
    said: list[str] = []

    def note(_c: object, _cursor: object, sql: str, *_: object) -> None:
        said.append(sql)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        counts = []
        for number in range(1, 4):
            store.submit(_job(number), 103.0, charge=charge)
            said.clear()
            store.program_usage(frozenset({"p-1"}), 104.0)
            counts.append(len(said))
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    assert counts == [counts[0]] * 3


_PROGRAM = Program(
    id="p-1", name="tuner", owner="ada", device_seconds=1e3, created_at=1.0, expires_at=1e9
)
_FILTERS = (
    RequestFilter(states=LIVE),
    RequestFilter(states=frozenset({State.QUEUED})),
    RequestFilter(kind=Kind.SESSION, states=LIVE),
    RequestFilter(owner="ada", kind=Kind.SESSION, states=LIVE),
    RequestFilter(owner="ada", kind=Kind.SESSION, states=TERMINAL),
    RequestFilter(owner="ada", states=TERMINAL),
    RequestFilter(labels={"sweep": "7"}),
    RequestFilter(labels={"sweep": "7", "part": "a"}),
    RequestFilter(owner="ada", labels={"sweep": "7"}),
    RequestFilter(owner="ada", labels={"sweep": "7"}, states=LIVE),
    RequestFilter(reader="ben", reader_groups=frozenset({"lab"}), labels={"sweep": "7"}),
    RequestFilter(reader="ben", reader_groups=frozenset({"lab"}), states=LIVE),
)
"""Filters of pages and commands; ended requests of all users are read newest first."""


def _plans(database: Path, statements: list[tuple[str, object]]) -> list[str]:
    with sa.create_engine(f"sqlite:///{database}").connect() as connection:
        return [
            row.detail
            for sql, values in list(statements)
            if sql.startswith(("SELECT", "UPDATE"))
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)  # type: ignore[arg-type]
        ]


def _reads_everything(plan: str) -> bool:
    grows = (
        "requests",
        "leases",
        "lease_devices",
        "attempts",
        "ledger",
        "events",
        "request_labels",
        "program_jobs",
    )
    # These indexes contain only unfinished requests, however long the history is.
    alive = ("one_live_", "requests_not_ended", "requests_changed")
    return plan.startswith(tuple(f"SCAN {name}" for name in grows)) and not any(
        index in plan for index in alive
    )


def test_json_with_invalid_unicode_is_read_as_it_was_written(database: Path) -> None:
    """A cell may print one half of a surrogate pair."""
    written = {"text": "\ud83d", "value": float("inf"), "big": 1 << 70}
    query = sa.text("SELECT :written AS found").columns(found=sa.JSON)
    transactions = Transactions(sa.URL.create("sqlite", database=str(database)))
    found = transactions.read(lambda c: c.scalar(query, {"written": json.dumps(written)}))
    transactions.close()
    assert found == written
