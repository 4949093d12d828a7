"""Return rules, places and submissions of leaderboards as their readers may see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from ...hub.schemas.coursework.leaderboards import (
    LeaderboardEntryOut,
    LeaderboardRowOut,
    LeaderboardRuleOut,
)
from ..model.leaderboards import EntryOutcome, Leaderboard, LeaderboardEntry
from .standings import LOWER_IS_BETTER, Standing, pseudonym


def rule_out(course: str, assignment: str, board: Leaderboard | None) -> LeaderboardRuleOut:
    """The rule; ``board`` is None where the assignment has no leaderboard."""
    if board is None:
        return LeaderboardRuleOut(course=course, assignment=assignment, opened=False)
    return LeaderboardRuleOut(
        course=course,
        assignment=assignment,
        opened=True,
        metric=board.metric,
        lower_is_better=board.metric in LOWER_IS_BETTER,
        per_day=board.per_day,
        public_percent=board.public_percent,
        counts=board.counts,
        private_after_due=board.private_after_due,
    )


def row_out(
    board: Leaderboard, standing: Standing, *, own: str = "", names: bool = False, private: bool
) -> LeaderboardRowOut:
    """The place of one student; ``own`` is the reader."""
    entry = standing.entry
    return LeaderboardRowOut(
        rank=standing.rank,
        pseudonym=pseudonym(board, entry.person),
        person=entry.person if names else "",
        own=entry.person == own,
        public=entry.public or 0.0,
        private=entry.private if private else None,
        submissions=standing.submissions,
        sent_at=entry.sent_at,
    )


def entries_out(
    entries: Sequence[LeaderboardEntry],
    wait: Callable[[str], str],
    *,
    names: bool = False,
    private: bool = False,
) -> list[LeaderboardEntryOut]:
    """Submissions, newest first; ``wait`` says why those of a request have no verdict yet."""
    told = cache(wait)
    newer: set[tuple[str, str]] = set()
    found = []
    for each in entries:
        out = entry_out(each, told, names=names, private=private)
        file = each.person, each.sha256
        repeated = each.outcome is EntryOutcome.FAULT and file in newer
        found.append(out.model_copy(update={"repeated": repeated}))
        newer.add(file)
    return found


def entry_out(
    entry: LeaderboardEntry,
    wait: Callable[[str], str],
    *,
    names: bool = False,
    private: bool = False,
) -> LeaderboardEntryOut:
    """A submission; ``wait`` says why those of a request have no verdict yet."""
    waits = entry.outcome is EntryOutcome.WAITING
    return LeaderboardEntryOut(
        id=entry.id,
        person=entry.person if names else "",
        sent_at=entry.sent_at,
        sha256=entry.sha256,
        outcome=str(entry.outcome),
        sentence=f"{entry.sentence} {wait(entry.request) if waits else ''}".strip(),
        public=entry.public,
        private=entry.private if private else None,
    )
