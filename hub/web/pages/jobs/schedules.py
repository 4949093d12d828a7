"""The page of the user's schedules."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from ....config.base_url import SERVICE_PREFIX
from ....errors import CarrelError
from ....schemas.schedules import ScheduleChangeIn
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.visitors import Form, Guest, html
from ...forms.cron import CronForm
from ...forms.fields import no_action
from ...security.access import Visitor

SCHEDULES = f"{SERVICE_PREFIX}schedules"

router = APIRouter(include_in_schema=False, prefix="/schedules")


@router.get("")
def schedules(web: Carrel, visitor: Guest) -> Response:
    return _page(web, visitor)


@router.post("")
def change(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Pause, resume, change, run or remove a schedule, depending on the button."""
    who, schedule_id = visitor.identity, fields.get("id", "")[:64]
    form = CronForm.filled(fields)
    try:
        match fields.get("do", ""):
            case "pause":
                web.schedules.change(who, schedule_id, ScheduleChangeIn(state="paused"))
            case "resume":
                web.schedules.change(who, schedule_id, ScheduleChangeIn(state="active"))
            case "change":
                times = ScheduleChangeIn(
                    cron=form.expression(), zone=fields.get("zone", "").strip()[:64] or "UTC"
                )
                web.schedules.change(who, schedule_id, times)
            case "remove":
                web.schedules.remove(who, schedule_id)
            case "run":
                request = web.schedules.run(who, schedule_id)
                return RedirectResponse(f"{SERVICE_PREFIX}requests/{request.id}", SEE_OTHER)
            case _:
                raise no_action()
    except CarrelError as error:
        return _page(web, visitor, error, fields)
    return RedirectResponse(SCHEDULES, SEE_OTHER)


def _page(
    web: WebContext,
    visitor: Visitor,
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
) -> Response:
    """Render the page; ``filled`` is a refused change, which is shown again with its error."""
    refused = filled if filled and filled.get("do") == "change" else {}
    found = web.schedules.all(visitor.identity).schedules
    page = web.render_for(
        visitor,
        "jobs/schedules.html",
        schedules=found,
        forms={each.id: CronForm.of(each.cron) for each in found},
        refused=refused,
        typed=CronForm.filled(refused),
        error=error,
    )
    return html(page, error.http_status if error else 200)
