"""The grading page of an assignment: progress, and the results of all students and cells."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from .....courses.gradebook.csv_export import csv_text
from .....courses.gradebook.statistics import statistics
from ....errors import CarrelError, InvalidInput
from ....schemas import LARGEST, parsers
from ....schemas.grading import GradeIn, GradesOut
from ....schemas.names import USER_LENGTH
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.course_paths import AssignmentName, CourseName
from ...dependencies.edit_versions import version_for
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.visitors import Form, Guest, html
from ...forms.fields import USE_BUTTONS, no_action
from ...html.downloads import attachment
from ...html.urls import course_url
from ...security.access import Visitor
from .class_view import CellChoice, counted, due_feedback, interrupted, rows_of

RELEASE_SECONDS = 4.0
"""How long one request releases feedback; the page continues with further requests."""

router = APIRouter(include_in_schema=False, prefix="/course/{course}/grading/{assignment}")


async def _choice(
    text: Annotated[str, Query(max_length=100)] = "",
    section: Annotated[str, Query(max_length=200)] = "",
    standing: Annotated[str, Query(max_length=40)] = "",
) -> CellChoice:
    return CellChoice(text=text.strip(), section=section, standing=standing)


Chosen = Annotated[CellChoice, Depends(_choice)]


@router.get("")
def grading(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, chosen: Chosen
) -> Response:
    """Show the page, for teachers and graders."""
    return _page(web, visitor, course, assignment, chosen)


@router.get("/live")
def grading_live(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, chosen: Chosen
) -> Response:
    """Render the live part of the page."""
    shown = _shown(web, visitor, course, assignment, chosen)
    return html(web.render("courses/grading_live.html", csrf=_csrf(web, visitor), **shown))


@router.get("/csv")
def table(web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName) -> Response:
    """Download the table that ``carrel course grades --csv`` writes."""
    found = web.courses.grading.grades(visitor.identity, course, assignment)
    saved = {"Content-Disposition": attachment(f"{course}-{assignment}.csv")}
    return Response(csv_text(found), media_type="text/csv; charset=utf-8", headers=saved)


@router.post("")
def act(
    web: Carrel, visitor: Guest, course: CourseName, assignment: AssignmentName, fields: Form
) -> Response:
    """Grade the class or a part of it, or let a late submission count, depending on the button."""
    try:
        _do(web, visitor, course, assignment, fields)
    except CarrelError as error:
        return _page(web, visitor, course, assignment, CellChoice(), error=error)
    person = fields.get("person", "") if fields.get("back") == "student" else ""
    student = ("student", person) if person else ()
    return RedirectResponse(course_url(course, "grading", assignment, *student), SEE_OTHER)


def _do(
    web: WebContext, visitor: Visitor, course: str, assignment: str, fields: Mapping[str, str]
) -> None:
    match fields.get("do", "grade"):
        case "grade":
            body = GradeIn(
                question=fields.get("question", "").strip()[:200],
                person=fields.get("person", "").strip()[:USER_LENGTH],
            )
            web.courses.grading.start(visitor.identity, course, assignment, body)
        case "count" | "uncount" as do:
            number = fields.get("submission", "")
            if not (number.isascii() and number.isdigit() and int(number[:20]) <= LARGEST):
                raise InvalidInput("This submission does not exist.", accepted=USE_BUTTONS)
            who = visitor.identity
            found = web.courses.access.submission_of(who, course, assignment, int(number))
            web.courses.submissions.choose(who, found.id, counts=do == "count")
        case _:
            raise no_action()


# -- feedback ---------------------------------------------------------------------------------


@router.post("/feedback")
def release_feedback(
    *,
    request: Request,
    web: Carrel,
    visitor: Guest,
    course: CourseName,
    assignment: AssignmentName,
    fields: Form,
) -> Response:
    """Release feedback to one student, or to as many graded students as fit in one response.

    nbgrader takes some time to render each page; the browser continues with further requests.
    """
    who, person = visitor.identity, fields.get("person", "")[:USER_LENGTH]
    try:
        if person:
            web.courses.feedback.release(who, course, assignment, person)
            page = course_url(course, "grading", assignment, "student", person)
            return RedirectResponse(page, SEE_OTHER)
        since, after = _since(web, fields), fields.get("after", "")
        found = web.courses.grading.grades(who, course, assignment)
        due = [each for each in due_feedback(found, since) if each > after]
        tried, problems = _released(web, visitor, found, due)
        missed = _missed(web, visitor, course, assignment, since) if tried == len(due) else []
        version = version_for(web)
    except CarrelError as error:
        return _page(web, visitor, course, assignment, CellChoice(), error=error)
    progress = {
        "left": len(due) - tried,
        "after": due[tried - 1] if tried else "",
        "missed": {each: problems.get(each, "") for each in missed},
        "since": "" if since is None else since,
        "address": course_url(course, "grading", assignment),
        "csrf": _csrf(web, visitor),
        "version": version,
    }
    if request.headers.get("hx-request"):
        return html(web.render("courses/grading_feedback.html", progress=progress))
    return _page(web, visitor, course, assignment, CellChoice(), progress=progress)


def _since(web: WebContext, fields: Mapping[str, str]) -> float | None:
    """Return the time before which feedback is released again; None: only where it is missing."""
    given = fields.get("since", "")
    if given in {"", "now"}:
        return web.clock() if given else None
    try:
        return parsers.check_moment(float(given), given, USE_BUTTONS)
    except ValueError:
        raise InvalidInput("The form contains no time.", accepted=USE_BUTTONS) from None


def _released(
    web: WebContext, visitor: Visitor, found: GradesOut, due: list[str]
) -> tuple[int, dict[str, str]]:
    """Return the number of students done before the time ran out, and the errors by student."""
    until, problems = time.monotonic() + RELEASE_SECONDS, dict[str, str]()
    releases = web.courses.feedback.release_to_class(
        visitor.identity, found.course, found.assignment, due
    )
    with closing(releases):
        for tried, (person, problem) in enumerate(releases, 1):
            if problem is not None:
                problems[person] = str(problem)
            if time.monotonic() > until:
                return tried, problems
    return len(due), problems


def _missed(
    web: WebContext, visitor: Visitor, course: str, assignment: str, since: float | None
) -> list[str]:
    """Return graded students without feedback after all were tried."""
    return due_feedback(web.courses.grading.grades(visitor.identity, course, assignment), since)


# -- internal ---------------------------------------------------------------------------------


def _shown(
    web: WebContext, visitor: Visitor, course: str, assignment: str, chosen: CellChoice
) -> dict[str, object]:
    who, version = visitor.identity, version_for(web)
    found = web.courses.grading.grades(who, course, assignment)
    members = web.courses.roster.listed(who, course)
    receipts = web.courses.submissions.receipts(who, course, assignment).receipts
    place = web.courses.administration.show(who, course)
    rows = rows_of(found, members, receipts)
    return {
        "version": version,
        "found": found,
        "statistics": statistics(found),
        "place": place,
        "open": place.archived_at is None,
        "rows": [row for row in rows if chosen.matches(row)],
        "everybody": len(rows),
        "counts": counted(rows),
        "sections": sorted({row.section for row in rows if row.section}),
        "interrupted": interrupted(found.run) if found.run else "",
        "lacking": len(due_feedback(found, None)),
        "provisional": sum(grade.provisional for grade in found.grades),
        "waiting": sum(grade.provisional > 0 for grade in found.grades),
        "given": sum(grade.feedback_at is not None for grade in found.grades),
        "chosen": chosen,
        "address": course_url(course, "grading", assignment),
        "query": urlencode({name: value for name, value in asdict(chosen).items() if value}),
    }


def _page(
    web: WebContext,
    visitor: Visitor,
    course: str,
    assignment: str,
    chosen: CellChoice,
    *,
    error: CarrelError | None = None,
    progress: Mapping[str, object] | None = None,
) -> Response:
    page = web.render_for(
        visitor,
        "courses/grading.html",
        **_shown(web, visitor, course, assignment, chosen),
        error=error,
        progress=progress,
    )
    return html(page, status=error.http_status if error else 200)


def _csrf(web: WebContext, visitor: Visitor) -> str:
    return web.caller_access.csrf.issue(visitor.session)
