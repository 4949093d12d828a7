"""Write nbgrader's gradebook and folders, so that formgrader shows what Carrel graded.

Runs on the trusted side only, never in a sandbox.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, cast

from nbformat import NotebookNode
from nbgrader.api import (
    Comment,
    Grade,
    Gradebook,
    MissingEntry,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.preprocessors import SaveCells
from nbgrader.utils import compute_checksum
from sqlalchemy import text

from ...hub.errors import Conflict, InvalidInput, NotFound
from ...hub.files.filenames import draft_beside
from ..grading.submission_grader import NotebookResult, SubmissionResult
from ..notebooks import ipynb
from ..releases.student_version import Prepared
from .new_database import create_database
from .writer import GradebookSettings, ManualGrade

_STUDENT_ROWS = (SubmittedAssignment, SubmittedNotebook, Grade, Comment)
NO_RESPONSE = "No response."
"""nbgrader's comment on an unchanged answer."""
_PENALTY = """
update submitted_notebook set late_submission_penalty = nullif(
    (select part from carrel_late where notebook_id = submitted_notebook.id) *
    (select sum(coalesce(manual_score, auto_score, 0) + coalesce(extra_credit, 0))
     from grade where notebook_id = submitted_notebook.id), 0)
where id = {notebook} and id in (select notebook_id from carrel_late)
"""
_MANUAL_POINTS = """
update grade set manual_score = :points,
    needs_manual_grade = (:points is null and auto_score is null)
where id = :id and manual_score is :seen
"""
_MANUAL_COMMENT = """
update comment set manual_comment = nullif(:comment, '')
where id = :id and coalesce(manual_comment, '') = :seen
"""
_LATENESS = (
    """create table if not exists carrel_late (
        notebook_id varchar(32) primary key, part float not null)""",
    f"""create trigger if not exists carrel_late_follows
        after update of auto_score, manual_score, extra_credit on grade
        begin {_PENALTY.format(notebook="new.notebook_id")}; end""",
)
"""nbgrader stores the points that lateness costs, not the part. This table stores the part, and its
trigger updates the points when a person changes a score in formgrader."""


def create(settings: GradebookSettings) -> CourseGradebook:
    """Open a gradebook in this process; the entry point where sessions share this account."""
    return CourseGradebook(settings.folder, settings.course)


class _GradeRow(Protocol):
    """The used columns of nbgrader's grades."""

    name: str
    auto_score: float | None
    manual_score: float | None
    needs_manual_grade: bool
    score: float


class _CommentRow(Protocol):
    name: str
    auto_comment: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeLine:
    """The grade of one cell of one student.

    Attributes:
        score: a person's if given, else the automatic one; plus the extra credit.
    """

    student: str
    notebook: str
    grade_id: str
    score: float
    max_score: float
    needs_manual_grade: bool


class CourseGradebook:
    """The folder of one course in nbgrader's layout, with ``gradebook.db`` in it."""

    def __init__(self, folder: Path, course: str) -> None:
        self._folder = folder
        self._url = f"sqlite:///{folder / 'gradebook.db'}"
        folder.mkdir(parents=True, exist_ok=True)
        create_database(self._url)
        self._book = Gradebook(self._url, course)
        self._released: list[object] = []
        """Referenced, so that the session keeps them loaded."""
        for statement in _LATENESS:
            self._book.db.execute(text(statement))
        self._book.db.commit()
        # Else each commit would be followed by a query for every cell.
        self._book.db().expire_on_commit = False

    def close(self) -> None:
        self._book.close()

    def save_release(self, prepared: Prepared, *, due: datetime | None) -> None:
        """Record the cells and their points, and write ``release/``.

        Raises:
            Conflict: graded cells have changed, and submissions have been graded.
        """
        name = prepared.key.assignment
        duedate = None if due is None else due.astimezone(UTC).replace(tzinfo=None)
        self._book.update_or_create_assignment(name, duedate=duedate)
        for notebook, master in prepared.masters.items():
            role = {"notebook": notebook, "assignment": name, "db_url": self._url}
            try:
                SaveCells().preprocess(master, {"nbgrader": role})
            except RuntimeError as error:
                raise Conflict(
                    f"{notebook}.ipynb has other graded cells than before, and some submissions "
                    "were graded already.",
                    accepted="Keep the ids and roles of the cells, or create a new assignment.",
                ) from error
        self._book.db.expire_all()
        for each in self._book.find_assignment(name).notebooks:
            kinds = each.grade_cells, each.solution_cells, each.task_cells, each.source_cells
            self._released += [cell for cells in kinds for cell in cells]
        write_files(self._folder / "release" / name, prepared.files)

    def record(
        self,
        assignment: str,
        result: SubmissionResult,
        *,
        files: Mapping[str, bytes] | None = None,
        submitted_at: datetime | None = None,
        late_penalty: float = 0.0,
    ) -> None:
        """Store a result where ``nbgrader autograde`` stores it. Safe to repeat.

        ``late_penalty`` is the part of the points that lateness costs. A person's score is kept,
        and is marked for review.
        """
        when = None if submitted_at is None else submitted_at.astimezone(UTC).replace(tzinfo=None)
        self._book.update_or_create_student(result.student)
        try:
            submission = self._book.update_or_create_submission(
                assignment, result.student, timestamp=when
            )
        except MissingEntry as error:
            raise NotFound(f"The gradebook has no assignment {assignment!r}.") from error
        rows = {notebook.name: notebook for notebook in submission.notebooks}
        for notebook in result.notebooks:
            row = rows[notebook.name]
            _set_grades(notebook, row.grades)
            if notebook.node is not None:
                _set_comments(notebook.node, row.comments)
        self._book.db.flush()
        for notebook in submission.notebooks:
            self._set_lateness(notebook.id, late_penalty)
        self._commit()
        self._write(assignment, result, files or {}, when)

    def set_manual(self, grade: ManualGrade) -> None:
        """Store a person's points and comment as formgrader does. Safe to repeat.

        Raises:
            Conflict: the cell has other points or another comment than ``grade`` replaces.
            NotFound: there is no such cell in the student's submission.
            InvalidInput: nbgrader stores no comment on this cell.
        """
        try:
            row = self._book.find_grade(
                *(grade.cell, grade.notebook, grade.assignment, grade.student)
            )
        except MissingEntry as error:
            raise NotFound(f"The submission has no graded cell {grade.cell!r}.") from error
        # The cell that has the comment is another row than the one that has the points.
        comments = [each.id for each in row.notebook.comments if each.name == grade.cell]
        if grade.comment and not comments:
            raise InvalidInput(
                f"nbgrader stores no comment on {grade.cell}.",
                accepted="Comments on the cells that a person grades.",
            )
        points = {"id": row.id, "points": grade.points, "seen": grade.seen_points}
        self._book.db.rollback()
        try:
            self._update(_MANUAL_POINTS, points)
            for comment in comments:
                said = {"id": comment, "comment": grade.comment, "seen": grade.seen_comment}
                self._update(_MANUAL_COMMENT, said)
        except BaseException:
            self._book.db.rollback()
            raise
        self._commit()

    def _update(self, statement: str, given: Mapping[str, object]) -> None:
        """Change the one row that is still as it was seen. Raises Conflict."""
        if self._book.db.execute(text(statement), given).rowcount != 1:
            raise Conflict("The points or the comment have changed meanwhile.")

    def _commit(self) -> None:
        """Commit; rows that people can change are read again later."""
        self._book.db.commit()
        for row in list(self._book.db):
            if isinstance(row, _STUDENT_ROWS):
                self._book.db.expire(row)

    def _set_lateness(self, notebook: str, part: float) -> None:
        given = {"notebook": notebook, "part": part}
        self._book.db.execute(
            text("insert or replace into carrel_late values (:notebook, :part)"), given
        )
        self._book.db.execute(text(_PENALTY.format(notebook=":notebook")), given)

    def lines(self, assignment: str) -> list[GradeLine]:
        """All grades of the assignment, by student, notebook and cell."""
        found = []
        for submission in self._book.assignment_submissions(assignment):
            for notebook in submission.notebooks:
                for grade in notebook.grades:
                    found.append(
                        GradeLine(
                            student=submission.student.id,
                            notebook=notebook.name,
                            grade_id=grade.name,
                            score=float(grade.score),
                            max_score=float(grade.max_score),
                            needs_manual_grade=bool(grade.needs_manual_grade),
                        )
                    )
        return sorted(found, key=lambda line: (line.student, line.notebook, line.grade_id))

    def _write(
        self,
        assignment: str,
        result: SubmissionResult,
        files: Mapping[str, bytes],
        when: datetime | None,
    ) -> None:
        stamp = {} if when is None else {"timestamp.txt": f"{when:%Y-%m-%d %H:%M:%S} UTC".encode()}
        path = Path(result.student) / assignment
        # formgrader counts the folders there.
        write_files(self._folder / "submitted" / path, {**files, **stamp})
        written = {name: data for name, data in files.items() if not name.endswith(".ipynb")}
        for notebook in result.notebooks:
            if notebook.node is not None:
                written[f"{notebook.name}.ipynb"] = ipynb.written(notebook.node)
        write_files(self._folder / "autograded" / path, {**written, **stamp})


def _set_grades(notebook: NotebookResult, grades: Iterable[object]) -> None:
    """Store scores as nbgrader's SaveAutoGrades does: a person's score is kept."""
    found = {verdict.grade_id: verdict for verdict in notebook.verdicts}
    for grade in cast("Iterable[_GradeRow]", grades):
        verdict = found.get(grade.name)
        if verdict is None:
            continue
        grade.auto_score = verdict.score
        reviewed = grade.manual_score is not None
        grade.needs_manual_grade = reviewed or verdict.score is None or verdict.review


def _set_comments(node: NotebookNode, comments: Iterable[object]) -> None:
    cells = {
        cell.metadata["nbgrader"]["grade_id"]: cell
        for cell in node.cells
        if cell.metadata.get("nbgrader", {}).get("grade_id")
    }
    for comment in cast("Iterable[_CommentRow]", comments):
        cell = cells.get(comment.name)
        if cell is not None:
            role = cell.metadata["nbgrader"]
            untouched = role["checksum"] == compute_checksum(cell) and not role["task"]
            comment.auto_comment = NO_RESPONSE if untouched else None


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into the folder, in path of those with the same names.

    Raises:
        InvalidInput: a name leads out of the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    home = folder.resolve()
    for name, data in files.items():
        # The last component is replaced, so that a link there is not followed.
        above, last = (home / name).parent.resolve(), Path(name).name
        if not above.is_relative_to(home) or last in {"", ".."}:
            raise InvalidInput(f"The file name {name[:80]!r} leads out of its folder.")
        above.mkdir(parents=True, exist_ok=True)
        part = draft_beside(above / last)
        part.write_bytes(data)
        part.replace(above / last)
