"""Verdicts and scores of leaderboards are lines; private scores are in no proof."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.courses.model.leaderboards import EntryOutcome, LeaderboardEntry
from carrel.courses.store import SqlCourseStore
from carrel.hub.errors import NotFound
from carrel.hub.proofs.verification import verify_proof
from carrel.hub.records.identity import Identity
from carrel.hub.store import SqlStore, open_store

from .log_kit import KEY, NOW, fill, findings, found_after, log_of, upgrade

WAITING = LeaderboardEntry(
    id="w-1",
    course="lab",
    assignment="ps1",
    person="ada",
    request="",
    sha256="a" * 64,
    size=100,
    sent_at=NOW,
)
SCORED = replace(
    WAITING,
    request="g-1",
    outcome=EntryOutcome.SCORED,
    sentence="Scored: 0.5 on the public part.",
    public=0.5,
    private=0.125,
)
ADA = Identity(name="ada")


def sent(store: SqlStore) -> None:
    """Store a submission of ada's that is scored later, and a pickle of hers."""
    fill(store)
    boards = SqlCourseStore(store.transactions).leaderboards
    boards.add(WAITING)
    log = log_of(store)
    assert (log.enter_lines(), log.make_head()) == (12, True)
    with pytest.raises(NotFound, match="not submitted anything"):
        log.prove_coursework(ADA, "lab", "ps1")
    boards.change_waiting([replace(WAITING, request="g-1")])
    boards.change_waiting([SCORED])
    boards.change_waiting([replace(SCORED, public=0.75)])  # a verdict is final
    refused = replace(WAITING, id="w-2", outcome=EntryOutcome.REFUSED, sentence="It is a pickle.")
    boards.add(refused)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    with closing(open_store(tmp_path_factory.mktemp("log") / "carrel.db")) as store:
        sent(store)
        log = log_of(store)
        assert (log.enter_lines(), log.make_head(), findings(log)) == (3, True, [])
        assert log.store.replaced_lines() == ()
        yield store


@pytest.mark.parametrize(
    ("change", "table"),
    [
        ("UPDATE leaderboard_entries SET public = 0.9 WHERE id = 'w-1'", "leaderboard_entries"),
        ("UPDATE leaderboard_entries SET sha256 = 'b' WHERE id = 'w-1'", "leaderboard_entries"),
        ("UPDATE leaderboard_entries SET person = 'eve' WHERE id = 'w-1'", "leaderboard_entries"),
        ("UPDATE leaderboard_entries SET outcome = '' WHERE id = 'w-1'", "leaderboard_entries"),
        ("DELETE FROM leaderboard_entries WHERE id = 'w-1'", "leaderboard_entries"),
        (
            "UPDATE leaderboard_entries SET private = 0.9 WHERE id = 'w-1'",
            "leaderboard_private_scores",
        ),
    ],
)
def test_a_changed_or_removed_score_is_found(store: SqlStore, change: str, table: str) -> None:
    found = found_after(store, change)
    assert (table, "w-1") in {(each.table, each.row) for each in found}


def test_a_score_written_past_the_service_is_found(store: SqlStore) -> None:
    columns = "course, assignment, person, request, sha256, size, sent_at, outcome, sentence"
    forged = (
        f"INSERT INTO leaderboard_entries (id, {columns}) "  # noqa: S608  # constants
        f"SELECT 'w-9', {columns} FROM leaderboard_entries WHERE id = 'w-1'"
    )
    (found,) = found_after(store, forged)
    assert found.problem == "The row w-9 of the table leaderboard_entries is not in the log."


def test_a_student_proves_the_public_score_and_never_sees_the_private_one(store: SqlStore) -> None:
    proof = log_of(store).prove_coursework(ADA, "lab", "ps1")
    lines = [each.line for each in verify_proof(proof, KEY.public).lines]
    assert [(each["id"], each["public"]) for each in lines if each] == [("w-1", 0.5), ("w-2", None)]
    assert "private" not in proof.model_dump_json()
    assert "0.125" not in proof.model_dump_json()


def test_verdicts_from_before_are_entered_after_an_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(open_store(path)) as made:
        sent(made)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM log_queue WHERE source LIKE 'leaderboard%'")
    with closing(open_store(path)) as upgraded:
        upgrade(upgraded, "r0068_leaderboards_in_the_log")
        log = log_of(upgraded)
        assert log.enter_lines() == 3
        assert findings(log) == []
