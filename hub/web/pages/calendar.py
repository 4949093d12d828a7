"""The calendar of reservations, for all users."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query
from starlette.responses import Response

from ...errors import CarrelError
from ...groups.calendar import day, read_when
from ...schemas import parsers
from ..dependencies.callers import Carrel
from ..dependencies.context import WebContext
from ..dependencies.visitors import Guest, html
from ..forms.fields import read
from .calendar_view import CalendarSpan, Scale

router = APIRouter(include_in_schema=False)

_UTC = ZoneInfo("UTC")


@router.get("/calendar")
def calendar(
    web: Carrel,
    visitor: Guest,
    show: Scale = Scale.MONTH,
    around: Annotated[str, Query(max_length=40, alias="day")] = "",
    zone: Annotated[str, Query(max_length=80)] = "",
) -> Response:
    """Show a week or a month around a day; without a zone, in that of the next reservation."""
    place, error = _zone(web), None
    chosen = datetime.fromtimestamp(web.clock(), place).date()
    try:
        place = read(parsers.time_zone, zone.strip(), "zone") if zone.strip() else place
        chosen = _shown(around) if around.strip() else chosen
    except CarrelError as refused:
        error = refused
    span = CalendarSpan(scale=show, around=chosen, zone=place)
    found = web.pool.reserved_times(visitor.identity, span.starts_at, span.ends_at)
    page = web.render_for(
        visitor,
        "shared/calendar.html",
        span=span,
        days=span.filled(found, web.clock()),
        found=found,
        filled={"day": around, "zone": zone},
        error=error,
    )
    return html(page, error.http_status if error else 200)


def _zone(web: WebContext) -> ZoneInfo:
    coming = web.pool.calendar.reservations()
    return parsers.time_zone(read_when(coming[0].when).zone) if coming else _UTC


def _shown(text: str) -> date:
    """Return a day whose weeks before and after exist too. Raises InvalidInput."""
    return max(day(text, "day"), date(1970, 2, 1))
