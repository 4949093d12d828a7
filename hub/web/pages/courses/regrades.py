"""Regrade requests: the threads of a student, and those of a course for its graders."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from .....courses.manual_grading.service import numbers_of
from .....courses.roster.access import GRADERS
from ....errors import CarrelError
from ....schemas.grading import RegradeIn, RegradeOut, RegradeReplyIn
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.course_paths import AssignmentName, CourseName, RegradeId
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.visitors import Form, Guest, html
from ...html.urls import course_url
from ...security.access import Visitor

router = APIRouter(include_in_schema=False, prefix="/course/{course}")


# -- for students -----------------------------------------------------------------------------


@router.get("/assignment/{assignment}/regrades")
def own(web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName) -> Response:
    """Show the student's requests about an assignment, and the form for a new one."""
    return _own(web, visitor, course, assignment)


@router.post("/assignment/{assignment}/regrades")
def ask(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, fields: Form
) -> Response:
    """Open a request."""
    notebook, _, cell = fields.get("about", "").rpartition("/")
    try:
        body = RegradeIn(notebook=notebook[:1000], cell=cell[:1000], text=fields.get("text", ""))
        made = web.courses.regrades.ask(visitor.identity, course, assignment, body)
    except CarrelError as error:
        return _own(web, visitor, course, assignment, error=error, filled=fields)
    page = course_url(course, "assignment", assignment, "regrades")
    return RedirectResponse(f"{page}#regrade-{made.id}", SEE_OTHER)


@router.post("/assignment/{assignment}/regrades/{regrade}")
def own_reply(
    *,
    web: Carrel,
    visitor: Guest,
    course: CourseName,
    assignment: AssignmentName,
    regrade: RegradeId,
    fields: Form,
) -> Response:
    """Add a message of the student, or close the request."""
    try:
        web.courses.regrades.reply(
            *(visitor.identity, regrade, _reply_body(fields)), course=course, assignment=assignment
        )
    except CarrelError as error:
        return _own(web, visitor, course, assignment, error=error, filled=fields, tried=regrade)
    page = course_url(course, "assignment", assignment, "regrades")
    return RedirectResponse(f"{page}#regrade-{regrade}", SEE_OTHER)


def _own(
    web: WebContext,
    visitor: Visitor,
    course: str,
    assignment: str,
    *,
    error: CarrelError | None = None,
    filled: Form | None = None,
    tried: int = 0,
) -> Response:
    who = visitor.identity
    place = web.courses.administration.show(who, course)
    mine = (
        web.courses.delivery.own_grade(who, course, assignment) if place.role == "student" else None
    )
    page = web.render_for(
        visitor,
        "courses/own_regrades.html",
        course=place,
        assignment=assignment,
        grade=mine.grade if mine else None,
        may_ask=mine is not None and mine.submission is not None,
        regrades=web.courses.regrades.requests(who, course, assignment) if mine else [],
        address=course_url(course, "assignment", assignment),
        error=error,
        filled=filled or {},
        tried=tried,
    )
    return html(page, error.http_status if error else 200)


# -- for graders ------------------------------------------------------------------------------


@router.get("/regrades")
def of_class(web: Carrel, visitor: Guest, course: CourseName) -> Response:
    """List the requests of the course, open ones first."""
    who = visitor.identity
    web.courses.access.membership(who, course, GRADERS)
    page = web.render_for(
        visitor,
        "courses/regrades.html",
        course=web.courses.administration.show(who, course),
        regrades=web.courses.regrades.requests(who, course),
    )
    return html(page)


@router.get("/regrades/{regrade}")
def thread(web: Carrel, visitor: Guest, course: CourseName, regrade: RegradeId) -> Response:
    """Show one request with its thread."""
    return _thread(web, visitor, course, regrade)


@router.post("/regrades/{regrade}")
def reply(
    web: Carrel, visitor: Guest, course: CourseName, regrade: RegradeId, fields: Form
) -> Response:
    """Add a message of a grader, close the request, or both."""
    web.courses.access.membership(visitor.identity, course, GRADERS)
    try:
        web.courses.regrades.reply(visitor.identity, regrade, _reply_body(fields), course=course)
    except CarrelError as error:
        return _thread(web, visitor, course, regrade, error=error, filled=fields)
    return RedirectResponse(course_url(course, "regrades", str(regrade)), SEE_OTHER)


def _thread(
    web: WebContext,
    visitor: Visitor,
    course: str,
    regrade: int,
    *,
    error: CarrelError | None = None,
    filled: Form | None = None,
) -> Response:
    who = visitor.identity
    web.courses.access.membership(who, course, GRADERS)
    found = web.courses.regrades.show(who, course, regrade)
    page = web.render_for(
        visitor,
        "courses/regrade.html",
        course=web.courses.administration.show(who, course),
        regrade=found,
        manual=_manual_number(web, visitor, found),
        error=error,
        filled=filled or {},
    )
    return html(page, error.http_status if error else 200)


def _manual_number(web: WebContext, visitor: Visitor, found: RegradeOut) -> int | None:
    """The student's number on the page of grading by hand; None if nothing of them is graded."""
    course, assignment = found.course, found.assignment
    grades = web.courses.grading.grades_alone(visitor.identity, course, assignment)
    return numbers_of(course, assignment, grades).get(found.person)


def _reply_body(fields: Form) -> RegradeReplyIn:
    return RegradeReplyIn(text=fields.get("text", ""), close=fields.get("do") == "close")
