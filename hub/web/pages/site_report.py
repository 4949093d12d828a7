"""The report for administrators: usage, waits, money and kWh of a period."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from ...config.base_url import SERVICE_PREFIX
from ...errors import CarrelError
from ...files.csv_table import csv_of
from ...messages import site_report as report_messages
from ...records.identity import require_admin
from ...records.usage import DAY
from ...schemas import parsers
from ...schemas.usage import SiteReportOut
from ..dependencies.callers import Carrel
from ..dependencies.context import WebContext, in_one_transaction
from ..dependencies.visitors import Guest, html
from ..html.downloads import attachment
from ..security.access import Visitor

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPeriod:
    """The days of the URL in UTC, the last one included; empty: the last calendar month."""

    since: str = ""
    until: str = ""


async def _period(
    since: Annotated[str, Query(max_length=10)] = "",
    until: Annotated[str, Query(max_length=10)] = "",
) -> ReportPeriod:
    return ReportPeriod(since=since, until=until)


Period = Annotated[ReportPeriod, Depends(_period)]


@router.get("/report")
@in_one_transaction
def report(web: Carrel, visitor: Guest, period: Period) -> Response:
    """Show the report of a period."""
    require_admin(visitor.identity)
    error = None
    try:
        found = _report(web, visitor, period)
    except CarrelError as refused:
        error, found = refused, _report(web, visitor, ReportPeriod())
    first, last = (
        f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}" for at in (found.since, found.until - 1)
    )
    page = web.render_for(
        visitor,
        "admin/report.html",
        found=found,
        tables=report_messages.tables(found),
        period=report_messages.period(found),
        waits=report_messages.wait_sentences(found),
        first=first,
        last=last,
        csv_url=f"{SERVICE_PREFIX}report/csv?" + urlencode({"since": first, "until": last}),
        error=error,
    )
    return html(page, error.http_status if error else 200)


@router.get("/report/csv")
@in_one_transaction
def report_csv(web: Carrel, visitor: Guest, period: Period) -> Response:
    """Download the report as CSV."""
    found = _report(web, visitor, period)
    saved = {"Content-Disposition": attachment(report_messages.file_name(found.since, found.until))}
    text = csv_of(report_messages.csv_rows(found))
    return Response(text, media_type="text/csv; charset=utf-8", headers=saved)


def _report(web: WebContext, visitor: Visitor, period: ReportPeriod) -> SiteReportOut:
    """Raises Forbidden, InvalidInput."""
    return web.site_reports.report(
        visitor.identity,
        since=parsers.day(period.since) if period.since else None,
        until=parsers.day(period.until) + DAY if period.until else None,
        courses=web.courses.access.course_names(),
    )
