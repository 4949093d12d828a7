"""Print a student's own points for ``carrel course grades``."""

from __future__ import annotations

import click

from ...client import Client
from ...messages import units
from ...schemas.grading import CellScoreOut, GradeOut, MyGradeOut
from ..common import display
from ..common.terminal import plain


def own_grades(client: Client, course: str, assignment: str | None, *, as_json: bool) -> None:
    """Print the points of one assignment by cell, or of all assignments."""
    if assignment is None:
        _all(client, course, as_json=as_json)
        return
    found = client.my_grade(course, assignment)
    if as_json:
        display.as_json(found)
    else:
        _one(found)


def _all(client: Client, course: str, *, as_json: bool) -> None:
    found = client.assignments(course)
    if display.listed(found, empty=f"{course} has no assignment yet.", as_json=as_json):
        return
    rows = [
        [
            *(each.name, each.state, _points(each.score), _points(each.max_score)),
            units.provisional(each.provisional) if each.feedback else "no feedback yet",
        ]
        for each in found
    ]
    display.table(["ASSIGNMENT", "STATE", "SCORE", "OF", ""], rows, right="SCORE,OF")


def _one(found: MyGradeOut) -> None:
    grade = found.grade
    if grade is not None:
        late = f", {grade.penalty * 100:g}% late penalty" if grade.penalty else ""
        click.echo(
            f"{found.assignment} of {found.course}, submission {grade.number}: "
            f"{grade.score:g} of {grade.max_score:g} points{late}{_provisional(grade)}."
        )
        display.table(
            ["CELL", "RESULT", "SCORE", "OF", "WHY"], map(_row, grade.cells), right="SCORE,OF"
        )
        for note in grade.notes:
            click.echo(plain(note))
    if found.sentence:
        click.echo(found.sentence)
    if found.pages:
        click.echo(f"Pages with comments: carrel course feedback {found.assignment}")


def _provisional(grade: GradeOut) -> str:
    return f", {units.provisional(grade.provisional)}" if grade.provisional else ""


def _row(cell: CellScoreOut) -> list[str]:
    comment = " ".join(f"{cell.sentence} {cell.comment}".split())
    return [cell.cell, cell.word, _points(cell.score), _points(cell.max_score), comment]


def _points(score: float | None) -> str:
    return "" if score is None else f"{score:g}"
