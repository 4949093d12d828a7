"""Take the weights of students for a leaderboard.

A submission is a safetensors file for an architecture that the teacher's file builds, so that no
code of a student runs. The header of each file is checked here, without PyTorch; a pickle is
refused and not even stored. A submission is stored before its request is queued.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...hub.admission.request_factory import new_id
from ...hub.errors import Conflict, Forbidden, InvalidInput, TooLarge
from ...hub.records.identity import Identity
from ...hub.schemas.courses import BundleIn
from ...hub.schemas.coursework.leaderboards import LeaderboardEntryOut, WeightsIn
from ..deadlines.shifts import DeadlineShifts
from ..files.bundle import MAX_FILE_BYTES, sha256
from ..files.transfer import bundle_of_body
from ..model.interfaces import Blobs
from ..model.leaderboards import EntryOutcome, Leaderboard, LeaderboardEntry, LeaderboardStore
from ..model.records import Assignment
from ..roster.access import CourseAccess
from .daily_limit import check_left
from .evaluation import ONE_BY_ONE, WeightsEvaluation
from .outputs import entry_out
from .weights_file import stored_tensors


@dataclass(frozen=True, slots=True)
class WeightsSubmissions:
    """Submissions of weights by students."""

    access: CourseAccess
    blobs: Blobs
    evaluation: WeightsEvaluation

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
        self._open_board(course, name)
        shifts = DeadlineShifts.read(self.access.store, course)
        if not shifts.counts(assignment, membership.member, self.access.context.clock()):
            raise Conflict(
                f"{name} was due: what you submit now does not count any more.",
                accepted="Submissions end with the due date of the assignment.",
            )
        content = _content(body)
        problem = _problem(content)
        with ONE_BY_ONE:
            # Its teacher may have changed or closed it meanwhile.
            board = self._open_board(course, name)
            entry = self._known_or_new(who.name, assignment, board, content, problem)
        self.access.context.notifier.notify()
        return entry_out(entry, self.evaluation.wait)

    def _open_board(self, course: str, name: str) -> Leaderboard:
        board = self._store.rule(course, name)
        if board is None or not board.per_day:
            raise Forbidden(
                f"{name} has no open leaderboard.",
                accepted="Your teacher opens it: carrel course leaderboard",
            )
        return board

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
        now = self.access.context.clock()
        entry = LeaderboardEntry(
            id=new_id("w"),
            course=board.course,
            assignment=board.assignment,
            person=person,
            request="",
            sha256=digest,
            size=len(content),
            sent_at=now,
        )
        check_left(assignment, board, own, now, refused=bool(problem))
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

    @property
    def _store(self) -> LeaderboardStore:
        return self.access.store.leaderboards


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


def _content(body: WeightsIn) -> bytes:
    """Return the bytes of the file. Raises InvalidInput, TooLarge."""
    size = len(body.file.content) // 4 * 3
    if size > MAX_FILE_BYTES + 2:  # base64 rounds up
        raise TooLarge(
            f"The file has {size:,} bytes.",
            accepted=f"Weights of up to {MAX_FILE_BYTES >> 20} MiB.",
            field="files",
        )
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
