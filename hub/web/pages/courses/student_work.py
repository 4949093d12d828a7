"""The work of one student in an assignment, for graders: results, receipts and files."""

from __future__ import annotations

import base64
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from .....courses.manual_grading.service import numbers_of
from .....courses.roster.access import GRADERS
from ....errors import NotFound
from ....schemas.names import USER_LENGTH
from ...dependencies import file_paths  # noqa: F401  # registers the convertor "file"
from ...dependencies.callers import Carrel
from ...dependencies.course_paths import AssignmentName, CourseName, SubmissionId
from ...dependencies.edit_versions import version_for
from ...dependencies.visitors import Follower, Guest, html
from ...html.cell_output import SANDBOXED
from ...html.downloads import SAFE_CONTENT, attachment
from ...html.urls import course_url

Person = Annotated[str, Path(max_length=USER_LENGTH)]
FileName = Annotated[str, Path(max_length=1000)]

router = APIRouter(
    include_in_schema=False, prefix="/course/{course}/grading/{assignment}/student/{person}"
)


@router.get("")
def student(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, person: Person
) -> Response:
    """Show the work of a student, also of one who left."""
    who, version = visitor.identity, version_for(web)
    web.courses.access.membership(who, course, GRADERS)
    found = web.courses.grading.grades(who, course, assignment)
    receipts = web.courses.submissions.receipts(who, course, assignment, person=person).receipts
    if not receipts:
        raise NotFound(f"{person} has not submitted {assignment}.")
    names = [grade.person for grade in found.grades]
    here = names.index(person) if person in names else None
    page = web.render_for(
        visitor,
        "courses/graded.html",
        version=version,
        found=found,
        place=web.courses.administration.show(who, course),
        person=person,
        grade=found.grades[here] if here is not None else None,
        manual=numbers_of(found.course, found.assignment, found.grades).get(person),
        receipts=receipts,
        before=names[here - 1] if here else "",
        after=names[here + 1] if here is not None and here + 1 < len(names) else "",
        address=course_url(course, "grading", assignment),
    )
    return html(page)


@router.get("/preview")
def preview(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, person: Person
) -> Response:
    """Preview the feedback, with a frame for every notebook."""
    who = visitor.identity
    found = web.courses.grading.grades(who, course, assignment)
    grade = next((each for each in found.grades if each.person == person), None)
    if grade is None or not grade.graded:
        raise NotFound(f"The work of {person} in {assignment} has not been graded yet.")
    page = web.render_for(
        visitor,
        "courses/graded_preview.html",
        found=found,
        place=web.courses.administration.show(who, course),
        grade=grade,
        notebooks=list(dict.fromkeys(cell.notebook for cell in grade.cells)),
        address=course_url(course, "grading", assignment),
    )
    return html(page)


@router.get("/preview/{name}/content")
def preview_content(
    *,
    web: Carrel,
    visitor: Follower,
    course: CourseName,
    assignment: AssignmentName,
    person: Person,
    name: FileName,
) -> Response:
    """Return one page of the preview, without scripts."""
    page = web.courses.feedback.preview(visitor.identity, course, assignment, person, name)
    return Response(page, media_type="text/html; charset=utf-8", headers=SANDBOXED)


@router.get("/file/{submission}/{name:file}")
def file(
    *,
    web: Carrel,
    visitor: Follower,
    course: CourseName,
    assignment: AssignmentName,
    person: Person,
    submission: SubmissionId,
    name: FileName,
) -> Response:
    """Download a file of a submission; it is never shown inline."""
    who = visitor.identity
    web.courses.access.membership(who, course, GRADERS)
    sent = web.courses.access.submission_of(who, course, assignment, submission)
    if sent.person != person:
        raise NotFound(f"{person} has no submission {submission}.")
    for each in web.courses.submissions.files(who, submission).files:
        if each.name == name:
            saved = {"Content-Disposition": attachment(name.rpartition("/")[2])}
            return Response(
                base64.b64decode(each.content),
                media_type="application/octet-stream",
                headers=SAFE_CONTENT | saved,
            )
    raise NotFound(f"This submission has no file {name[:80]!r}.")
