"""Usage pages: of a user, of the pool for administrators, and of a course for teachers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Annotated, TypedDict
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from ...config.base_url import SERVICE_PREFIX
from ...efficiency.report import EfficiencyReports, day_text
from ...errors import CarrelError
from ...messages import efficiency as efficiency_messages
from ...messages import usage as usage_messages
from ...messages.usage import UsageLine
from ...records.identity import require_admin
from ...records.usage import DAY, UsageBy, UsageRow
from ...requests.pagination import RequestQuery
from ...scheduling.model.states import LIVE
from ...schemas import UsageReport, UsageRowOut, UsedBy, parsers
from ...schemas.usage import HistoryOut
from ...usage import aggregation
from ...usage.reports import UsageQuery, row_out
from ..dependencies.callers import Carrel
from ..dependencies.context import WebContext, in_one_transaction
from ..dependencies.visitors import Follower, Guest, html
from ..html.downloads import saved_json
from ..html.plot import Plot
from ..security.access import Visitor
from . import usage_plots as usage_plots_pages

_DAYS = 30
_MOST_DAYS = 366
"""Max number of days in the plot; of a longer period it shows the newest ones."""
_ROWS = 50
_LIVE_SHOWN = 50
_SUMS = ("owner", *usage_messages.HEADS)
"""Groupings of the table; sums by request are always shown."""

router = APIRouter(include_in_schema=False)

Span = Annotated[str, Query(max_length=8)]
Group = Annotated[str, Query(max_length=64)]
Course = Annotated[str, Path(max_length=64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageChoice:
    """The filter in the URL.

    Attributes:
        since, until: days in UTC, inclusive.
        by: the additional grouping.
    """

    since: str
    until: str = ""
    group: str = ""
    whose: str = "mine"
    by: UsedBy = "owner"

    def url(self, page: str) -> str:
        pairs = [(field.name, getattr(self, field.name)) for field in fields(self)]
        return f"{SERVICE_PREFIX}{page}?" + urlencode([pair for pair in pairs if pair[1]])

    def query(self) -> UsageQuery:
        """Return the query. Raises InvalidInput for an invalid day."""
        return UsageQuery(
            group=self.group,
            since=parsers.day(self.since),
            until=parsers.day(self.until) + DAY if self.until else None,
            mine=self.whose != "all",
            by=UsageBy.REQUEST,
            rows=_ROWS,
            lines=0,
            counted=False,
        )

    def of_group(self, group: str) -> str:
        """Return the URL of the page of one group with its subgroups."""
        return replace(self, group=group).url("usage")


async def _choice(
    web: Carrel,
    *,
    since: Annotated[str, Query(max_length=10)] = "",
    until: Annotated[str, Query(max_length=10)] = "",
    group: Group = "",
    whose: Annotated[str, Query(max_length=10)] = "mine",
    by: UsedBy = "owner",
) -> UsageChoice:
    since = since or _first_day(web)
    return UsageChoice(since=since, until=until, group=group, whose=whose, by=by)


Chosen = Annotated[UsageChoice, Depends(_choice)]


@router.get("/usage")
def usage(web: Carrel, visitor: Guest, chosen: Chosen) -> Response:
    """Show the charged sums by day, model and request; a request opens to its ledger."""
    # JupyterHub is called first, outside of the transaction.
    mine = web.group_choices.names(visitor.identity)
    error = None
    with web.context.store.together():
        try:
            found = _usage_values(web, visitor, chosen, mine)
        except CarrelError as refused:
            error = refused
            chosen = UsageChoice(since=_first_day(web), whose=chosen.whose, by=chosen.by)
            found = _usage_values(web, visitor, chosen, mine)
        report = found["usage"]
        named = {*(line.group for line in report.by_group), *filter(None, [chosen.group])}
        if visitor.identity.admin:
            named |= {each.name for each in web.context.store.groups()}
        page = web.render_for(
            visitor,
            "usage/usage.html",
            title="Usage" if chosen.whose == "all" else "My usage",
            groups=sorted(named),
            sums=_SUMS,
            error=error,
            **found,
        )
    return html(page, error.http_status if error else 200)


@router.get("/usage/live")
def usage_live(web: Carrel, visitor: Guest, chosen: Chosen) -> Response:
    """Render the live part of the page."""
    mine = web.group_choices.names(visitor.identity)
    with web.context.store.together():
        return html(web.render("usage/live.html", **_usage_values(web, visitor, chosen, mine)))


class _UsageValues(TypedDict):
    """Variables of the live part of the usage page."""

    usage: UsageReport
    plot: Plot
    models: Sequence[UsageRowOut]
    lines: Sequence[UsageLine]
    chosen: UsageChoice
    most: int


def _usage_values(
    web: WebContext, visitor: Visitor, chosen: UsageChoice, mine: Collection[str]
) -> _UsageValues:
    """Read the usage for a filter. Raises InvalidInput, NotFound."""
    who, query = visitor.identity, chosen.query()
    by, now = UsageBy(chosen.by), web.usage.clock()
    report = web.usage.report(who, query, now=now, groups_of=mine)
    days = web.usage.used(who, query, UsageBy.DAY, now=now)
    plot = usage_plots_pages.by_day(report, _all_days(report, days, now))
    models = [row_out(each) for each in web.usage.used(who, query, UsageBy.MODEL, now=now)]
    rows = []
    if by in usage_messages.HEADS and by is not UsageBy.MODEL:
        known = days if by is UsageBy.DAY else web.usage.used(who, query, by, now=now)
        rows = [row_out(each) for each in known]
    return {
        "usage": report,
        "plot": plot,
        "models": models,
        "lines": usage_messages.lines(by, rows),
        "chosen": chosen,
        "most": _ROWS,
    }


@router.get("/usage/proof")
def usage_proof(web: Carrel, visitor: Follower, chosen: Chosen) -> Response:
    """Download the proof of one's own ledger entries in the period and group of the page."""
    query = chosen.query()
    found = web.proofs().prove_usage(
        visitor.identity, group=query.group, since=query.since, until=query.until
    )
    return saved_json("usage.proof.json", found.model_dump_json(indent=1))


@router.get("/admin/use")
@in_one_transaction
def use(web: Carrel, visitor: Guest, span: Span = "week", group: Group = "") -> Response:
    """Show utilization and wait times."""
    require_admin(visitor.identity)
    found = web.usage.pool(visitor.identity, span, group)
    page = web.render_for(
        visitor,
        "admin/use.html",
        found=found,
        plots=_plots(found),
        groups=[each.name for each in web.context.store.groups()],
    )
    return html(page)


@router.get("/admin/use/live")
@in_one_transaction
def use_live(web: Carrel, visitor: Guest, span: Span = "week", group: Group = "") -> Response:
    """Render the plots only, for live updates."""
    require_admin(visitor.identity)
    found = web.usage.pool(visitor.identity, span, group)
    return html(web.render("shared/history_plots.html", found=found, plots=_plots(found)))


@router.get("/course/{group}")
@in_one_transaction
def course(web: Carrel, visitor: Guest, group: Course, span: Span = "week") -> Response:
    """Show requests, usage and wait times of a course, for its teachers and administrators."""
    found = _course(web, visitor, group, span)
    is_course = web.courses.access.is_course(group)
    page = web.render_for(visitor, "courses/course.html", is_course=is_course, **found)
    return html(page)


@router.get("/course/{group}/live")
@in_one_transaction
def course_live(web: Carrel, visitor: Guest, group: Course, span: Span = "week") -> Response:
    """Render the live part of the page."""
    return html(web.render("courses/course_live.html", **_course(web, visitor, group, span)))


def _course(web: WebContext, visitor: Visitor, group: str, span: str) -> dict[str, object]:
    """Read the values of the course page. Raises NotFound."""
    who = visitor.identity
    web.usage.check_course(who, group)
    found = web.usage.pool(who, span, group)
    since = found.periods[0].starts_at
    live = RequestQuery(group=group, mine=False, states=LIVE, limit=_LIVE_SHOWN, brief=True)
    used = UsageQuery(group=group, since=since, by=UsageBy.USER, lines=0)
    # Readers of a course see its budgets and reservations, members or not.
    coming = web.pool.reservations(who, groups_of=())
    return {
        "group": group,
        "live": web.requests.find(who, live),
        "usage": web.usage.report(who, used, groups_of=()),
        "reservations": [each for each in coming if each.group == group],
        "found": found,
        "plots": _plots(found),
    }


def _plots(found: HistoryOut) -> dict[str, object]:
    return {
        "utilisation": usage_plots_pages.utilisation(found),
        "queue": usage_plots_pages.queue(found),
        "waits": usage_plots_pages.waits(found),
    }


def _all_days(report: UsageReport, days: Sequence[UsageRow], now: float) -> list[UsageRowOut]:
    """Add the days without usage."""
    since = report.since or now
    until = min(now, report.until or now)
    since = max(since, until - _MOST_DAYS * DAY)
    return [row_out(day) for day in aggregation.every_day(days, since, until)]


def _first_day(web: WebContext) -> str:
    """Return the first day of the default period."""
    return f"{datetime.fromtimestamp(web.clock() - (_DAYS - 1) * DAY, UTC):%Y-%m-%d}"


@router.get("/efficiency")
@in_one_transaction
def efficiency(
    web: Carrel,
    visitor: Guest,
    week: Annotated[str, Query(max_length=10)] = "",
    group: Group = "",
) -> Response:
    """Show what the user held and did not use in a week, or for its teachers a group."""
    who = visitor.identity
    reports, error = EfficiencyReports(web.context.store, web.clock), None
    try:
        found = reports.report(who, week=parsers.day(week) if week else None, group=group)
    except CarrelError as refused:
        error, found = refused, reports.report(who)
    taught = web.usage.teaches(who)
    if who.admin:
        taught = [each.name for each in web.context.store.groups()]
    page = web.render_for(
        visitor,
        "usage/efficiency.html",
        found=found,
        groups=sorted(taught),
        first=day_text(found.since),
        messages_of=efficiency_messages,
        error=error,
    )
    return html(page, error.http_status if error else 200)
