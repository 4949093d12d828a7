"""Give points and comments for cells that a person grades.

They are stored in nbgrader's gradebook alone, so that formgrader and Carrel's pages show and change
the same points; the audit log has who gave them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Final

from ...hub.errors import Conflict, InvalidInput, NotFound, Unavailable
from ...hub.records.audit import AuditAction, AuditEntry, ChangeFilter
from ...hub.records.identity import Identity
from ...hub.schemas.grading import CellScoreOut, GradeOut, ManualPointsIn
from ..files.course_folder import folder_of
from ..gradebook.graded_notebook import graded_notebook
from ..gradebook.open_writers import OpenWriters
from ..gradebook.reader import GradebookEntry, pages_of
from ..gradebook.writer import ManualGrade
from ..grading_runs.service import GradingService
from ..model.written_text import check_written
from ..roster.access import GRADERS, CourseAccess, check_not_archived

MOST_COMMENT: Final = 10_000
"""Characters of a comment."""
_LEAST_NUMBER, _NUMBERS = 10_000, 90_000
_NEWEST_CHANGES = 1000


@dataclass(frozen=True, slots=True)
class ManualGradingService:
    """Attributes:
    writers: None where nothing is graded.
    root: the folder of all courses, with their gradebooks; None where nothing is graded.
    """

    access: CourseAccess
    grading: GradingService
    writers: OpenWriters | None = None
    root: Path | None = None

    def set_points(
        self, who: Identity, course: str, name: str, body: ManualPointsIn
    ) -> CellScoreOut:
        """Store points and a comment for one cell of one student. Safe to repeat.

        Raises:
            Forbidden: the user is a student.
            InvalidInput: of the points; the message has the maximum.
            TooLarge: of the comment.
            Conflict: the course is archived, the submission that counts has not been graded, or
                the cell has other points or another comment than the user has seen.
            NotFound: no submission of the student counts, or it has no such cell.
        """
        check_not_archived(self.access.membership(who, course, GRADERS).course)
        if self.writers is None:
            raise Unavailable("Nothing is graded here.")
        grade = self.grading.grade(who, course, name, body.person)
        cell = _cell(grade, body)
        _check_points(body.points, cell)
        check_written(
            body.comment, f"The comment on {cell.cell}", most=MOST_COMMENT, field="comment"
        )
        with self.writers.one_at_a_time(course):
            entry = self._entry(course, name, grade, cell)
            waits = body.points is None and entry.automatic is None
            if (entry.given, entry.comment, entry.waits) != (*_given(body), waits):
                change = self._entry_of_change(who, course, name, body, entry)
                self.access.context.store.check_unchanged(change)
                self._check_seen(course, name, body, entry)
                self._store(course, name, body, entry)
                self.access.context.store.add_change(change)
        return _cell(self.grading.grade(who, course, name, body.person), body)

    def notebook(self, who: Identity, course: str, name: str, person: str, notebook: str) -> bytes:
        """A student's graded notebook, with the outputs of its tests, also of hidden ones.

        Raises:
            NotFound: the student has not submitted it, or it has not been graded.
            TooLarge: it is too large for a page.
        """
        self.access.membership(who, course, GRADERS)
        folder = folder_of(self.root, course)
        found = None if folder is None else graded_notebook(folder, person, name, notebook)
        if found is None:
            raise NotFound(f"There is no graded notebook {notebook[:80]!r} of this student.")
        return found

    # -- internal -------------------------------------------------------------------------

    def _entry(self, course: str, name: str, grade: GradeOut, cell: CellScoreOut) -> GradebookEntry:
        """The cell in the gradebook now. Raises Conflict where another submission is in it."""
        page = pages_of(self.root, course, name).get(grade.person)
        sent = self.access.store.submission(grade.submission)
        if page is None or not page.is_of(sent.at):
            raise Conflict(
                f"Submission {grade.number} of {name} has not been graded, or not as the last.",
                accepted=f"First: carrel course grade {name}",
            )
        found = page.cells.get((cell.notebook, cell.cell))
        if found is None:
            raise _no_cell(cell.cell)
        return found

    def _store(self, course: str, name: str, body: ManualPointsIn, entry: GradebookEntry) -> None:
        assert self.writers is not None  # the caller has checked it
        points, comment = _given(body)
        grade = ManualGrade(
            assignment=name,
            student=body.person,
            notebook=body.notebook,
            cell=body.cell,
            points=points,
            comment=comment,
            seen_points=entry.given,
            seen_comment=entry.comment,
        )
        self.writers.set_manual(course, grade)

    def _check_seen(
        self, course: str, name: str, body: ManualPointsIn, entry: GradebookEntry
    ) -> None:
        if body.seen is None:
            return
        same_comment = _lines(body.seen.comment) == _lines(entry.comment)
        if same_comment and body.seen.points == entry.given:
            return
        who = self._author(course, name, body, entry)
        points = "no points of a person" if entry.given is None else f"{entry.given:g} points"
        comment = "" if same_comment else " and another comment"
        raise Conflict(
            f"{body.cell} has changed since you read it: it has {points}{comment} now, {who}.",
            accepted="Nothing was saved. Compare with the current values, then save again.",
        )

    def _author(self, course: str, name: str, body: ManualPointsIn, entry: GradebookEntry) -> str:
        """Who made the current entry, by the audit log; formgrader writes none."""
        which = ChangeFilter(
            action=AuditAction.POINTS_SET, target=f"{course}/{name}", limit=_NEWEST_CHANGES
        )
        for change in self.access.context.store.changes(which):
            if change.after.get("of") == _thing(body):
                same = change.after.get("points") == entry.given
                same = same and change.after.get("comment") == _digest(entry.comment)
                at = datetime.fromtimestamp(change.at, UTC)
                return f"by {change.who} at {at:%Y-%m-%d %H:%M} UTC" if same else "by formgrader"
        return "by formgrader"

    def _entry_of_change(
        self, who: Identity, course: str, name: str, body: ManualPointsIn, entry: GradebookEntry
    ) -> AuditEntry:
        points, comment = _given(body)
        return self.access.audit_entry(
            *(who, AuditAction.POINTS_SET, f"{course}/{name}"),
            before={"points": entry.given, "comment": _digest(entry.comment)},
            after={"of": _thing(body), "points": points, "comment": _digest(comment)},
        )


def blind_numbers(course: str, assignment: str, people: Iterable[str]) -> Mapping[str, int]:
    """A number for each student, which stays the same and tells nothing about the name.

    It differs between assignments. Two students with the same hash get numbers next to each other.
    """
    taken: dict[int, str] = {}
    for person in sorted(people):
        text = f"{course}\n{assignment}\n{person}".encode()
        number = int.from_bytes(sha256(text).digest()[:8], "big") % _NUMBERS
        while number in taken:
            number = (number + 1) % _NUMBERS
        taken[number] = person
    return {person: number + _LEAST_NUMBER for number, person in taken.items()}


def numbers_of(course: str, assignment: str, grades: Iterable[GradeOut]) -> Mapping[str, int]:
    """The number of each student who has been graded."""
    return blind_numbers(course, assignment, [each.person for each in grades if each.graded])


def _given(body: ManualPointsIn) -> tuple[float | None, str]:
    return body.points, _lines(body.comment).strip()


def _lines(text: str) -> str:
    """The text with the line ends that browsers change."""
    return text.replace("\r\n", "\n")


def _thing(body: ManualPointsIn) -> str:
    return f"{body.person} {body.notebook}/{body.cell}"


def _digest(comment: str) -> str:
    """What the audit log has of a comment: it says that two differ, not what they say."""
    return sha256(comment.encode()).hexdigest()[:12] if comment else ""


def _cell(grade: GradeOut, body: ManualPointsIn) -> CellScoreOut:
    for cell in grade.cells:
        if (cell.notebook, cell.cell) == (body.notebook, body.cell):
            return cell
    if not grade.graded:
        raise Conflict(
            f"Submission {grade.number} has not been graded.",
            accepted="Grade it first; then give points.",
        )
    raise _no_cell(body.cell)


def _no_cell(cell: str) -> NotFound:
    return NotFound(f"The submission has no graded cell {cell[:80]!r}.")


def _check_points(points: float | None, cell: CellScoreOut) -> None:
    if points is None or (isfinite(points) and 0 <= points <= cell.max_score):
        return
    raise InvalidInput(
        f"{cell.cell} has 0 to {cell.max_score:g} points, not {points:g}.",
        accepted="Points in this range; extra credit is given in formgrader.",
        field="points",
    )
