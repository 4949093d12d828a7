"""The page of a course's rehearsals: start one, its progress, and what breaks."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from .....courses.roster.access import GRADERS
from ....errors import CarrelError
from ....schemas.coursework.rehearsals import RehearsalIn, RehearsalScheduleIn
from ....schemas.schedules import ScheduleChangeIn
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.course_paths import CourseName
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.visitors import Form, Guest, html
from ...forms.cron import CronForm
from ...forms.fields import no_action
from ...html.urls import course_url
from ...security.access import Visitor

router = APIRouter(include_in_schema=False, prefix="/course/{course}/rehearsal")


@router.get("")
def show(web: Carrel, visitor: Guest, course: CourseName) -> Response:
    """Show the newest rehearsal, and the form for the next one."""
    return _page(web, visitor, course)


@router.get("/live")
def live(web: Carrel, visitor: Guest, course: CourseName) -> Response:
    """Render the live part: the newest rehearsal."""
    found = web.courses.rehearsals.recent(visitor.identity, course).rehearsals
    return html(web.render("courses/rehearsal_live.html", rehearsals=found))


@router.post("")
def start(web: Carrel, visitor: Guest, course: CourseName, fields: Form) -> Response:
    """Start a rehearsal, or store a schedule of rehearsals."""
    times = CronForm.filled(fields)
    image, assignment = fields.get("image", "").strip()[:160], fields.get("assignment", "")[:64]
    try:
        if times.every:
            timed = RehearsalScheduleIn(
                image=image,
                assignment=assignment,
                cron=times.expression(),
                zone=fields.get("zone", "").strip()[:64] or "UTC",
            )
            web.rehearsal_schedules.create(visitor.identity, course, timed)
        else:
            body = RehearsalIn(image=image, assignment=assignment)
            web.courses.rehearsals.start(visitor.identity, course, body)
    except CarrelError as error:
        return _page(web, visitor, course, error=error, filled=fields)
    part = "#schedules-title" if times.every else "#rehearsal-title"
    return RedirectResponse(course_url(course, "rehearsal") + part, SEE_OTHER)


@router.post("/schedules")
def change(web: Carrel, visitor: Guest, course: CourseName, fields: Form) -> Response:
    """Pause, resume or remove a schedule, depending on the button."""
    who, schedule_id = visitor.identity, fields.get("id", "")[:64]
    try:
        match fields.get("do", ""):
            case "pause":
                web.schedules.change(who, schedule_id, ScheduleChangeIn(state="paused"))
            case "resume":
                web.schedules.change(who, schedule_id, ScheduleChangeIn(state="active"))
            case "remove":
                web.schedules.remove(who, schedule_id)
            case _:
                raise no_action()
    except CarrelError as error:
        return _page(web, visitor, course, error=error)
    return RedirectResponse(course_url(course, "rehearsal") + "#schedules-title", SEE_OTHER)


def _page(
    web: WebContext,
    visitor: Visitor,
    course: str,
    *,
    error: CarrelError | None = None,
    filled: Form | None = None,
) -> Response:
    who = visitor.identity
    web.courses.access.membership(who, course, GRADERS)
    images = web.images.shown(who, [course])
    schedules = web.rehearsal_schedules.all(who, course).schedules
    page = web.render_for(
        visitor,
        "courses/rehearsal.html",
        course=web.courses.administration.show(who, course),
        rehearsals=web.courses.rehearsals.recent(who, course).rehearsals,
        assignments=[
            (each.name, each.name)
            for each in web.courses.overview.assignments(who, course).assignments
            if each.version
        ],
        images=[each.reference for each in images.images] if images.choice else None,
        schedules=schedules,
        times=CronForm.filled(filled or {}),
        sentences={each.id: CronForm.of(each.cron).sentence for each in schedules},
        error=error,
        filled=filled or {},
    )
    return html(page, error.http_status if error else 200)
