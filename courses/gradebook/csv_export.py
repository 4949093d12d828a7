"""Export the grades of a class as a table (CSV)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from ...hub.messages.units import harmless
from ...hub.schemas.courses import MemberOut
from ...hub.schemas.grading import CourseGradebookOut, GradebookRowOut, GradeOut, GradesOut

_Row = tuple[str | float | None, ...]


def csv_text(found: GradesOut) -> str:
    """One row for each student and one column for each cell, named as in nbgrader.

    Points that do not exist yet are empty: a spreadsheet would count zeros.
    """
    cells = list(dict.fromkeys((c.notebook, c.cell) for each in found.grades for c in each.cells))
    named = [f"{notebook}/{cell}" for notebook, cell in cells]
    # csv writes None as an empty cell.
    rows: list[_Row] = [
        (*_identity(absent), *[None] * (3 + len(cells))) for absent in found.no_submission
    ]
    rows += [_graded_row(each, cells) for each in found.grades]
    rows.sort(key=lambda row: str(row[0]))
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["student", "name", "section", "score", "max_score", "late_penalty", *named])
    out.writerows(rows)
    return text.getvalue()


def gradebook_csv(found: CourseGradebookOut) -> str:
    """One row for each student and one column for each assignment, with the sum at the end."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    most = sum(each.max_score or 0.0 for each in found.assignments)
    names = [harmless(each.name) for each in found.assignments]
    out.writerow(["student", "name", "section", *names, "total", "max_total"])
    for row in found.rows:
        scores = [each.score for each in row.scores]
        out.writerow([*_identity(row), *scores, total(row), most])
    return text.getvalue()


def total(row: GradebookRowOut) -> float:
    """The sum of a student's points; assignments without points count as none."""
    return sum(each.score or 0.0 for each in row.scores)


def _graded_row(grade: GradeOut, cells: Iterable[tuple[str, str]]) -> _Row:
    scores = {(cell.notebook, cell.cell): cell.score for cell in grade.cells}
    points = (grade.score, grade.max_score) if grade.graded else (None, None)
    return (*_identity(grade), *points, grade.penalty, *(scores.get(cell) for cell in cells))


def _identity(student: GradeOut | GradebookRowOut | MemberOut) -> tuple[str, str, str]:
    return (
        harmless(student.person),
        harmless(student.full_name),
        harmless(student.section),
    )
