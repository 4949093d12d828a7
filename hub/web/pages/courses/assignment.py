"""The page of an assignment for students: fetch, check, submit, and see points."""

from __future__ import annotations

import base64
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ....errors import CarrelError, NotFound
from ....schemas.courses import AssignmentOut, SubmitIn
from ...dependencies import file_paths  # noqa: F401  # registers the convertor "file"
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.course_paths import AssignmentName, CourseName, SubmissionId
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.uploads import Uploads
from ...dependencies.visitors import Follower, Guest, html
from ...html.cell_output import SANDBOXED
from ...html.downloads import saved_json, zipped
from ...html.frame_style import theme_of
from ...html.notebook import notebook_page
from ...html.urls import course_url
from ...security.access import Visitor

PageName = Annotated[str, Path(max_length=512)]

router = APIRouter(include_in_schema=False, prefix="/course/{course}/assignment/{assignment}")


@router.get("")
def show(web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName) -> Response:
    """Show the assignment."""
    return _page(web, visitor, course, assignment)


@router.get("/live")
def show_live(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName
) -> Response:
    """Render the first live part: the state."""
    return html(
        web.render("courses/assignment_stand.html", **_stand(web, visitor, course, assignment))
    )


@router.get("/live/work")
def work_live(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName
) -> Response:
    """Render the second live part: checks and submissions."""
    work = {
        "course": web.courses.administration.show(visitor.identity, course),
        "mine": _mine(web, visitor, course, assignment),
        "checks": web.courses.checks.recent(visitor.identity, course, assignment).checks,
        "official": web.courses.official_checks.mine(visitor.identity, course, assignment),
        "address": course_url(course, "assignment", assignment),
    }
    return html(web.render("courses/assignment_work.html", **work))


@router.get("/hand-out")
def hand_out(
    web: Carrel, visitor: Follower, course: CourseName, assignment: AssignmentName
) -> Response:
    """Download the newest version as a .zip, in a folder with the name of the assignment."""
    made = web.courses.assignments.fetch(visitor.identity, course, assignment)
    return zipped(assignment, assignment, made.files)


@router.get("/text/{name:file}")
def text(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, name: PageName
) -> Response:
    """Show a notebook of the newest version in a frame; it does not count as fetched."""
    names = web.courses.assignments.texts(visitor.identity, course, assignment)
    if name not in names:
        raise NotFound(f"{assignment} has no notebook {name[:80]!r}.")
    page = web.render_for(
        visitor,
        "courses/assignment_text.html",
        course=course,
        assignment=assignment,
        name=name,
        names=names,
        address=course_url(course, "assignment", assignment),
    )
    return html(page)


@router.get("/content/{name:file}")
def text_content(
    *,
    request: Request,
    web: Carrel,
    visitor: Follower,
    course: CourseName,
    assignment: AssignmentName,
    name: PageName,
) -> Response:
    """Return a notebook of the newest version, without scripts."""
    content = web.courses.assignments.text(visitor.identity, course, assignment, name)
    page = notebook_page(name, content, theme_of(request))
    return Response(page, media_type="text/html; charset=utf-8", headers=SANDBOXED)


@router.get("/submission/{submission}")
def submission(
    web: Carrel,
    visitor: Follower,
    course: CourseName,
    assignment: AssignmentName,
    submission: SubmissionId,
) -> Response:
    """Download a submission of one's own as a .zip."""
    web.courses.access.submission_of(visitor.identity, course, assignment, submission)
    found = web.courses.submissions.files(visitor.identity, submission)
    return zipped(f"{assignment}-submission-{found.number}", found.assignment, found.files)


@router.get("/proof")
def proof(
    web: Carrel, visitor: Follower, course: CourseName, assignment: AssignmentName
) -> Response:
    """Download the proof of one's own submissions and their released feedback."""
    found = web.proofs().prove_coursework(visitor.identity, course, assignment)
    return saved_json(f"{assignment}.proof.json", found.model_dump_json(indent=1))


@router.get("/official-check/{check}/receipt")
def official_receipt(
    web: Carrel, visitor: Follower, course: CourseName, assignment: AssignmentName, check: str
) -> Response:
    """Download the receipt of one's own official check, for ``carrel verify``."""
    for found in web.courses.official_checks.mine(visitor.identity, course, assignment).checks:
        if found.id == check and found.receipt:
            return saved_json(f"{assignment}.check.json", found.receipt)
    raise NotFound(f"There is no receipt of a check {check[:64]!r} of yours.")


@router.post("/submit")
def submit(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, sent: Uploads
) -> Response:
    """Submit all files or none, and show the receipt or the error on the page."""
    try:
        mine = _mine(web, visitor, course, assignment)
        body = SubmitIn(
            files=sent.folder("files"),
            version=mine.fetched_version,
            incomplete=sent.fields.get("incomplete") == "yes",
        )
        receipt = web.courses.submissions.submit(visitor.identity, course, assignment, body)
    except CarrelError as error:
        return _page(web, visitor, course, assignment, error=error, tried="submit")
    page = course_url(course, "assignment", assignment)
    return RedirectResponse(f"{page}#receipt-{receipt.number}", SEE_OTHER)


@router.post("/check")
def check(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, sent: Uploads
) -> Response:
    """Check the uploaded files, or the latest submission."""
    try:
        body = SubmitIn(files=sent.folder("files"))
        web.courses.checks.start(visitor.identity, course, assignment, body)
    except CarrelError as error:
        return _page(web, visitor, course, assignment, error=error, tried="check")
    page = course_url(course, "assignment", assignment)
    return RedirectResponse(f"{page}#check-title", SEE_OTHER)


@router.post("/official-check")
def official_check(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, sent: Uploads
) -> Response:
    """Run the hidden tests on the uploaded files, or on the latest submission."""
    try:
        body = SubmitIn(files=sent.folder("files"))
        web.courses.official_checks.start(visitor.identity, course, assignment, body)
    except CarrelError as error:
        return _page(web, visitor, course, assignment, error=error, tried="official")
    page = course_url(course, "assignment", assignment)
    return RedirectResponse(f"{page}#official-checks-title", SEE_OTHER)


@router.get("/feedback/{submission}/{name}")
def feedback(
    *,
    web: Carrel,
    visitor: Guest,
    course: CourseName,
    assignment: AssignmentName,
    submission: SubmissionId,
    name: PageName,
) -> Response:
    """Show a page of feedback in a frame."""
    web.courses.access.submission_of(visitor.identity, course, assignment, submission)
    _feedback_page(web, visitor, submission, name)
    page = web.render_for(
        visitor,
        "courses/assignment_feedback.html",
        course=course,
        assignment=assignment,
        submission=submission,
        name=name,
        address=course_url(course, "assignment", assignment),
    )
    return html(page)


@router.get("/feedback/{submission}/{name}/content")
def feedback_content(
    *,
    web: Carrel,
    visitor: Follower,
    course: CourseName,
    assignment: AssignmentName,
    submission: SubmissionId,
    name: PageName,
) -> Response:
    """Return a page of feedback on the visitor's own submission, without scripts."""
    web.courses.access.submission_of(visitor.identity, course, assignment, submission)
    page = _feedback_page(web, visitor, submission, name)
    return Response(page, media_type="text/html; charset=utf-8", headers=SANDBOXED)


def _feedback_page(web: WebContext, visitor: Visitor, submission: int, name: str) -> bytes:
    for file in web.courses.delivery.files(visitor.identity, submission):
        if file.name == name and name.endswith(".html"):
            return base64.b64decode(file.content)
    raise NotFound(f"This submission has no feedback {name[:80]!r}.")


def _mine(web: WebContext, visitor: Visitor, course: str, assignment: str) -> AssignmentOut:
    for each in web.courses.overview.assignments(visitor.identity, course).assignments:
        if each.name == assignment:
            return each
    raise NotFound(f"{course} has no assignment {assignment[:80]!r}.")


def _stand(web: WebContext, visitor: Visitor, course: str, assignment: str) -> dict[str, object]:
    who = visitor.identity
    place = web.courses.administration.show(who, course)
    student = place.role == "student"
    return {
        "course": place,
        "mine": _mine(web, visitor, course, assignment),
        "result": web.courses.delivery.own_grade(who, course, assignment) if student else None,
        "address": course_url(course, "assignment", assignment),
    }


def _page(
    web: WebContext,
    visitor: Visitor,
    course: str,
    assignment: str,
    *,
    error: CarrelError | None = None,
    tried: str = "",
) -> Response:
    page = web.render_for(
        visitor,
        "courses/assignment.html",
        **_stand(web, visitor, course, assignment),
        texts=web.courses.assignments.texts(visitor.identity, course, assignment),
        checks=web.courses.checks.recent(visitor.identity, course, assignment).checks,
        official=web.courses.official_checks.mine(visitor.identity, course, assignment),
        board=web.courses.leaderboard_rules.rule(course, assignment),
        error=error,
        tried=tried,
    )
    return html(page, status=error.http_status if error else 200)
