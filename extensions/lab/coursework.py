"""Fetch, check and hand in assignments from JupyterLab, with the user's folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from ...courses.workspace.folder import (
    FetchRecord,
    FolderContent,
    fetch_into,
    fetch_record_of,
    files_to_submit,
)
from ...hub.client.work_archive import safe_target
from ...hub.errors import InvalidInput
from ...hub.schemas import In, Out
from ...hub.schemas.checks import CheckOut
from ...hub.schemas.courses import AssignmentOut, ReceiptOut, SubmitIn
from ...hub.schemas.coursework.official_checks import OfficialCheckOut, OfficialChecksOut
from .session_place import NOTEBOOK, NothingIn, PathIn, SessionPlace

_STUDENT = "student"

Name = Annotated[str, Field(min_length=1, max_length=64)]


class AssignmentIn(In):
    """An assignment of a course."""

    course: Name
    assignment: Name


class FetchIn(AssignmentIn):
    """``missing``: fetch only if it is not here, so that work is not merged unasked."""

    missing: bool = False


class HandInIn(PathIn):
    """``incomplete``: also without a released notebook."""

    incomplete: bool = False


class PanelAssignmentOut(Out):
    """An assignment of a student; ``folder`` is where its files are here, empty if nowhere.

    ``official`` is null without files here; of its checks, only the newest is in it.
    """

    course: str
    name: str
    due: float | None
    state: str
    sentence: str
    points: str
    newer: bool
    folder: str
    receipt: ReceiptOut | None
    official: OfficialChecksOut | None


class CoursesSummaryOut(Out):
    """``teaches`` are the courses in which the user is a teacher or grader."""

    assignments: list[PanelAssignmentOut]
    teaches: list[str]


class FetchedOut(Out):
    """The folder of an assignment; ``notebook`` is its first one, empty without notebooks."""

    folder: str
    notebook: str
    notes: list[str]


class FolderAssignmentOut(Out):
    """The assignment to whose folder a document belongs, and the folder; empty for none."""

    course: str = ""
    assignment: str = ""
    folder: str = ""


class LastCheckOut(Out):
    """The newest check of the last day, if there is one."""

    check: CheckOut | None = None


class HandedInReceiptOut(Out):
    """The receipt, and the names of files that are not regular and were left out."""

    receipt: ReceiptOut
    left_out: list[str]


def overview(place: SessionPlace, _body: NothingIn) -> CoursesSummaryOut:
    """Return the assignments of all courses that the user takes, the earliest due date first."""
    client = place.client
    courses = [each for each in client.courses() if each.archived_at is None]
    found = [
        _panel_assignment(place, each)
        for course in courses
        if course.role == _STUDENT
        for each in client.assignments(course.name)
    ]
    never = float("inf")
    found.sort(key=lambda it: (it.state == "closed", it.due or never, it.course, it.name))
    taught = [course.name for course in courses if course.role != _STUDENT]
    return CoursesSummaryOut(assignments=found, teaches=taught)


def assignment_of(place: SessionPlace, body: PathIn) -> FolderAssignmentOut:
    """Return the assignment to whose folder a document belongs."""
    found = _fetched_above(place, body.path)
    if found is None:
        return FolderAssignmentOut()
    folder, record = found
    return FolderAssignmentOut(
        course=record.course, assignment=record.assignment, folder=place.named(folder)
    )


def fetch(place: SessionPlace, body: FetchIn) -> FetchedOut:
    """Fetch an assignment, or merge a newer version into the work; nothing is overwritten.

    Raises:
        InvalidInput: its folder cannot be written.
        NotFound: it is not released.
    """
    course, assignment, client = body.course, body.assignment, place.client
    folder, record = _folder_of(place, course, assignment)
    notes: tuple[str, ...] = ()
    if record is None or not body.missing:
        _, notes = fetch_into(
            folder, lambda version: client.fetch_assignment(course, assignment, version=version)
        )
    # A numbered copy, as of a job's output, comes after its original.
    first = min(folder.glob(f"*{NOTEBOOK}"), key=lambda each: each.stem, default=None)
    notebook = place.named(first) if first is not None else ""
    return FetchedOut(folder=place.named(folder), notebook=notebook, notes=list(notes))


def check(place: SessionPlace, body: PathIn) -> CheckOut:
    """Start the visible tests on the saved files of the assignment to which a document belongs."""
    record, content = _work(place, body.path)
    return place.client.check(record.course, record.assignment, SubmitIn(files=content.sent))


def official_check(place: SessionPlace, body: PathIn) -> OfficialCheckOut:
    """Run the hidden tests, too, on the saved files of the assignment of a document.

    Raises:
        Forbidden: the teacher does not allow it.
        Conflict: no run is left today, or it was due.
    """
    record, content = _work(place, body.path)
    sent = SubmitIn(files=content.sent)
    return place.client.official_check(record.course, record.assignment, sent)


def official_checks(place: SessionPlace, body: AssignmentIn) -> OfficialChecksOut:
    """Return how many official checks are left today, and the newest one."""
    found = place.client.official_checks(body.course, body.assignment)
    return found.model_copy(update={"checks": found.checks[:1]})


def last_check(place: SessionPlace, body: AssignmentIn) -> LastCheckOut:
    """Return the newest check of an assignment."""
    found = place.client.checks(body.course, body.assignment)
    return LastCheckOut(check=found[0] if found else None)


def hand_in(place: SessionPlace, body: HandInIn) -> HandedInReceiptOut:
    """Submit the saved files of the assignment to which a document belongs.

    Raises:
        Conflict: with the field ``incomplete``, if a released notebook is missing.
    """
    record, content = _work(place, body.path)
    sent = SubmitIn(files=content.sent, version=record.version, incomplete=body.incomplete)
    receipt = place.client.submit_assignment(record.course, record.assignment, sent)
    return HandedInReceiptOut(receipt=receipt, left_out=list(content.left_out))


def _work(place: SessionPlace, path: str) -> tuple[FetchRecord, FolderContent]:
    """Return the assignment to which a document belongs, and the files in its folder.

    Raises:
        InvalidInput: it belongs to none, or the folder has no files.
    """
    found = _fetched_above(place, path)
    if found is None:
        raise InvalidInput(
            f"{path or 'This folder'} is not in the folder of an assignment.",
            accepted="Fetch an assignment in the Carrel panel, and open a notebook of it.",
        )
    folder, record = found
    content = files_to_submit(folder)
    if not content.files:
        raise InvalidInput(
            f"There are no files in {place.named(folder)}.", accepted="Save your work there."
        )
    return record, content


def _fetched_above(place: SessionPlace, path: str) -> tuple[Path, FetchRecord] | None:
    """Return the innermost fetched folder around a path, with its record."""
    start = place.inside(path)
    if start is None:
        return None
    for folder in (start, *start.parents):
        if folder == place.root:
            break
        record = fetch_record_of(folder)
        if record is not None:
            return folder, record
    return None


def _folder_of(
    place: SessionPlace, course: str, assignment: str
) -> tuple[Path, FetchRecord | None]:
    """Return ./ASSIGNMENT, or ./COURSE/ASSIGNMENT where that is another course's; its record."""
    simple = safe_target(place.root, assignment)
    record = fetch_record_of(simple)
    if record is None or record.course == course:
        return simple, record
    folder = safe_target(place.root, f"{course}/{assignment}")
    return folder, fetch_record_of(folder)


def _panel_assignment(place: SessionPlace, assignment: AssignmentOut) -> PanelAssignmentOut:
    folder, record = _folder_of(place, assignment.course, assignment.name)
    known = AssignmentIn(course=assignment.course, assignment=assignment.name)
    graded = assignment.score is not None and assignment.max_score is not None
    return PanelAssignmentOut(
        course=assignment.course,
        name=assignment.name,
        due=assignment.due,
        state=assignment.state,
        sentence=assignment.now,
        points=f"{assignment.score:g} of {assignment.max_score:g} points" if graded else "",
        newer=record is not None and record.version < assignment.version,
        folder=place.named(folder) if record is not None else "",
        receipt=assignment.receipts[-1] if assignment.receipts else None,
        official=official_checks(place, known) if record is not None else None,
    )
