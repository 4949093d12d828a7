"""Open leaderboards, take the weights of students, and have them scored in batches.

A submission is a safetensors file for an architecture that the teacher's file builds, so that no
code of a student runs. The header of each file is checked here, without PyTorch; a pickle is
refused and not even stored.

Requests (``evaluation``) belong to the teacher, so that students see neither log nor files, and use
idle capacity. A submission is stored before its request is queued; one that was not evaluated, by a
fault of the system or of the teacher's file, costs its student nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from ...hub.admission.request_factory import new_id
from ...hub.errors import Conflict, Forbidden, InvalidInput
from ...hub.messages import units
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity
from ...hub.records.json_value import Json
from ...hub.schemas.courses import BundleIn
from ...hub.schemas.coursework.leaderboards import (
    MOST_REFUSED_PER_DAY,
    LeaderboardEntryOut,
    LeaderboardIn,
    LeaderboardLogOut,
    LeaderboardOut,
    LeaderboardRowOut,
    LeaderboardRuleOut,
    WeightsIn,
)
from ..deadlines.days import day_of, next_day_sentence
from ..deadlines.shifts import DeadlineShifts
from ..files.bundle import sha256
from ..files.transfer import bundle_of_body, store_bundle
from ..model.interfaces import Blobs
from ..model.leaderboards import EntryOutcome, Leaderboard, LeaderboardEntry, LeaderboardStore
from ..model.records import Assignment, CourseRole, Folder
from ..roster.access import (
    GRADERS,
    TEACHERS,
    CourseAccess,
    CourseMembership,
    check_not_archived,
)
from ..roster.class_list import ClassList
from .evaluation import ONE_BY_ONE, WeightsEvaluation
from .fault_recovery import failure_of, left_by_faults, score_again
from .standings import LOWER_IS_BETTER, pseudonym, standings
from .table_cache import TableCache
from .weights_file import stored_tensors

PROGRAM: Final = "leaderboard.py"
"""The teacher's file that builds the architecture and the hidden data."""
_SEED_BYTES: Final = 16
_STATE_DIGITS: Final = 32


@dataclass(frozen=True, slots=True)
class LeaderboardService:
    """Leaderboards: rules of teachers, and submissions of weights by students."""

    access: CourseAccess
    class_list: ClassList
    blobs: Blobs
    evaluation: WeightsEvaluation
    tables: TableCache = field(default_factory=TableCache)

    # -- for teachers ---------------------------------------------------------------------

    def open(
        self, who: Identity, course: str, name: str, body: LeaderboardIn
    ) -> LeaderboardRuleOut:
        """Open the leaderboard of an assignment, or change it; safe to repeat. For teachers.

        Raises:
            Conflict: the course is archived, or submissions have scores already, which another
                metric or other hidden data would not be comparable with.
            NotFound: there is no such assignment.
            InvalidInput, TooLarge: of the files.
        """
        membership = self.access.membership(who, course, TEACHERS)
        check_not_archived(membership.course)
        self.access.assignment(membership, name)
        target = f"{course}/{name}"
        self.access.check_unchanged(who, AuditAction.LEADERBOARD_SET, target)
        with ONE_BY_ONE:
            known = self._store.rule(course, name)
            rule = Leaderboard(
                course=course,
                assignment=name,
                metric=body.metric,
                per_day=body.per_day,
                public_percent=body.public_percent,
                counts=body.counts,
                private_after_due=body.private_after_due,
                files=self._files(body, known),
                seed=known.seed if known else secrets.token_hex(_SEED_BYTES),
                by=who.name,
                at=self.access.context.clock(),
            )
            if known is not None and _test_of(known) != _test_of(rule):
                self._check_no_scores(rule)
            after: dict[str, Json] = {
                "metric": rule.metric,
                "per_day": rule.per_day,
                "public_percent": rule.public_percent,
                "counts": rule.counts,
                "private_after_due": rule.private_after_due,
                "files": rule.files.sha256,
            }
            before: dict[str, Json] = {"per_day": known.per_day} if known else {}
            change = self.access.audit_entry(
                who, AuditAction.LEADERBOARD_SET, target, before=before, after=after
            )
            self._store.put_rule(rule, change=change)
        return rule_out(course, name, rule)

    def close(self, who: Identity, course: str, name: str) -> LeaderboardRuleOut:
        """Take no further submissions; the table stays. Safe to repeat. For teachers."""
        known = self._store.rule(course, name)
        if known is None:
            self.access.assignment(self.access.membership(who, course, TEACHERS), name)
            return rule_out(course, name, None)
        body = LeaderboardIn(
            metric=known.metric,
            per_day=0,
            public_percent=known.public_percent,
            counts=known.counts,
            private_after_due=known.private_after_due,
        )
        return self.open(who, course, name, body)

    def log(self, who: Identity, course: str, name: str) -> LeaderboardLogOut:
        """The table with names and private scores, and all submissions. For teachers, graders."""
        self.access.assignment(self.access.membership(who, course, GRADERS), name)
        board = self._store.rule(course, name)
        self.evaluation.settle(course, name)
        rows = self._rows(board, names=True, private=True) if board else []
        wait = cache(self.evaluation.wait)
        entries = self._store.entries(course, name)
        faults = left_by_faults(entries)
        return LeaderboardLogOut(
            rule=rule_out(course, name, board),
            rows=rows,
            entries=[self._entry_out(each, wait, names=True, private=True) for each in entries],
            unscored=len(faults),
            failure=failure_of(self.evaluation, faults),
        )

    def score_again(self, who: Identity, course: str, name: str) -> LeaderboardLogOut:
        """Score what a fault left without score; safe to repeat. See `fault_recovery`."""
        score_again(self.access, self.evaluation, who, course, name)
        return self.log(who, course, name)

    def _files(self, body: BundleIn, known: Leaderboard | None) -> Folder:
        bundle = bundle_of_body(body)
        if bundle is None:
            if known is None:
                raise _no_program("There are no files for the leaderboard.")
            return known.files
        if PROGRAM not in bundle.files:
            raise _no_program(f"The files of the leaderboard have no {PROGRAM}.")
        return store_bundle(self.blobs, bundle)

    def _check_no_scores(self, rule: Leaderboard) -> None:
        entries = self.evaluation.entries(rule.course, rule.assignment)
        comparable = EntryOutcome.WAITING, EntryOutcome.SCORED
        count = sum(each.outcome in comparable for each in entries)
        if count:
            raise Conflict(
                f"{units.count(count, 'submission')} of {rule.assignment} would not be comparable "
                "with later ones under another metric, other files or another split.",
                accepted="The same metric, files and split; or a leaderboard of another "
                "assignment.",
            )

    def rule(self, course: str, name: str) -> LeaderboardRuleOut:
        """The rule, for pages whose visitor may see the assignment."""
        return rule_out(course, name, self._store.rule(course, name))

    # -- for students ---------------------------------------------------------------------

    def show(self, who: Identity, course: str, name: str) -> LeaderboardOut:
        """The table with pseudonyms, and the reader's own submissions."""
        membership = self.access.membership(who, course)
        assignment = self.access.assignment(membership, name)
        board = self._store.rule(course, name)
        self.evaluation.settle(course, name)
        rule, private = rule_out(course, name, board), False
        rows: list[LeaderboardRowOut] = []
        if board is not None:
            private = self._private_is_shown(board, assignment)
            rows = self._rows(board, private=private, own=who.name)
        return LeaderboardOut(
            rule=rule,
            private_shown=private,
            rows=rows,
            **self._own(who, membership, assignment, board, private=private),
        )

    def state(self, who: Identity, course: str, name: str) -> str:
        """Return a text that differs once what the reader sees differs, without reading the table.

        For students: their own submissions, and how many there are of others with a verdict.
        """
        membership = self.access.membership(who, course)
        assignment = self.access.assignment(membership, name)
        board = self._store.rule(course, name)
        self.evaluation.settle(course, name)
        parts: list[object] = [board, self._store.counts(course, name), membership.role]
        if membership.role is CourseRole.STUDENT:
            private = board is not None and self._private_is_shown(board, assignment)
            own = self._own(who, membership, assignment, board, private=private)
            parts += [private, sorted(own.items())]
        else:
            waiting = self._store.waiting_in(course, name)
            requests = sorted({each.request for each in waiting})
            parts += [(each, self.evaluation.wait(each)) for each in requests]
        return sha256(repr(parts).encode())[:_STATE_DIGITS]

    def _own(
        self,
        who: Identity,
        membership: CourseMembership,
        assignment: Assignment,
        board: Leaderboard | None,
        *,
        private: bool,
    ) -> dict[str, Any]:
        """The part of a leaderboard that is about its reader alone, by the names of its fields."""
        now = self.access.context.clock()
        mine = self._store.entries(assignment.course, assignment.name, who.name)
        counts = self._counts_now(assignment, membership)
        left = self._left(assignment, board, mine) if board and counts else 0
        wait = cache(self.evaluation.wait)
        return {
            "mine": [self._entry_out(each, wait, private=private) for each in mine],
            "left": left,
            "past_due": not counts,
            "next_at": day_of(assignment, now)[1],
            "zone": assignment.zone,
        }

    def submit(self, who: Identity, course: str, name: str, body: WeightsIn) -> LeaderboardEntryOut:
        """Take weights for the leaderboard; the same file again returns its submission.

        A file that is not what it should be is stored as a refused submission, without its bytes.

        Raises:
            NotFound: it is not released.
            Forbidden: the user is no student, or there is no open leaderboard.
            Conflict: the course is archived, it was due, or nothing is left today; or the course
                has no teacher.
            InvalidInput, TooLarge: the content is no base64, or has too many bytes.
            OverMaximum: the pool or the course never has the devices or the time.
        """
        membership = self.access.submitter(who, course)
        assignment = self.access.assignment(membership, name)
        board = self._store.rule(course, name)
        if board is None or not board.per_day:
            raise Forbidden(
                f"{name} has no open leaderboard.",
                accepted="Your teacher opens it: carrel course leaderboard",
            )
        if not self._counts_now(assignment, membership):
            raise Conflict(
                f"{name} was due: what you submit now does not count any more.",
                accepted="Submissions end with the due date of the assignment.",
            )
        content = _content(body)
        problem = _problem(content)
        with ONE_BY_ONE:
            # Its teacher may have changed it meanwhile.
            board = self._store.rule(course, name) or board
            entry = self._known_or_new(who.name, assignment, board, content, problem)
        self.access.context.notifier.notify()
        return self._entry_out(entry, self.evaluation.wait)

    def _known_or_new(
        self,
        person: str,
        assignment: Assignment,
        board: Leaderboard,
        content: bytes,
        problem: str,
    ) -> LeaderboardEntry:
        own = self.evaluation.entries(board.course, board.assignment, person)
        digest = sha256(content)
        known = next((e for e in own if e.sha256 == digest and _stands(e, board)), None)
        # Where the last one counts, an earlier file can be sent again.
        if known is not None and (board.counts == "best" or known is own[0]):
            return known
        entry = LeaderboardEntry(
            id=new_id("w"),
            course=board.course,
            assignment=board.assignment,
            person=person,
            request="",
            sha256=digest,
            size=len(content),
            sent_at=self.access.context.clock(),
        )
        self._check_left(assignment, board, own, refused=bool(problem))
        if problem:
            entry = replace(entry, outcome=EntryOutcome.REFUSED, sentence=problem)
            self._store.add(entry)
            return entry
        self.evaluation.check(board)
        self.blobs.put(content)
        self._store.add(entry)
        self.evaluation.advance(board.course, board.assignment)
        own = self._store.entries(board.course, board.assignment, person)
        return next(each for each in own if each.id == entry.id)

    def _check_left(
        self,
        assignment: Assignment,
        board: Leaderboard,
        own: Sequence[LeaderboardEntry],
        *,
        refused: bool,
    ) -> None:
        now = self.access.context.clock()
        begin, _ = day_of(assignment, now)
        accepted = next_day_sentence(assignment, now)
        if not refused and self._used(assignment, own) >= board.per_day:
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

    # -- days and due dates ---------------------------------------------------------------

    def _counts_now(self, assignment: Assignment, membership: CourseMembership) -> bool:
        shifts = DeadlineShifts.read(self.access.store, assignment.course)
        return shifts.counts(assignment, membership.member, self.access.context.clock())

    def _private_is_shown(self, board: Leaderboard, assignment: Assignment) -> bool:
        """Whether students see private scores: once no student can submit any more."""
        now = self.access.context.clock()
        if not board.private_after_due or assignment.due is None or now <= assignment.due:
            return False
        shifts = DeadlineShifts.read(self.access.store, board.course)
        return not any(
            shifts.counts(assignment, member, now)
            for member in self.class_list.students(board.course)
        )

    def _left(
        self,
        assignment: Assignment,
        board: Leaderboard,
        own: Sequence[LeaderboardEntry],
    ) -> int:
        """How many submissions are possible today, before the due date."""
        begin, _ = day_of(assignment, self.access.context.clock())
        if max(_unscored_since(begin, own), len(left_by_faults(own))) >= MOST_REFUSED_PER_DAY:
            return 0
        return max(0, board.per_day - self._used(assignment, own))

    def _used(self, assignment: Assignment, own: Sequence[LeaderboardEntry]) -> int:
        begin, _ = day_of(assignment, self.access.context.clock())
        counted = EntryOutcome.WAITING, EntryOutcome.SCORED
        return sum(each.sent_at >= begin and each.outcome in counted for each in own)

    # -- results --------------------------------------------------------------------------

    @property
    def _store(self) -> LeaderboardStore:
        return self.access.store.leaderboards

    def _rows(
        self,
        board: Leaderboard,
        *,
        names: bool = False,
        private: bool = False,
        own: str = "",
    ) -> list[LeaderboardRowOut]:
        course, name, by_private = board.course, board.assignment, private and not names
        # Before the submissions are read: a table may be newer than its version, and not older.
        version = board.seed, board.metric, board.counts, self._store.counts(course, name)
        table = self.tables.table(
            (course, name, by_private),
            version,
            lambda: standings(board, self._store.entries(course, name), by_private=by_private),
        )
        return [
            LeaderboardRowOut(
                rank=each.rank,
                pseudonym=pseudonym(board, each.entry.person),
                person=each.entry.person if names else "",
                own=each.entry.person == own,
                public=each.entry.public or 0.0,
                private=each.entry.private if private else None,
                submissions=each.submissions,
                sent_at=each.entry.sent_at,
            )
            for each in table
        ]

    def _entry_out(
        self,
        entry: LeaderboardEntry,
        wait: Callable[[str], str],
        *,
        names: bool = False,
        private: bool = False,
    ) -> LeaderboardEntryOut:
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


def _stands(entry: LeaderboardEntry, board: Leaderboard) -> bool:
    """Whether a verdict holds for the same file again.

    One without score does not, nor a refusal by files of the teacher that were corrected since.
    """
    match entry.outcome:
        case EntryOutcome.FAULT | EntryOutcome.STOPPED:
            return False
        case EntryOutcome.REFUSED:
            return not entry.request or entry.sent_at >= board.at
        case _:
            return True


def _unscored_since(begin: float, own: Sequence[LeaderboardEntry]) -> int:
    """How many files were refused or stopped, which cost time of the pool, but no submission."""
    ended = EntryOutcome.REFUSED, EntryOutcome.STOPPED
    return sum(each.sent_at >= begin and each.outcome in ended for each in own)


def rule_out(course: str, assignment: str, board: Leaderboard | None) -> LeaderboardRuleOut:
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


def _test_of(board: Leaderboard) -> tuple[object, ...]:
    return board.metric, board.public_percent, board.files.sha256


def _no_program(sentence: str) -> InvalidInput:
    return InvalidInput(
        sentence,
        accepted=f"A folder with {PROGRAM}, which builds the architecture and the hidden data.",
        field="files",
    )


def _content(body: WeightsIn) -> bytes:
    """Return the bytes of the file. Raises InvalidInput, TooLarge."""
    bundle = bundle_of_body(BundleIn(files=[body.file]))
    assert bundle is not None
    return next(iter(bundle.files.values()))


def _problem(content: bytes) -> str:
    """Why a file cannot be scored, for its student; empty where its header is right."""
    try:
        stored_tensors(content)
    except InvalidInput as error:
        return str(error)
    return ""
