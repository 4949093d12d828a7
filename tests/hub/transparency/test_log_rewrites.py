"""Rewrites of the log by an editor of the database who does not have the key of the site."""

# ruff: noqa: S608  # the SQL of these tests is made of names that they list

from __future__ import annotations

import json
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection

from carrel.courses.store import SqlCourseStore
from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import Unavailable
from carrel.hub.records.diagnostics import Severity
from carrel.hub.records.identity import Identity
from carrel.hub.store import SqlStore, open_store
from carrel.hub.store.sql.merkle_log.growth import HeadSignature, enter_lines, make_head
from carrel.hub.supervisor import log_heads
from carrel.hub.transparency.service import TransparencyLog

from .log_kit import NOW, fill, findings, folder, found_after, log_of


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a database with 12 lines and a head."""
    path = tmp_path_factory.mktemp("template")
    with closing(open_store(path / "carrel.db")) as store:
        fill(store)
        log = log_of(store)
        assert (log.enter_lines(), log.make_head(), findings(log)) == (12, True, [])
    return path


@pytest.fixture
def store(template: Path, tmp_path: Path) -> Iterator[SqlStore]:
    """Return a store with 12 lines and a head."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    with closing(open_store(tmp_path / "carrel.db")) as opened:
        yield opened


def execute(store: SqlStore, *changes: str) -> None:
    def work(connection: Connection) -> None:
        for change in changes:
            connection.exec_driver_sql(change)

    store.transactions.write(work)


def problems(log: TransparencyLog) -> str:
    return "\n".join(each.problem for each in findings(log))


def rewrite(store: SqlStore, *, changes: tuple[str, ...] = ()) -> None:
    """Compute leaves, nodes and anchors anew from changed rows, and remove the signed heads."""

    def work(connection: Connection) -> None:
        for change in changes:
            connection.exec_driver_sql(change)
        connection.exec_driver_sql(
            "INSERT INTO log_queue (source, row_key, queued_at)"
            " SELECT source, row_key, 0 FROM log_leaves ORDER BY log, position"
        )
        for table in ("log_leaves", "log_nodes", "logs", "log_anchors", "log_heads"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
        enter_lines(connection, now=NOW, limit=100)
        nothing = HeadSignature(key="", signature="")
        make_head(connection, site="", now=NOW, sign=lambda _: nothing)
        connection.exec_driver_sql("DELETE FROM log_heads")

    store.transactions.write(work)


class TestRewrittenLog:
    def test_a_log_without_a_signed_head_of_its_size_is_found(self, store: SqlStore) -> None:
        assert "no signed head of that size" in "\n".join(
            each.problem for each in found_after(store, "DELETE FROM log_heads")
        )

    def test_a_rewritten_log_is_found_and_never_signed(self, store: SqlStore) -> None:
        rewrite(store, changes=("UPDATE submissions SET at = at - 3600 WHERE id = 1",))
        log = log_of(store)
        found = problems(log)
        assert "no signed head of that size" in found
        assert "The recorded head of size 1 differs from the main log" in found
        courses = SqlCourseStore(store.transactions)
        courses.put_feedback(replace(courses.feedback("lab")[1], files=folder("g")))
        log.enter_lines()
        with pytest.raises(Unavailable, match="does not extend the head of size 1"):
            log.make_head()
        assert log.store.state().head is None

    def test_the_recorded_head_is_private_and_follows_the_log(
        self, store: SqlStore, tmp_path: Path
    ) -> None:
        path = tmp_path / "log-head.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert json.loads(path.read_text())["size"] == 1
        courses = SqlCourseStore(store.transactions)
        courses.put_feedback(replace(courses.feedback("lab")[1], files=folder("g")))
        log = log_of(store)
        assert (log.enter_lines(), log.make_head()) == (1, True)
        assert json.loads(path.read_text())["size"] == 2
        assert findings(log) == []

    def test_after_a_restore_of_an_older_database_the_recorded_head_is_removed_by_hand(
        self, store: SqlStore, tmp_path: Path
    ) -> None:
        path = tmp_path / "log-head.json"
        path.write_text(json.dumps({"size": 7, "root": "00" * 32}))
        log = log_of(store)
        assert "A recorded head has size 7, but the main log has 1" in problems(log)
        courses = SqlCourseStore(store.transactions)
        courses.put_feedback(replace(courses.feedback("lab")[1], files=folder("g")))
        log.enter_lines()
        with pytest.raises(Unavailable, match="does not extend"):
            log.make_head()
        path.unlink()
        assert "log-head.json, which records the head" in problems(log)
        assert log.make_head()
        assert findings(log) == []

    @pytest.mark.parametrize("text", ["", "[]", '{"size": 1}', '{"size": 1, "root": "00"}'])
    def test_a_recorded_head_that_cannot_be_read_is_found(
        self, store: SqlStore, tmp_path: Path, text: str
    ) -> None:
        (tmp_path / "log-head.json").write_text(text)
        assert "cannot be read" in problems(log_of(store))


def test_a_log_that_is_noted_as_anchored_and_is_not_is_found(store: SqlStore) -> None:
    found = found_after(store, "UPDATE logs SET anchored = 1000000000")
    assert "The log lab is noted as anchored to 1000000000 lines; its last anchor is of 12." in {
        each.problem for each in found
    }


def test_a_row_that_was_removed_before_it_entered_stays_a_finding(store: SqlStore) -> None:
    execute(
        store,
        "INSERT INTO log_queue (source, row_key, queued_at) VALUES ('submissions', '77', 0)",
    )
    log = log_of(store)
    assert "The row 77 of the table submissions was removed" in problems(log)
    assert log.enter_lines() == 1
    assert log.make_head()
    assert [(each.log, each.row) for each in findings(log)] == [("-", "77")]


class TestReplacedFeedback:
    def test_an_earlier_release_is_verified_by_its_kept_columns(self, store: SqlStore) -> None:
        courses = SqlCourseStore(store.transactions)
        courses.put_feedback(replace(courses.feedback("lab")[1], files=folder("g")))
        log = log_of(store)
        assert findings(log) == []
        assert (log.enter_lines(), log.make_head()) == (1, True)
        first = "source = 'feedback' AND row_key = '1' AND position < 12"
        for change in (
            f"UPDATE log_leaves SET line = replace(line, 'tea', 'eve') WHERE {first}",
            f"UPDATE log_leaves SET line = NULL WHERE {first}",
            f"UPDATE log_leaves SET line = 'x' WHERE {first}",
        ):
            assert ("feedback", "1") in {
                (each.table, each.row) for each in found_after(store, change)
            }

    def test_replaced_lines_are_listed_also_while_the_newer_row_is_queued(
        self, store: SqlStore
    ) -> None:
        log = log_of(store)
        assert log.store.replaced_lines() == ()
        execute(
            store,
            "UPDATE feedback SET released_by = 'mallory' WHERE submission = 1",
            "INSERT INTO log_queue (source, row_key, queued_at) VALUES ('feedback', '1', 0)",
        )
        assert findings(log) == []
        for entered in (0, 1):
            (listed,) = log.store.replaced_lines()
            assert (listed.log, listed.table, listed.row) == ("lab", "feedback", "1")
            assert listed.entered_at == NOW
            if not entered:
                assert log.enter_lines() == 1


def test_lines_at_negative_positions_are_refused_by_the_database_and_found(
    store: SqlStore,
) -> None:
    forge = (
        "INSERT INTO log_leaves (log, position, source, row_key, entered_at, salt, hash)"
        " SELECT log, -5, source, '99', entered_at, salt, hash FROM log_leaves WHERE position = 0"
    )
    with pytest.raises(Exception, match="CHECK constraint"):
        execute(store, forge)
    found = found_after(store, "PRAGMA ignore_check_constraints = ON", forge)
    assert "The log lab has a line at -5, before line 0" in found[0].problem


def test_a_far_position_is_one_finding(store: SqlStore) -> None:
    found = found_after(store, "UPDATE log_leaves SET position = 1000000000000 WHERE position = 11")
    assert "Lines 11 to 999999999999 were removed from the log lab." in {
        each.problem for each in found
    }


class TestUnreadableRows:
    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE submissions SET files = '{' WHERE id = 1",
            "UPDATE log_leaves SET hash = 'text' WHERE source = 'submissions' AND row_key = '1'",
            "UPDATE log_leaves SET salt = 'text' WHERE source = 'submissions' AND row_key = '1'",
        ],
    )
    def test_an_unreadable_row_or_line_is_a_finding_and_ends_nothing(
        self, store: SqlStore, change: str
    ) -> None:
        found = found_after(store, change, "UPDATE submissions SET at = at - 3600 WHERE id = 2")
        assert {("submissions", "1"), ("submissions", "2")} <= {
            (each.table, each.row) for each in found
        }

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE log_leaves SET row_key = 'x' WHERE position = 0",
            f"UPDATE log_leaves SET row_key = '{'9' * 40}' WHERE position = 0",
            "UPDATE log_leaves SET position = 'x' WHERE position = 0",
            "UPDATE log_anchors SET root = 'text'",
            "UPDATE log_anchors SET size = 'text'",
            "UPDATE log_heads SET signature = 5, text = 'x'",
        ],
    )
    def test_values_that_the_service_never_writes_are_findings(
        self, store: SqlStore, change: str
    ) -> None:
        assert found_after(store, change)

    def test_unreadable_queued_rows_do_not_hold_up_the_others(self, store: SqlStore) -> None:
        courses = SqlCourseStore(store.transactions)
        for number in (1, 2):
            courses.put_feedback(replace(courses.feedback("lab")[number], files=folder("g")))
        execute(
            store,
            "UPDATE feedback SET files = '{' WHERE submission = 1",
            "INSERT INTO log_queue (source, row_key, queued_at) VALUES"
            f" ('ledger', 'x', 0), ('ledger', '{'9' * 40}', 0), ('other', '1', 0)",
        )
        log = log_of(store)
        assert log.enter_lines() == 5
        assert log.store.state().queued == 0
        assert log.store.state().sizes == {"-": 4, "lab": 13}
        assert log.make_head()
        assert {each.row for each in findings(log) if each.log == "-"} == {
            "1",
            "x",
            "9" * 40,
        }


def test_a_proof_of_a_damaged_log_is_refused_with_its_reason(
    store: SqlStore, tmp_path: Path
) -> None:
    courses = SqlCourseStore(store.transactions)
    courses.put_feedback(replace(courses.feedback("lab")[1], files=folder("g")))
    with closing(sqlite3.connect(tmp_path / "carrel.db")) as db, db:
        db.execute(
            "INSERT INTO log_leaves (log, position, source, row_key, entered_at, salt, hash)"
            " SELECT log, 12, source, '99', entered_at, salt, hash FROM log_leaves"
            " WHERE position = 0"
        )
    with pytest.raises(Unavailable, match="The log is damaged"):
        log_of(store).prove_coursework(Identity(name="s0"), "lab", "ps1")


def test_an_anchor_follows_the_highest_position(store: SqlStore) -> None:
    courses = SqlCourseStore(store.transactions)
    for number in (1, 2):
        courses.put_feedback(replace(courses.feedback("lab")[number], files=folder("g")))
        log = log_of(store)
        log.enter_lines()
        log.make_head()
    execute(store, "DELETE FROM log_anchors WHERE position = 0")
    courses.put_feedback(replace(courses.feedback("lab")[1], files=folder("h")))
    log = log_of(store)
    for _ in range(2):
        with pytest.raises(Unavailable, match="does not extend"):
            log.prove_coursework(Identity(name="s0"), "lab", "ps1")


class TestDoctor:
    def growth(self, tmp_path: Path, now: float = NOW + 60) -> list[tuple[Severity, str]]:
        state = StateFolder.at(tmp_path)
        found = log_heads.findings(state, Settings(), now=now)
        return [(each.verdict, each.what) for each in found if each.subject == "log growth"]

    def test_a_log_that_grows_is_fine(self, store: SqlStore, tmp_path: Path) -> None:
        assert [verdict for verdict, _ in self.growth(tmp_path)] == [Severity.FINE]

    def test_heads_without_a_place_outside_are_a_note_and_no_warning(
        self, store: SqlStore, tmp_path: Path
    ) -> None:
        state = StateFolder.at(tmp_path)
        for settings, verdict in (
            (Settings(), Severity.NOTE),
            (Settings(log_heads_file="/mnt/heads.jsonl"), Severity.FINE),
        ):
            (found,) = [
                each
                for each in log_heads.findings(state, settings, now=NOW)
                if each.subject == "log heads"
            ]
            assert found.verdict is verdict

    def test_old_queues_unanchored_lines_and_a_log_that_does_not_extend_its_head_are_warnings(
        self, store: SqlStore, tmp_path: Path
    ) -> None:
        courses = SqlCourseStore(store.transactions)
        courses.put_feedback(replace(courses.feedback("lab")[1], files=folder("g")))
        assert log_of(store).enter_lines() == 1
        execute(
            store,
            f"INSERT INTO log_queue (source, row_key, queued_at) VALUES ('ledger', '1', {NOW})",
            "UPDATE log_heads SET size = 9",
        )
        whats = [what for _, what in self.growth(tmp_path, NOW + 3 * 3600)]
        assert [what.partition(",")[0].partition(" of size")[0] for what in whats] == [
            "1 lines wait for the log",
            "A line that entered the log 3 h ago is not anchored yet.",
            "The log does not extend the head",
        ]
        assert log_of(store).store.unanchored_since() == NOW
