"""The page of a leaderboard: students submit weights, and teachers see all verdicts."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from ....errors import CarrelError, InvalidInput
from ....schemas.coursework.leaderboards import WeightsIn
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
    if seen and seen == web.courses.leaderboards.state(visitor.identity, course, assignment):
        return Response(status_code=NO_CONTENT)
    found = _found(web, visitor, course, assignment)
    return html(web.render("courses/leaderboard_live.html", **found))


@router.post("/submit")
def submit(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, sent: Uploads
) -> Response:
    """Submit weights, and show the verdict or the error on the page."""
    try:
        files = sent.folder("files")
        if len(files) != 1:
            raise InvalidInput(
                f"{len(files) or 'No'} files were selected.", accepted="One safetensors file."
            )
        body = WeightsIn(file=files[0])
        web.courses.leaderboards.submit(visitor.identity, course, assignment, body)
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
            web.courses.leaderboards.close(who, course, assignment)
        else:
            body = form.body(sent.folder("files"))
            web.courses.leaderboards.open(who, course, assignment, body)
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


def _found(web: WebContext, visitor: Visitor, course: str, assignment: str) -> dict[str, object]:
    """The table as the visitor may see it."""
    who, boards = visitor.identity, web.courses.leaderboards
    place = web.courses.administration.show(who, course)
    address = course_url(course, "assignment", assignment, "leaderboard")
    found: dict[str, object] = {"course": place, "assignment": assignment, "address": address}
    # Before the rest is read, which may be newer.
    found["state"] = boards.state(who, course, assignment)
    if place.role == "student":
        board = boards.show(who, course, assignment)
        return found | {"rule": board.rule, "board": board, "rows": board.rows, "log": None}
    log = boards.log(who, course, assignment)
    return found | {"rule": log.rule, "board": None, "rows": log.rows, "log": log}


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
    found = _found(web, visitor, course, assignment)
    known = web.courses.leaderboards.rule(course, assignment)
    form = LeaderboardForm.filled(sent.fields) if sent else LeaderboardForm.of(known)
    page = web.render_for(
        visitor, "courses/leaderboard.html", **found, form=form, version=version, error=error
    )
    return html(page, error.http_status if error else 200)
