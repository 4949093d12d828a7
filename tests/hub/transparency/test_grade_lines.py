"""Points of a person and the choice of a submission are lines before feedback is released."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from carrel.courses.store import SqlCourseStore
from carrel.hub.proofs.verification import verify_proof
from carrel.hub.records.audit import AuditAction, AuditEntry
from carrel.hub.records.identity import Identity
from carrel.hub.store import SqlStore, open_store

from .log_kit import KEY, NOW, fill, findings, found_after, log_of, upgrade


def points(cell: str, value: float, action: AuditAction = AuditAction.POINTS_SET) -> AuditEntry:
    return AuditEntry(
        at=NOW,
        who="tea",
        action=action,
        target="lab/ps1",
        before={"points": None, "comment": ""},
        after={"of": f"s1 ps1.ipynb/{cell}", "points": value, "comment": ""},
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    """Return a store with three grade changes (entries 1 to 3 of the audit log), all in the log."""
    with closing(open_store(tmp_path_factory.mktemp("log") / "carrel.db")) as store:
        fill(store)
        store.add_change(points("essay", 3.5))
        store.add_change(points("essay", 4.0))
        courses = SqlCourseStore(store.transactions)
        sent = courses.submission(2)
        choice = points("", 1, AuditAction.SUBMISSION_CHOOSE)
        courses.choose(sent, counts=True, change=choice)
        store.add_change(points("", 1, AuditAction.ASSIGNMENT_SET))
        log = log_of(store)
        assert (log.enter_lines(), log.make_head(), findings(log)) == (15, True, [])
        assert log.store.state().sizes == {"lab": 15}
        yield store


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE changes SET after = replace(after, '3.5', '5.5') WHERE id = 1",
        "UPDATE changes SET who = 'ada' WHERE id = 1",
        "UPDATE changes SET action = 'assignment set' WHERE id = 1",
        "DELETE FROM changes WHERE id = 1",
        "DELETE FROM log_leaves WHERE source = 'changes' AND row_key = '1'",
    ],
)
def test_changed_and_removed_points_are_found_before_their_release(
    store: SqlStore, change: str
) -> None:
    found = found_after(store, change)
    assert ("changes", "1") in {(each.table, each.row) for each in found}


def test_points_written_past_the_service_are_found(store: SqlStore) -> None:
    forged = (
        "INSERT INTO changes (at, who, action, target, why, before, after)"
        " SELECT at, who, action, target, why, before, after FROM changes WHERE id = 2"
    )
    (found,) = found_after(store, forged)
    assert found.problem == "The row 5 of the table changes is not in the log."


def test_other_entries_of_the_audit_log_are_no_lines(store: SqlStore) -> None:
    assert found_after(store, "UPDATE changes SET who = 'eve' WHERE id = 4") == []


def test_neither_a_proof_nor_a_head_tells_a_student_the_points(store: SqlStore) -> None:
    proof = log_of(store).prove_coursework(Identity(name="s1"), "lab", "ps1")
    assert [line.table for line in verify_proof(proof, KEY.public).lines] == [
        "submissions",
        "feedback",
    ]
    assert "essay" not in proof.model_dump_json()
    assert json.loads(proof.head.text).keys() == {"at", "format", "kind", "root", "site", "size"}


def test_grade_changes_from_before_are_entered_after_an_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(open_store(path)) as made:
        fill(made)
        made.add_change(points("essay", 3.5))
        made.add_change(points("", 1, AuditAction.ASSIGNMENT_SET))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM log_queue WHERE source = 'changes'")
    with closing(open_store(path)) as upgraded:
        upgrade(upgraded, "r0048_grade_changes_in_the_log")
        log = log_of(upgraded)
        assert log.enter_lines() == 13
        assert findings(log) == []
