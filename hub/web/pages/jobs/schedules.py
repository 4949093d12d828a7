"""The page of the user's schedules."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from ....config.base_url import SERVICE_PREFIX
from ....errors import CarrelError, InvalidInput
from ....schemas.schedules import ScheduleChangeIn
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.visitors import Form, Guest, html
from ...security.access import Visitor

SCHEDULES = f"{SERVICE_PREFIX}schedules"

router = APIRouter(include_in_schema=False, prefix="/schedules")


@router.get("")
def schedules(web: Carrel, visitor: Guest) -> Response:
    return _page(web, visitor)


@router.post("")
def change(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Pause, resume, run or remove a schedule, depending on the button."""
    who, schedule_id = visitor.identity, fields.get("id", "")[:64]
    try:
        match fields.get("do", ""):
            case "pause":
                web.schedules.change(who, schedule_id, ScheduleChangeIn(state="paused"))
            case "resume":
                web.schedules.change(who, schedule_id, ScheduleChangeIn(state="active"))
            case "remove":
                web.schedules.remove(who, schedule_id)
            case "run":
                request = web.schedules.run(who, schedule_id)
                return RedirectResponse(f"{SERVICE_PREFIX}requests/{request.id}", SEE_OTHER)
            case _:
                raise InvalidInput(
                    "The form contains no action.", accepted="Use the buttons on the page."
                )
    except CarrelError as error:
        return _page(web, visitor, error)
    return RedirectResponse(SCHEDULES, SEE_OTHER)


def _page(web: WebContext, visitor: Visitor, error: CarrelError | None = None) -> Response:
    page = web.render(
        "jobs/schedules.html",
        schedules=web.schedules.all(visitor.identity).schedules,
        error=error,
        who=visitor.identity,
        csrf=web.caller_access.csrf.issue(visitor.session),
    )
    return html(page, error.http_status if error else 200)
