"""The class on the grading page: students, their states, and the results of all cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ....schemas.courses import MemberOut, ReceiptOut
from ....schemas.grading import CellScoreOut, GradeOut, GradesOut, GradingOut


class StudentProgress(StrEnum):
    """The state of a student's work, for a teacher."""

    LOOK = "to review"
    FAILED = "not gradable"
    WAITS = "not graded yet"
    GRADED = "graded"
    LATE = "too late to count"
    NOTHING = "not submitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentRow:
    """The row of one student.

    Attributes:
        grade: grade of the submission that counts; None if there is none.
        late: the newest submission that was too late, if none counts.
        cells: results in the order of the questions; None where there is no result.
    """

    person: str
    full_name: str
    section: str
    standing: StudentProgress
    grade: GradeOut | None
    late: ReceiptOut | None
    cells: tuple[CellScoreOut | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChoice:
    """Filter of the students; empty fields match all."""

    text: str = ""
    section: str = ""
    standing: str = ""

    def matches(self, row: StudentRow) -> bool:
        wanted = self.text.casefold()
        return (
            wanted in f"{row.person} {row.full_name}".casefold()
            and self.section in ("", row.section)
            and self.standing in ("", row.standing)
        )


def rows_of(
    found: GradesOut, members: Iterable[MemberOut], receipts: Iterable[ReceiptOut]
) -> list[StudentRow]:
    """Return the class and other people with submissions, ordered by name."""
    grades = {grade.person: grade for grade in found.grades}
    newest = {receipt.person: receipt for receipt in receipts}
    students = {
        each.person: each for each in members if each.role == "student" and each.left_at is None
    }
    left = {each.person for each in members if each.left_at is not None}
    return [
        _row(name, found.questions, grades.get(name), newest.get(name), students.get(name))
        for name in sorted({*students, *newest} - left)
    ]


def _row(
    name: str,
    questions: Sequence[str],
    grade: GradeOut | None,
    newest: ReceiptOut | None,
    member: MemberOut | None,
) -> StudentRow:
    by_id = {cell.cell: cell for cell in grade.cells} if grade else {}
    return StudentRow(
        person=name,
        full_name=member.full_name if member else "",
        section=member.section if member else "",
        standing=_standing(grade, newest),
        grade=grade,
        late=newest if grade is None else None,
        cells=tuple(by_id.get(question) for question in questions),
    )


def _standing(grade: GradeOut | None, newest: ReceiptOut | None) -> StudentProgress:
    if grade is None:
        return StudentProgress.NOTHING if newest is None else StudentProgress.LATE
    if grade.graded_at is None:
        return StudentProgress.WAITS
    if grade.why_not:
        return StudentProgress.FAILED
    return StudentProgress.LOOK if grade.review else StudentProgress.GRADED


def counted(rows: Iterable[StudentRow]) -> list[tuple[str, int]]:
    """Count the students by state, in the order of the tabs."""
    found = Counter(row.standing for row in rows)
    return [(str(standing), found[standing]) for standing in StudentProgress if found[standing]]


def interrupted(run: GradingOut) -> str:
    """Return why a run ended early, and what to do; empty if it did not."""
    if not run.ended or run.state == "succeeded":
        return ""
    left = run.total - run.done
    advice = f"Grade again to continue with the other {left}." if left else "All are graded."
    return f"{run.cause or 'It was interrupted.'} {advice}"


def due_feedback(found: GradesOut, since: float | None) -> list[str]:
    """Return the graded students without newer feedback than their grade, or than ``since``."""
    return [
        grade.person
        for grade in found.grades
        if grade.graded_at is not None
        and not grade.why_not
        and (grade.feedback_at or 0.0) < (grade.graded_at if since is None else since)
    ]
