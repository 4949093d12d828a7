"""Show a leaderboard to its students and teachers.

An open page asks every few seconds whether it is out of date (``changed_page``). For that only the
reader's own submissions, or those that wait, are read, and how many there are. The table of
students is made once for each verdict (``table_cache``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from ...hub.records.identity import Identity
from ...hub.schemas.coursework.leaderboards import (
    LeaderboardLogOut,
    LeaderboardOut,
    LeaderboardRowOut,
)
from ..deadlines.days import day_of
from ..deadlines.shifts import DeadlineShifts
from ..files.bundle import sha256
from ..model.leaderboards import EntryCounts, Leaderboard, LeaderboardStore
from ..model.records import Assignment, CourseRole
from ..roster.access import ALL_ROLES, GRADERS, CourseAccess, CourseMembership
from ..roster.class_list import ClassList
from .daily_limit import submissions_left
from .evaluation import WeightsEvaluation
from .fault_recovery import failure_of, left_by_faults, score_again
from .outputs import entries_out, row_out, rule_out
from .standings import Standing, standings
from .table_cache import TableCache

_STATE_DIGITS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardPage:
    """What a page shows to its reader: to students ``LeaderboardOut``.

    ``state`` differs once ``shown`` differs.
    """

    state: str
    shown: LeaderboardOut | LeaderboardLogOut


@dataclass(frozen=True, slots=True)
class LeaderboardService:
    """Leaderboards with their submissions and scores, as their readers may see them."""

    access: CourseAccess
    class_list: ClassList
    evaluation: WeightsEvaluation
    tables: TableCache = field(default_factory=TableCache)

    def show(self, who: Identity, course: str, name: str) -> LeaderboardOut:
        """The table with pseudonyms, and the reader's own submissions."""
        found = self._read(who, course, name)
        return self._with_rows(found, self._without_rows(found))

    def log(self, who: Identity, course: str, name: str) -> LeaderboardLogOut:
        """The table with names and private scores, and all submissions. For teachers, graders."""
        return self._log(self._read(who, course, name, GRADERS))

    def page(self, who: Identity, course: str, name: str) -> LeaderboardPage:
        """What a page shows to its reader."""
        found = self._read(who, course, name)
        seen = self._seen_by_reader(found)
        return LeaderboardPage(state=seen.state, shown=self._shown(found, seen))

    def changed_page(
        self, who: Identity, course: str, name: str, state: str
    ) -> LeaderboardPage | None:
        """What a page of this state shows now; None where it still shows it."""
        found = self._read(who, course, name)
        seen = self._seen_by_reader(found)
        if seen.state == state:
            return None
        return LeaderboardPage(state=seen.state, shown=self._shown(found, seen))

    def score_again(self, who: Identity, course: str, name: str) -> LeaderboardLogOut:
        """Score what a fault left without score; safe to repeat. See `fault_recovery`."""
        score_again(self.access, self.evaluation, who, course, name)
        return self.log(who, course, name)

    def _read(
        self, who: Identity, course: str, name: str, roles: Collection[CourseRole] = ALL_ROLES
    ) -> _Reading:
        membership = self.access.membership(who, course, roles)
        assignment = self.access.assignment(membership, name)
        board = self._store.rule(course, name)
        self.evaluation.settle(course, name)
        counts = self._store.counts(course, name)
        shifts = DeadlineShifts.read(self.access.store, course)
        return _Reading(
            who=who.name,
            membership=membership,
            assignment=assignment,
            board=board,
            counts=counts,
            shifts=shifts,
            private=board is not None and self._private_is_shown(board, assignment, shifts),
        )

    def _seen_by_reader(self, found: _Reading) -> _Seen:
        parts: list[object] = [found.board, found.counts, found.membership.role, found.private]
        if found.membership.role is CourseRole.STUDENT:
            mine = self._without_rows(found)
            return _Seen(state=_digest(*parts, mine), mine=mine)
        waiting = self._store.waiting_in(found.assignment.course, found.assignment.name)
        requests = sorted({each.request for each in waiting})
        waits = ((each, self.evaluation.wait(each)) for each in requests)
        return _Seen(state=_digest(*parts, *waits))

    def _shown(self, found: _Reading, seen: _Seen) -> LeaderboardOut | LeaderboardLogOut:
        return self._with_rows(found, seen.mine) if seen.mine else self._log(found)

    def _without_rows(self, found: _Reading) -> LeaderboardOut:
        """A leaderboard as its reader sees it, still without the table."""
        board, assignment, now = found.board, found.assignment, self.access.context.clock()
        own = self._store.entries(assignment.course, assignment.name, found.who)
        counts = found.shifts.counts(assignment, found.membership.member, now)
        rule = rule_out(assignment.course, assignment.name, board)
        shown_later = rule.private_after_due and assignment.due is not None
        return LeaderboardOut(
            rule=rule.model_copy(update={"private_after_due": shown_later}),
            private_shown=found.private,
            rows=[],
            mine=entries_out(own, self.evaluation.wait, private=found.private),
            left=submissions_left(assignment, board, own, now) if board and counts else 0,
            past_due=not counts,
            next_at=day_of(assignment, now)[1],
            zone=assignment.zone,
        )

    def _with_rows(self, found: _Reading, shown: LeaderboardOut) -> LeaderboardOut:
        board, private = found.board, found.private
        if board is None:
            return shown
        table = self._table(board, found)
        rows = [row_out(board, each, own=found.who, private=private) for each in table]
        return shown.model_copy(update={"rows": rows})

    def _log(self, found: _Reading) -> LeaderboardLogOut:
        board, course, name = found.board, found.assignment.course, found.assignment.name
        entries = self._store.entries(course, name)
        rows: list[LeaderboardRowOut] = []
        if board is not None:
            table = standings(board, entries, by_private=found.private)
            rows = [row_out(board, each, names=True, private=True) for each in table]
        faults = left_by_faults(entries)
        return LeaderboardLogOut(
            rule=rule_out(course, name, board),
            private_shown=found.private,
            rows=rows,
            entries=entries_out(entries, self.evaluation.wait, names=True, private=True),
            unscored=len(faults),
            failure=failure_of(self.evaluation, faults),
        )

    def _table(self, board: Leaderboard, found: _Reading) -> Sequence[Standing]:
        course, name, private = board.course, board.assignment, found.private
        return self.tables.table(
            (course, name, private),
            (board.seed, board.metric, board.counts, found.counts),
            lambda: standings(board, self._store.entries(course, name), by_private=private),
        )

    def _private_is_shown(
        self, board: Leaderboard, assignment: Assignment, shifts: DeadlineShifts
    ) -> bool:
        """Whether students see private scores: once no student can submit any more."""
        now = self.access.context.clock()
        if not board.private_after_due or assignment.due is None or now <= assignment.due:
            return False
        return not any(
            shifts.counts(assignment, member, now)
            for member in self.class_list.students(board.course)
        )

    @property
    def _store(self) -> LeaderboardStore:
        return self.access.store.leaderboards


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A leaderboard as one reader has found it.

    ``counts`` were read before any submissions: a table may be newer than its version, not older.
    ``private``: students see private scores, and the table is ordered by them.
    """

    who: str
    membership: CourseMembership
    assignment: Assignment
    board: Leaderboard | None
    counts: EntryCounts
    shifts: DeadlineShifts
    private: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What decides whether a page is out of date; ``mine`` is of a student, without the table."""

    state: str
    mine: LeaderboardOut | None = None


def _digest(*parts: object) -> str:
    return sha256(repr(parts).encode())[:_STATE_DIGITS]
