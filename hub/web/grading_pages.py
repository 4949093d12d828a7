"""The page of a grading: how far it is, and a verdict for each student and cell."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from ..config import SERVICE_PREFIX
from ..errors import CarrelError
from ..wire.grading import GradeIn
from .context import Web
from .course_routes import AssignmentName, CourseName
from .gate import Visitor
from .guests import Form, Guest, html
from .routes import Carrel
from .signing_in import SEE_OTHER

router = APIRouter(include_in_schema=False, prefix="/course/{course}/grading/{assignment}")


@router.get("")
def grading(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName
) -> Response:
    """For teachers and graders."""
    return _page(web, visitor, course, assignment)


@router.get("/live")
def grading_live(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName
) -> Response:
    """The part of that page that changes by itself."""
    found = web.courses.grades(visitor.identity, course, assignment)
    return html(web.render("grading_live.html", found=found))


@router.post("")
def grade(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, fields: Form
) -> Response:
    """Grade the class, or one question of it."""
    question = fields.get("question", "").strip()[:200]
    try:
        web.courses.grade(visitor.identity, course, assignment, GradeIn(question=question))
    except CarrelError as error:
        return _page(web, visitor, course, assignment, error=error, question=question)
    return RedirectResponse(_address(course, assignment), SEE_OTHER)


def _page(
    web: Web,
    visitor: Visitor,
    course: str,
    assignment: str,
    *,
    error: CarrelError | None = None,
    question: str = "",
) -> Response:
    found = web.courses.grades(visitor.identity, course, assignment)
    page = web.render(
        "grading.html",
        found=found,
        error=error,
        question=question,
        address=_address(course, assignment),
        who=visitor.identity,
        csrf=web.gate.csrf.issue(visitor.session),
    )
    return html(page, status=error.http_status if error else 200)


def _address(course: str, assignment: str) -> str:
    return f"{SERVICE_PREFIX}course/{quote(course, safe='')}/grading/{quote(assignment, safe='')}"
