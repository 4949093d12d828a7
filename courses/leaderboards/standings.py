"""Rank the students of a leaderboard, and give them pseudonyms."""

from __future__ import annotations

import hashlib
import hmac
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ...hub.schemas.coursework.leaderboards import Metric
from ..model.leaderboards import EntryOutcome, Leaderboard, LeaderboardEntry

LOWER_IS_BETTER: Final[frozenset[Metric]] = frozenset({"cross-entropy", "rmse", "mae"})
_ANIMALS: Final = (
    *("badger", "beaver", "bison", "camel", "cricket", "crane", "dolphin", "eagle"),
    *("falcon", "ferret", "finch", "gecko", "hare", "heron", "ibex", "jackdaw"),
    *("koala", "lemur", "lynx", "marten", "mole", "newt", "otter", "owl"),
    *("panda", "puffin", "raven", "robin", "seal", "stork", "tapir", "walrus"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The place of one student.

    Attributes:
        rank: from 1; equal scores have equal ranks, and the next one counts them all.
        entry: the submission that counts.
        submissions: of the student that were scored.
    """

    rank: int
    entry: LeaderboardEntry
    submissions: int


def standings(
    board: Leaderboard, entries: Iterable[LeaderboardEntry], *, by_private: bool = False
) -> list[Standing]:
    """Rank the students by the submission that counts; those with equal scores by its time.

    The public score decides which one counts, also where the private one ranks.
    """
    scored: defaultdict[str, list[LeaderboardEntry]] = defaultdict(list)
    for entry in entries:
        if entry.outcome is EntryOutcome.SCORED:
            scored[entry.person].append(entry)
    counting = [_counting(board, own) for own in scored.values()]
    counting.sort(key=lambda each: (_loss(board, each, by_private), each.sent_at, each.id))
    found: list[Standing] = []
    for place, entry in enumerate(counting, start=1):
        rank = place
        if found and _loss(board, found[-1].entry, by_private) == _loss(board, entry, by_private):
            rank = found[-1].rank
        found.append(Standing(rank=rank, entry=entry, submissions=len(scored[entry.person])))
    return found


def _counting(board: Leaderboard, own: list[LeaderboardEntry]) -> LeaderboardEntry:
    """The best submission, of equal ones the first; or the last one."""
    if board.counts == "last":
        return max(own, key=lambda each: (each.sent_at, each.id))
    return min(own, key=lambda each: (_loss(board, each, False), each.sent_at, each.id))


def _loss(board: Leaderboard, entry: LeaderboardEntry, by_private: bool) -> float:
    score = (entry.private if by_private else entry.public) or 0.0
    return score if board.metric in LOWER_IS_BETTER else -score


def pseudonym(board: Leaderboard, person: str) -> str:
    """Return the name of a student for other students, such as ``heron-4f21c``.

    It is made with the secret seed of the leaderboard, so that it cannot be computed from a name.
    """
    name = f"{board.course}/{board.assignment}/{person}"
    digest = hmac.new(bytes.fromhex(board.seed), name.encode(), hashlib.sha256).digest()
    return f"{_ANIMALS[digest[0] % len(_ANIMALS)]}-{digest[1:].hex()[:5]}"
