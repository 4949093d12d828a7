"""Ranks, ties, best and last, private ranks, and pseudonyms."""

from __future__ import annotations

from dataclasses import replace

from carrel.courses.leaderboards.standings import pseudonym, standings
from carrel.courses.model.leaderboards import EntryOutcome, Leaderboard, LeaderboardEntry
from carrel.courses.model.records import Folder

BOARD = Leaderboard(
    course="cs101",
    assignment="ps1",
    metric="accuracy",
    per_day=5,
    public_percent=50,
    counts="best",
    private_after_due=False,
    files=Folder(sha256="", files=()),
    seed="00" * 16,
    by="teacher",
    at=0.0,
)


def entry(
    person: str,
    at: float,
    public: float | None,
    private: float = 0.5,
    outcome: EntryOutcome = EntryOutcome.SCORED,
) -> LeaderboardEntry:
    return LeaderboardEntry(
        id=f"w-{person}-{at}",
        course="cs101",
        assignment="ps1",
        person=person,
        request="g-1",
        sha256="",
        size=1,
        sent_at=at,
        outcome=outcome,
        public=public,
        private=private,
    )


ENTRIES = [
    entry("ada", 1, 0.9, 0.2),
    entry("ada", 2, 0.5, 0.9),
    entry("ben", 3, 0.9, 0.8),
    entry("cleo", 4, 0.7, 0.7),
    entry("dora", 5, 0.7, 0.7),
    entry("eve", 6, 0.1),
    entry("gus", 7, None, outcome=EntryOutcome.REFUSED),
]


def ranks(board: Leaderboard, *, by_private: bool = False) -> list[tuple[int, str, float]]:
    found = standings(board, ENTRIES, by_private=by_private)
    return [(each.rank, each.entry.person, each.entry.sent_at) for each in found]


def test_equal_scores_have_equal_ranks_and_the_best_submission_counts() -> None:
    expected = [(1, "ada", 1), (1, "ben", 3), (3, "cleo", 4), (3, "dora", 5), (5, "eve", 6)]
    assert ranks(BOARD) == expected
    assert standings(BOARD, ENTRIES)[0].submissions == 2


def test_the_last_submission_counts_where_the_teacher_says_so() -> None:
    assert ranks(replace(BOARD, counts="last"))[:2] == [(1, "ben", 3), (2, "cleo", 4)]


def test_the_public_score_decides_which_submission_has_a_private_rank() -> None:
    assert ranks(BOARD, by_private=True)[-1] == (5, "ada", 1)


def test_a_lower_error_is_better() -> None:
    assert ranks(replace(BOARD, metric="rmse"))[0] == (1, "eve", 6)


def test_a_pseudonym_depends_on_the_secret_seed() -> None:
    other = replace(BOARD, seed="01" * 16)
    names = {pseudonym(BOARD, f"student{n}") for n in range(300)}
    assert len(names) == 300
    assert pseudonym(BOARD, "student1") == pseudonym(BOARD, "student1")
    assert pseudonym(BOARD, "student1") != pseudonym(other, "student1")
