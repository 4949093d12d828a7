"""The page of a leaderboard: students submit weights, and teachers see all verdicts."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from .....courses.leaderboards.service import LeaderboardPage
from ....errors import CarrelError
from ....schemas.coursework.leaderboards import LeaderboardLogOut, LeaderboardOut, WeightsIn
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.course_paths import AssignmentName, CourseName
from ...dependencies.edit_versions import version_for
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.uploads import Uploaded, Uploads
from ...dependencies.visitors import Guest, html
from ...forms.leaderboard import LeaderboardForm
from ...html.urls import course_url
from ...security.access import Visitor

NO_CONTENT = 204

router = APIRouter(
    include_in_schema=False, prefix="/course/{course}/assignment/{assignment}/leaderboard"
)


@router.get("")
def show(web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName) -> Response:
    """Show the leaderboard."""
    return _page(web, visitor, course, assignment)


@router.get("/live")
def live(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, seen: str = ""
) -> Response:
    """Render the live part: the table, and the submissions with their verdicts.

    With the state of the leaderboard that the page has seen, nothing (204) where it has not
    changed: hundreds of open pages ask every few seconds.
    """
    page = web.courses.leaderboards.changed_page(visitor.identity, course, assignment, seen)
    if page is None:
        return Response(status_code=NO_CONTENT)
    found = _context(web, visitor, course, assignment, page)
    return html(web.render("courses/leaderboard_live.html", **found))


@router.post("/submit")
def submit(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, sent: Uploads
) -> Response:
    """Submit weights, and show the verdict or the error on the page."""
    try:
        body = WeightsIn(file=sent.single("files", "One safetensors file."))
        web.courses.leaderboard_submissions.submit(visitor.identity, course, assignment, body)
    except CarrelError as error:
        return _page(web, visitor, course, assignment, error=error)
    return _back(course, assignment, "#mine-title")


@router.post("/rule")
def rule(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, sent: Uploads
) -> Response:
    """Open the leaderboard, change it, or take no further submissions."""
    who, form = visitor.identity, LeaderboardForm.filled(sent.fields)
    try:
        if sent.fields.get("do") == "off":
            web.courses.leaderboard_rules.close(who, course, assignment)
        else:
            body = form.body(sent.folder("files"))
            web.courses.leaderboard_rules.open(who, course, assignment, body)
    except CarrelError as error:
        return _page(web, visitor, course, assignment, error=error, sent=sent)
    return _back(course, assignment, "#rule-title")


@router.post("/again")
def again(web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName) -> Response:
    """Score the submissions again that a fault left without score."""
    try:
        web.courses.leaderboards.score_again(visitor.identity, course, assignment)
    except CarrelError as error:
        return _page(web, visitor, course, assignment, error=error)
    return _back(course, assignment, "#mine-title")


def _back(course: str, assignment: str, part: str) -> Response:
    page = course_url(course, "assignment", assignment, "leaderboard")
    return RedirectResponse(page + part, SEE_OTHER)


def _context(
    web: WebContext, visitor: Visitor, course: str, assignment: str, page: LeaderboardPage
) -> dict[str, object]:
    """What the templates show of a leaderboard: ``board`` to a student, ``log`` to others."""
    shown = page.shown
    return {
        "course": web.courses.administration.show(visitor.identity, course),
        "assignment": assignment,
        "address": course_url(course, "assignment", assignment, "leaderboard"),
        "state": page.state,
        "rule": shown.rule,
        "rows": shown.rows,
        "board": shown if isinstance(shown, LeaderboardOut) else None,
        "log": shown if isinstance(shown, LeaderboardLogOut) else None,
    }


def _page(
    web: WebContext,
    visitor: Visitor,
    course: str,
    assignment: str,
    *,
    error: CarrelError | None = None,
    sent: Uploaded | None = None,
) -> Response:
    version = version_for(web, sent.fields if sent else None, error)
    page = web.courses.leaderboards.page(visitor.identity, course, assignment)
    form = LeaderboardForm.filled(sent.fields) if sent else LeaderboardForm.of(page.shown.rule)
    found = _context(web, visitor, course, assignment, page)
    text = web.render_for(
        visitor, "courses/leaderboard.html", **found, form=form, version=version, error=error
    )
    return html(text, error.http_status if error else 200)
