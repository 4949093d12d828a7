"""The page of the semester plan: demand, clashes, and reservations to accept."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from ....config.base_url import SERVICE_PREFIX
from ....errors import CarrelError
from ....files.csv_table import csv_of
from ....groups.calendar import read_when
from ....messages import semester_plan as plan_messages
from ....records.identity import require_admin
from ....schemas.calendar import ReservationIn, SemesterPlanOut
from ...dependencies.callers import Carrel
from ...dependencies.edit_versions import version_for
from ...dependencies.visitors import Guest, html
from ...forms.reservation import ReservationForm
from ...html.downloads import attachment
from ...html.plot import Plot, Series

router = APIRouter(include_in_schema=False, prefix="/admin/semester")
TermName = Annotated[str, Query(max_length=64)]


@router.get("")
def semester(web: Carrel, visitor: Guest, term: TermName = "") -> Response:
    """Show the plan of a term, by default of the running one."""
    require_admin(visitor.identity)
    version, error = version_for(web), None
    try:
        found = web.semester.plan(visitor.identity, term)
    except CarrelError as refused:
        error, found = refused, web.semester.plan(visitor.identity)
    page = web.render_for(
        visitor,
        "admin/semester.html",
        version=version,
        found=found,
        plot=demand_plot(found),
        head=plan_messages.DAY_HEAD,
        rows=plan_messages.day_rows(found),
        clashes=[plan_messages.clash(each) for each in found.clashes],
        proposals=[
            (plan_messages.proposal(each), _form(each.reservation)) for each in found.proposals
        ],
        terms=web.administration.calendar.terms(),
        error=error,
        csv_url=f"{SERVICE_PREFIX}admin/semester/csv",
    )
    return html(page, error.http_status if error else 200)


@router.get("/csv")
def semester_csv(web: Carrel, visitor: Guest, term: TermName = "") -> Response:
    """Download the demand by day and course as CSV."""
    found = web.semester.plan(visitor.identity, term)
    return Response(
        csv_of(plan_messages.csv_rows(found)),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": attachment("semester-plan.csv")},
    )


def _form(body: ReservationIn | None) -> ReservationForm | None:
    """Return the fields of a reservation, as the page of reservations accepts them."""
    if body is None:
        return None
    times = read_when(body.when)
    return ReservationForm(
        group=body.group,
        devices=str(body.devices),
        first="" if times.single is None else times.single.isoformat(),
        begins=f"{times.begins:%H:%M}",
        ends=f"{times.ends:%H:%M}",
        zone=times.zone,
        why=body.why,
    )


def demand_plot(found: SemesterPlanOut) -> Plot:
    """Plot the devices that each day needs."""
    peak = max((day.needed for day in found.days), default=0)
    return Plot(
        id="demand",
        title="Devices needed by day",
        about=f"The devices that courses and reservations need on each day, at most {peak}; the "
        f"pool has {found.pool}.",
        unit="devices",
        marks=tuple(day.day for day in found.days),
        across="Day (UTC)",
        series=(
            Series(
                name="Devices needed",
                values=tuple(float(day.needed) for day in found.days),
                texts=tuple(str(day.needed) for day in found.days),
            ),
        ),
        most=float(max(peak, found.pool)),
    )
