"""``carrel course grade``, ``grades``, ``feedback`` and ``gradebook``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from ....courses.deadlines import rules as deadline_rules
from ....courses.gradebook.csv_export import csv_text, gradebook_csv, total
from ....courses.workspace import folder as workspace_folder
from ...client import Client
from ...errors import InvalidInput
from ...messages import units
from ...schemas.grading import GradebookScoreOut, GradeIn, GradeOut, GradingOut
from ..common import display
from ..common.client_command import ClientCommand, json_option, site_option
from ..common.notes import note
from ..common.terminal import plain
from .own_grades import own_grades
from .selection import assignment_argument, course_option, grading, in_question, working

_EVERY = 1.0


@click.command("grade", cls=ClientCommand)
@assignment_argument
@course_option
@click.option("--student", default="", metavar="NAME", help="Only the submission of this student.")
@click.option("--question", default="", metavar="ID", help="Only this cell, by its nbgrader ID.")
@click.option(
    "--by", "deadline", metavar="WHEN", help=f"Deadline of the run: {deadline_rules.DUE_HELP!r}."
)
@click.option("--watch", is_flag=True, help="Wait until it has ended.")
@json_option
@site_option
def grade_command(
    *,
    assignment: str,
    course: str,
    student: str,
    question: str,
    deadline: str | None,
    watch: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Grade the submissions, on the pool (teachers and graders).

    Grades the submission of each student that counts, each in its own sandbox. Repeating it
    returns the open run; after an interruption it continues. Manual scores from nbgrader's
    formgrader are kept.

    \b
    Examples:
      carrel course grade ps1 --watch
      carrel course grade ps1 --question squares
    """
    body = GradeIn(
        person=student,
        question=question,
        deadline=deadline_rules.read_due(deadline)[0] if deadline else None,
    )
    with Client.from_environment(site) as client:
        name = grading(client, course, assignment)
        run = client.grade(name, assignment, body)
        if not as_json:
            click.echo(f"Grading {assignment} of {name}: {_progress(run)}")
        if watch:
            for found in _until_done(client, name, assignment, run.request):
                run = found
                if not as_json:
                    click.echo(_progress(run))
    if as_json:
        display.as_json(run)
    if watch and run.state != "succeeded":
        note(f"See: carrel show {run.request}")
        sys.exit(1)


def _until_done(client: Client, course: str, assignment: str, request: str) -> Iterator[GradingOut]:
    """Yield changes until this run has ended or another one has begun."""
    before: tuple[int, str] | None = None
    while True:
        run = client.grades(course, assignment).run
        if run is None or run.request != request:
            return
        if (run.done, run.state) != before:
            yield run
        if run.ended:
            return
        before = run.done, run.state
        time.sleep(_EVERY)


def _progress(run: GradingOut) -> str:
    progress = f"{run.done} of {units.count(run.total, 'submission')}, {run.state} ({run.request})"
    if run.least_seconds_left is None or run.most_seconds_left is None:
        return f"{progress}."
    return f"{progress}, {units.remaining(run.least_seconds_left, run.most_seconds_left)}."


@click.command("grades", cls=ClientCommand)
@click.argument("assignment", required=False)
@course_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with a column for each cell.")
@json_option
@site_option
def grades_command(
    *, assignment: str | None, course: str, as_csv: bool, as_json: bool, site: str | None
) -> None:
    """List the points in an assignment: your own, or of all students (teachers and graders).

    Students see their own points after feedback is released; without an assignment, for all
    assignments.

    \b
    Examples:
      carrel course grades ps1
      carrel course grades ps1 --csv > ps1.csv
    """
    with Client.from_environment(site) as client:
        place = in_question(client, course, assignment or "")
        if place.role == "student":
            own_grades(client, place.name, assignment, as_json=as_json)
            return
        if assignment is None:
            raise InvalidInput(
                "The assignment is missing.", accepted="Such as: carrel course grades ps1."
            )
        found = client.grades(place.name, assignment)
    if as_json:
        display.as_json(found)
    elif as_csv:
        click.echo(csv_text(found), nl=False)
    elif not (found.grades or found.no_submission):
        click.echo(f"No submission for {assignment} counts.")
    else:
        header = ["STUDENT", "NUMBER", "SCORE", "OF", "LATE", "TO REVIEW", "CELLS"]
        absent = ([each.person, *[""] * 5, "no submission counts"] for each in found.no_submission)
        rows = sorted([*map(_row, found.grades), *absent])
        display.table(header, rows, right="NUMBER,SCORE,OF,LATE")


def _row(grade: GradeOut) -> list[str]:
    cells = ", ".join(f"{cell.cell}: {cell.word}" for cell in grade.cells)
    points = (f"{grade.score:g}", f"{grade.max_score:g}") if grade.graded else ("", "")
    return [
        *(grade.person, str(grade.number), *points),
        f"-{grade.penalty * 100:g} %" if grade.penalty else "",
        "yes" if grade.review else "",
        plain(grade.why_not or cells),
    ]


@click.command("feedback", cls=ClientCommand)
@assignment_argument
@course_option
@click.option("--release", is_flag=True, help="Release feedback to all graded students (teachers).")
@click.option("--student", default="", metavar="NAME", help="With --release: only to this student.")
@click.option(
    "--to",
    "target",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Target folder; default: ./feedback/ASSIGNMENT.",
)
@json_option
@site_option
def feedback_command(
    *,
    assignment: str,
    course: str,
    release: bool,
    student: str,
    target: Path | None,
    as_json: bool,
    site: str | None,
) -> None:
    """Fetch your feedback on an assignment, or release it to the class.

    Feedback is a page for each notebook, with points, comments and a sentence for each test. A
    later release, as after manual grading, replaces it.

    \b
    Examples:
      carrel course feedback ps1
      carrel course feedback ps1 --release
    """
    with Client.from_environment(site) as client:
        if release:
            name = grading(client, course, assignment)
            released, left_out = _release(client, name, assignment, student)
            if as_json:
                display.as_json({"released": released, "left_out": left_out})
                return
            for person, why in left_out.items():
                note(f"No feedback for {person}: {plain(why)}")
            for sentence in released.values():
                click.echo(plain(sentence))
            return
        files = _fetch(
            client,
            working(client, course, assignment),
            assignment,
            target or Path("feedback", assignment),
        )
    if as_json:
        display.as_json({"files": files})
        return
    for file in files:
        click.echo(f"Wrote {plain(file)}.")
    if not files:
        click.echo(f"There is no feedback on {assignment} yet.")


def _release(
    client: Client, course: str, assignment: str, student: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Release the feedback of all graded students, or of one.

    Returns sentences by student, and the reasons for students without feedback.
    """
    released: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for each in client.grades(course, assignment).grades:
        if student and each.person != student:
            continue
        if not each.graded:
            left_out[each.person] = each.why_not
            continue
        done = client.release_feedback(course, assignment, each.person)
        released[each.person] = " ".join(done.sentences)
    return released, left_out


def _fetch(client: Client, course: str, assignment: str, folder: Path) -> list[str]:
    """Fetch the pages of the newest submission with feedback; existing pages are overwritten."""
    for receipt in reversed(client.receipts(course, assignment)):
        pages = workspace_folder.contents(client.feedback(receipt.id).files)
        if not pages:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in pages.items():
            (folder / Path(name).name).write_bytes(content)
        return [str(folder / Path(name).name) for name in pages]
    return []


@click.command("gradebook", cls=ClientCommand)
@course_option
@click.option("--csv", "as_csv", is_flag=True, help="Write a table (CSV) for a spreadsheet.")
@json_option
@site_option
def gradebook_command(*, course: str, as_csv: bool, as_json: bool, site: str | None) -> None:
    """Show the points of all students in all assignments (teachers, graders).

    \b
    Example:
      carrel course gradebook --csv > cs101.csv
    """
    with Client.from_environment(site) as client:
        found = client.gradebook(in_question(client, course).name)
    if as_json:
        display.as_json(found)
        return
    if as_csv:
        click.echo(gradebook_csv(found), nl=False)
        return
    if not found.assignments:
        click.echo(f"No assignment of {found.course} is released yet.")
        return
    if not found.rows:
        click.echo(f"{found.course} has no students yet.")
        return
    rows = [
        [row.person, *(_points(each) for each in row.scores), f"{total(row):g}"]
        for row in found.rows
    ]
    display.table(["STUDENT", *(each.name for each in found.assignments), "TOTAL"], rows)


def _points(each: GradebookScoreOut) -> str:
    if each.score is None:
        return "not graded" if each.submitted else "-"
    return f"{each.score:g}{' ?' if each.provisional else ''}"


GRADING_COMMANDS = (grade_command, grades_command, feedback_command, gradebook_command)
