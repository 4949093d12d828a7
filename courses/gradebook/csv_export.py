"""Export the grades of a class as a table (CSV)."""

from __future__ import annotations

from collections.abc import Iterable

from ...hub.files.csv_table import Cell, csv_of
from ...hub.schemas.courses import MemberOut
from ...hub.schemas.grading import CourseGradebookOut, GradebookRowOut, GradeOut, GradesOut

_Row = tuple[Cell, ...]


def csv_text(found: GradesOut) -> str:
    """One row for each student and one column for each cell, named as in nbgrader.

    Points that do not exist yet are empty: a spreadsheet would count zeros.
    """
    cells = list(dict.fromkeys((c.notebook, c.cell) for each in found.grades for c in each.cells))
    named = [f"{notebook}/{cell}" for notebook, cell in cells]
    rows: list[_Row] = [
        (*_identity(absent), *[None] * (3 + len(cells))) for absent in found.no_submission
    ]
    rows += [_graded_row(each, cells) for each in found.grades]
    rows.sort(key=lambda row: str(row[0]))
    heading = ("student", "name", "section", "score", "max_score", "late_penalty", *named)
    return csv_of([heading, *rows])


def gradebook_csv(found: CourseGradebookOut) -> str:
    """One row for each student and one column for each assignment, with the sum at the end."""
    most = max_total(found)
    names = [each.name for each in found.assignments]
    rows: list[_Row] = [("student", "name", "section", *names, "total", "max_total")]
    rows += [
        (*_identity(row), *(each.score for each in row.scores), total(row), most)
        for row in found.rows
    ]
    return csv_of(rows)


def max_total(found: CourseGradebookOut) -> float:
    """The most points that a student can have in all assignments that have been graded."""
    return sum(each.max_score or 0.0 for each in found.assignments)


def total(row: GradebookRowOut) -> float:
    """The sum of a student's points; assignments without points count as none."""
    return sum(each.score or 0.0 for each in row.scores)


def _graded_row(grade: GradeOut, cells: Iterable[tuple[str, str]]) -> _Row:
    scores = {(cell.notebook, cell.cell): cell.score for cell in grade.cells}
    points = (grade.score, grade.max_score) if grade.graded else (None, None)
    return (*_identity(grade), *points, grade.penalty, *(scores.get(cell) for cell in cells))


def _identity(student: GradeOut | GradebookRowOut | MemberOut) -> tuple[str, str, str]:
    return student.person, student.full_name, student.section
