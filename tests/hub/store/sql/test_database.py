"""Opening a database: new, existing, by several processes at once, and refused places."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from carrel.courses.grading_runs.check_service import CHECKER
from carrel.courses.grading_runs.service import GRADER
from carrel.hub.errors import Refused
from carrel.hub.records.requests import RequestFilter
from carrel.hub.scheduling.model.snapshot import Group, PriorityClass
from carrel.hub.schemas import LATEST
from carrel.hub.store import open_store
from carrel.hub.store.sql.database import migrations, refuse_network_file_system
from carrel.hub.store.sql.tables.core import metadata
from carrel.hub.store.sql.transactions import Transactions

from ..processes import child

ALL = RequestFilter()
LAB = Group(name="lab", max_devices=1, max_devices_per_user=1)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "carrel.db"


@pytest.fixture
def empty() -> Iterator[sa.Connection]:
    engine = sa.create_engine("sqlite://")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@pytest.fixture
def migrated(database: Path) -> Iterator[sa.Connection]:
    open_store(database).close()
    engine = sa.create_engine(f"sqlite:///{database}")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


class TestTables:
    def test_migrations_produce_the_tables(self, migrated: sa.Connection) -> None:
        context = MigrationContext.configure(migrated, opts={"compare_server_default": True})
        assert compare_metadata(context, metadata) == []

    def test_migrations_produce_the_same_checks_and_conditions(
        self, migrated: sa.Connection, empty: sa.Connection
    ) -> None:
        metadata.create_all(empty)
        assert _definitions(migrated) == _definitions(empty)

    def test_migrations_have_one_head(self, empty: sa.Connection) -> None:
        scripts = ScriptDirectory.from_config(migrations(empty))
        assert (len(scripts.get_bases()), len(scripts.get_heads())) == (1, 1)

    def test_migrations_compile_for_postgresql(self) -> None:
        dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
        said = []
        for table in metadata.sorted_tables:
            said.append(str(CreateTable(table).compile(dialect=dialect)))
            said += [str(CreateIndex(index).compile(dialect=dialect)) for index in table.indexes]
        one_lease = "ON lease_devices (device_id) WHERE released_at IS NULL"
        assert [one_lease in sql for sql in said].count(True) == 1
        assert "number BIGSERIAL NOT NULL" in "".join(said)


def _definitions(connection: sa.Connection) -> dict[str, frozenset[str]]:
    """Every table and index, part by part, as SQLite was told to make it.

    A column that was added later stands on the last line of its table, and a table that was
    created again has its name in quotes.
    """
    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
    return {
        name: frozenset(part.strip(" \t,") for part in re.split(r"\n|, ", sql.replace('"', "")))
        for name, sql in connection.exec_driver_sql(query)
        if name != "alembic_version"
    }


class TestOpening:
    def test_data_survives_reopening(self, database: Path) -> None:
        first = open_store(database)
        first.put_group(LAB)
        first.close()
        again = open_store(f"sqlite:///{database}")
        assert again.groups() == (LAB,)
        again.close()

    def test_the_database_file_is_private(self, database: Path) -> None:
        store = open_store(database)
        store.put_group(LAB)
        modes = {stat.S_IMODE(path.stat().st_mode) for path in database.parent.glob("carrel.db*")}
        assert modes == {0o600}
        store.close()

    def test_commits_are_synchronous(self, database: Path) -> None:
        transactions = Transactions(sa.make_url(f"sqlite:///{database}"))
        pragmas = ("journal_mode", "synchronous", "foreign_keys")
        answers = transactions.read(
            lambda c: [c.exec_driver_sql(f"PRAGMA {name}").scalar() for name in pragmas]
        )
        full = 2
        assert answers == ["wal", full, 1]
        transactions.close()

    def test_several_processes_open_a_new_database_at_once(self, database: Path) -> None:
        work = """
            print("ready", flush=True)
            input()
            store = open_store(path)
            store.put_group(Group(name=name))
            store.close()
        """
        names = ["a", "b", "c"]
        children = [child(work, path=str(database), name=name) for name in names]
        for process in children:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in children:
            process.communicate("go\n", timeout=120)
        assert [process.returncode for process in children] == [0, 0, 0]
        store = open_store(database)
        assert [group.name for group in store.groups()] == names
        store.close()


class TestSteps:
    def test_labels_stored_before_the_label_table_are_found(self, database: Path) -> None:
        """r0002: r0001 stored labels only inside the request."""
        _at_revision(database, "r0001")
        old = {"j-1": {"sweep": "7", "part": "a"}, "j-2": {}, "j-3": {"sweep": "7"}}
        for number, (name, labels) in enumerate(old.items(), 1):
            _request(database, number, name, labels=labels)
        store = open_store(database)
        found = {
            label: [r.id for r in store.requests(RequestFilter(labels=dict([label.split("=")])))]
            for label in ("sweep=7", "part=a", "part=b")
        }
        assert found == {"sweep=7": ["j-3", "j-1"], "part=a": ["j-1"], "part=b": []}
        assert {r.id: dict(r.labels) for r in store.requests(RequestFilter())} == old
        store.close()

    def test_queued_jobs_become_preemptible_and_sessions_do_not(self, database: Path) -> None:
        """r0008: this choice did not exist before."""
        _at_revision(database, "r0006")
        _request(database, 1, "job")
        _request(database, 2, "session", kind="session")
        store = open_store(database)
        waiting = store.snapshot(200).pending
        assert {each.id: each.preemptible for each in waiting} == {"job": True, "session": False}
        assert store.group("lab") == Group(
            name="lab", max_devices=1, max_devices_per_user=1, max_seconds=3600
        )
        store.close()

    def test_queued_sessions_become_interactive(self, database: Path) -> None:
        """r0009: they had the priority class of jobs before."""
        _at_revision(database, "r0008")
        _request(database, 1, "job")
        _request(database, 2, "session", kind="session")
        store = open_store(database)
        found = {each.id: each.priority for each in store.snapshot(200).pending}
        assert found == {"job": PriorityClass.NORMAL, "session": PriorityClass.INTERACTIVE}
        store.close()

    def test_queued_grading_requests_run_the_current_modules(self, database: Path) -> None:
        """r0017: the modules that grade and check have moved; commands of users stay."""
        _at_revision(database, "r0016")
        grader = ("python", "-P", "-m", "carrel.hub.grader")
        checker = ("python", "-P", "-m", "carrel.hub.checker")
        _request(database, 1, "grading", kind="grading", command=grader)
        _request(database, 2, "check", kind="grading", command=checker)
        _request(database, 3, "job", command=grader)
        _request(database, 4, "session", kind="session")
        store = open_store(database)
        found = {each.id: each.job.command if each.job else None for each in store.requests(ALL)}
        assert found == {
            "grading": GRADER,
            "check": CHECKER,
            "job": grader,
            "session": None,
        }
        store.close()

    def test_reservations_keep_their_weekday(self, database: Path) -> None:
        """r0028: a reservation can have several."""
        _at_revision(database, "r0021")
        for name, weekday in (("monday", 0), ("once", None)):
            _execute(
                database,
                "INSERT INTO reservations VALUES (?, 'lab', 1, ?, '10:00:00', '12:00:00', 'UTC',"
                " '2026-11-02', '2026-11-02', '')",
                (name, weekday),
            )
        store = open_store(database)
        assert {each.id: each.weekdays for each in store.reservations()} == {
            "monday": (0,),
            "once": (),
        }
        store.close()

    def test_times_beyond_the_upper_bound_are_brought_down_to_it(self, database: Path) -> None:
        """r0019: a deadline of 1e300 broke the pages that show it."""
        _at_revision(database, "r0018")
        for number, (name, at) in enumerate((("late", 1e300), ("early", -5.0), ("right", 500.0))):
            _request(database, number + 1, name)
            _execute(database, "UPDATE requests SET deadline = ? WHERE id = ?", (at, name))
        store = open_store(database)
        found = {each.id: each.deadline for each in store.requests(ALL)}
        assert found == {"late": LATEST, "early": 0.0, "right": 500.0}
        store.close()


def _request(
    database: Path,
    number: int,
    name: str,
    *,
    kind: str = "job",
    labels: Mapping[str, str] | None = None,
    command: Sequence[str] | None = None,
) -> None:
    """Insert a queued request with the columns of the first tables."""
    job = {"notebook_name": "", "parameters": {}, "command": list(command or ()), "retries": 1}
    _execute(
        database,
        "INSERT INTO requests (number, id, kind, owner, group_name, devices, seconds,"
        " idempotency_key, priority, server_name, job, labels, state, epoch, submitted_at)"
        " VALUES (?, ?, ?, 'ada', 'lab', 1, 60, ?, 'normal', '', ?, ?, 'queued', 0, 100)",
        (
            *(number, name, kind, name),
            None if command is None else json.dumps(job),
            json.dumps(labels or {}),
        ),
    )


def _at_revision(database: Path, revision: str) -> None:
    """Create a database at an older revision, with a group."""
    transactions = Transactions(sa.make_url(f"sqlite:///{database}"))
    transactions.write(lambda c: command.upgrade(migrations(c), revision))
    transactions.close()
    _execute(
        database,
        "INSERT INTO groups (name, max_devices, max_devices_per_user, max_seconds)"
        " VALUES ('lab', 1, 1, 3600)",
    )


class TestRefusals:
    def test_a_newer_database_is_left_alone(self, database: Path) -> None:
        store = open_store(database)
        store.put_group(LAB)
        store.close()
        _execute(database, "UPDATE alembic_version SET version_num = 'r9999'")
        before = database.read_bytes()
        with pytest.raises(Refused, match=r"newer Carrel \(schema r9999\).*Install the newer"):
            open_store(database)
        assert database.read_bytes() == before

    def test_a_database_of_another_program_is_left_alone(self, database: Path) -> None:
        _execute(database, "CREATE TABLE recipes (name TEXT)")
        with pytest.raises(Refused, match="tables that Carrel did not create: recipes"):
            open_store(database)

    def test_a_file_that_is_not_a_database(self, database: Path) -> None:
        database.write_bytes(b"Dear diary, " * 1000)
        with pytest.raises(Refused, match="is not a database"):
            open_store(database)

    def test_a_missing_folder(self, tmp_path: Path) -> None:
        with pytest.raises(Refused, match=r"No such file or directory.*in a folder that exists"):
            open_store(tmp_path / "nowhere" / "carrel.db")

    @pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs"])
    def test_case_22_on_a_network_file_system(self, tmp_path: Path, kind: str) -> None:
        mounts = _mounts((f"{tmp_path}", kind))
        with pytest.raises(Refused, match=rf"network file system \({kind}, .*local disk"):
            open_store(tmp_path / "carrel.db", mountinfo=mounts)
        assert not (tmp_path / "carrel.db").exists()

    @pytest.mark.parametrize(
        ("mounts", "refused"),
        [
            ([("/", "ext4")], False),
            ([("/", "nfs4")], True),
            ([("/", "nfs4"), ("/srv", "xfs")], False),
            ([("/srv", "xfs"), ("/", "nfs4")], False),
            ([("/", "ext4"), ("/srv/my data", "cifs")], True),
            ([("/", "ext4"), ("/srv/my", "nfs")], False),
            ([("/srv/my data", "nfs"), ("/srv/my data", "ext4")], False),
            ([("/srv/my data", "ext4"), ("/srv/my data", "nfs")], True),
            ([("/srv/my data/carrel.db/below", "nfs")], False),
            ([], False),
        ],
    )
    def test_the_innermost_mount_counts(self, mounts: list[tuple[str, str]], refused: bool) -> None:
        path = Path("/srv/my data/carrel.db")
        if not refused:
            refuse_network_file_system(path, _mounts(*mounts))
            return
        with pytest.raises(Refused):
            refuse_network_file_system(path, _mounts(*mounts))


def _mounts(*mounts: tuple[str, str]) -> str:
    """Return lines of ``/proc/self/mountinfo`` with these mount points and types."""
    return "".join(
        f"36 35 98:0 / {_escaped(point)} rw,noatime shared:1 - {kind} host:/export rw\n"
        for point, kind in mounts
    )


def _escaped(point: str) -> str:
    return point.replace(" ", "\\040")


def _execute(database: Path, sql: str, values: tuple[object, ...] = ()) -> None:
    engine = sa.create_engine(f"sqlite:///{database}")
    with engine.begin() as connection:
        connection.exec_driver_sql(sql, values)
    engine.dispose()
