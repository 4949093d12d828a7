"""Count what a student may submit to a leaderboard on one day.

Submissions that are scored count, also while they wait. Files that were refused or stopped cost
none of them, but have a limit of their own, as each may have cost time of the pool; so have files
that a fault left without score.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hub.errors import Conflict
from ...hub.messages import units
from ...hub.schemas.coursework.leaderboards import MOST_REFUSED_PER_DAY
from ..deadlines.days import day_of, next_day_sentence
from ..model.leaderboards import EntryOutcome, Leaderboard, LeaderboardEntry
from ..model.records import Assignment
from .fault_recovery import left_by_faults


def submissions_left(
    assignment: Assignment, board: Leaderboard, own: Sequence[LeaderboardEntry], now: float
) -> int:
    """Return how many submissions a student has left today, with ``own`` ones so far."""
    begin, _ = day_of(assignment, now)
    if max(_unscored_since(begin, own), len(left_by_faults(own))) >= MOST_REFUSED_PER_DAY:
        return 0
    return max(0, board.per_day - _counted_since(begin, own))


def check_left(
    assignment: Assignment,
    board: Leaderboard,
    own: Sequence[LeaderboardEntry],
    now: float,
    *,
    refused: bool,
) -> None:
    """Raise Conflict if a student, with ``own`` submissions so far, cannot submit a file now.

    ``refused``: the file is stored as a refused one, which costs no submission.
    """
    begin, _ = day_of(assignment, now)
    accepted = next_day_sentence(assignment, now)
    if not refused and _counted_since(begin, own) >= board.per_day:
        text = units.count(board.per_day, "submission")
        raise Conflict(
            f"You have used your {text} of today to this leaderboard.", accepted=accepted
        )
    bad = _unscored_since(begin, own)
    if bad >= MOST_REFUSED_PER_DAY:
        raise Conflict(f"{bad} files of yours were not scored today.", accepted=accepted)
    left = len(left_by_faults(own))
    if left >= MOST_REFUSED_PER_DAY:
        raise Conflict(
            f"{left} files of yours could not be scored, for no fault of yours.",
            accepted="Your teacher has them scored again; then you can submit further ones.",
        )


def _counted_since(begin: float, own: Sequence[LeaderboardEntry]) -> int:
    counted = EntryOutcome.WAITING, EntryOutcome.SCORED
    return sum(each.sent_at >= begin and each.outcome in counted for each in own)


def _unscored_since(begin: float, own: Sequence[LeaderboardEntry]) -> int:
    ended = EntryOutcome.REFUSED, EntryOutcome.STOPPED
    return sum(each.sent_at >= begin and each.outcome in ended for each in own)
