"""Score submissions again that a fault of the system or of the teacher's files left without score.

A verdict is final and a line of the log that can be proved. So each of them gets a new submission
with the same file and the same time, and the one that failed stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, nextafter

from ...hub.admission.request_factory import new_id
from ...hub.errors import NotFound
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity
from ..model.leaderboards import EntryOutcome, LeaderboardEntry
from ..roster.access import TEACHERS, CourseAccess, check_not_archived
from .evaluation import ONE_BY_ONE, WeightsEvaluation
from .verdicts import COSTS_NOTHING


def left_by_faults(entries: Sequence[LeaderboardEntry]) -> list[LeaderboardEntry]:
    """The newest fault of each file that has no other submission of its student since.

    ``entries`` are all submissions to a leaderboard, newest first.
    """
    others = {_file(each) for each in entries if each.outcome is not EntryOutcome.FAULT}
    found: dict[tuple[str, str], LeaderboardEntry] = {}
    for each in entries:
        if _file(each) not in others:
            found.setdefault(_file(each), each)
    return list(found.values())


def failure_of(evaluation: WeightsEvaluation, faults: Sequence[LeaderboardEntry]) -> str:
    """Why the newest of these submissions has no score, for teachers; empty without any."""
    if not faults:
        return ""
    newest = faults[0]
    sentence = newest.sentence.removesuffix(COSTS_NOTHING).strip()
    failure = evaluation.failure(newest.request) or sentence
    return failure if failure.endswith(".") else f"{failure}."


def score_again(
    access: CourseAccess, evaluation: WeightsEvaluation, who: Identity, course: str, name: str
) -> None:
    """Have all submissions that a fault left without score evaluated. For teachers.

    Safe to repeat: one that waits or has another verdict meanwhile is not submitted again.

    Raises:
        NotFound: there is no such assignment, or it has no leaderboard.
        Conflict: the course is archived, or has no teacher.
        OverMaximum: the pool or the course never has the devices or the time.
    """
    membership = access.membership(who, course, TEACHERS)
    check_not_archived(membership.course)
    access.assignment(membership, name)
    store = access.store.leaderboards
    with ONE_BY_ONE:
        board = store.rule(course, name)
        if board is None:
            raise NotFound(f"{name} has no leaderboard.")
        faults = left_by_faults(evaluation.entries(course, name))
        if not faults:
            return
        evaluation.check(board)
        again = [
            replace(
                each,
                id=new_id("w"),
                request="",
                # The next number, so that it is listed as newer.
                sent_at=nextafter(each.sent_at, inf),
                outcome=EntryOutcome.WAITING,
                sentence="",
            )
            for each in faults
        ]
        change = access.audit_entry(
            who,
            AuditAction.LEADERBOARD_SET,
            f"{course}/{name}",
            before={},
            after={"scored_again": len(again)},
        )
        store.add(*again, change=change)
        evaluation.advance(course, name)
    access.context.notifier.notify()


def _file(entry: LeaderboardEntry) -> tuple[str, str]:
    return entry.person, entry.sha256
