"""Pages about the past: one's own use, the pool's for administrators, a course's for teachers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from .. import history
from ..administration import check
from ..client import values
from ..config import SERVICE_PREFIX
from ..errors import CarrelError
from ..figures import UsageAsked, row_out
from ..listing import Wanted
from ..ports.history import DAY, UsageBy, Used
from ..scheduling.lifecycle import LIVE
from ..wire import UsageReport, UsageRowOut
from ..wire.history import HistoryOut
from . import history_plots
from .context import Web
from .gate import Visitor
from .guests import Guest, html
from .routes import Carrel

_DAYS = 30
_MOST_DAYS = 366
"""How many days are drawn; a longer time has the newest of them."""
_ROWS = 100
_LINES = 50
_LIVE_SHOWN = 100

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """As it stands in the address: days in UTC, the last one included."""

    since: str
    until: str = ""
    group: str = ""
    whose: str = "mine"

    def asked(self, before: int | None) -> UsageAsked:
        """Raises InvalidInput."""
        return UsageAsked(
            group=self.group,
            since=values.day(self.since),
            until=values.day(self.until) + DAY if self.until else None,
            mine=self.whose != "all",
            by=UsageBy.REQUEST,
            rows=_ROWS,
            lines=_LINES,
            before=before,
        )

    def older(self, report: UsageReport) -> str:
        """Address of the page with the lines before these; empty where there are none."""
        if report.ledger_complete or len(report.ledger) < _LINES:
            return ""
        given = [("since", self.since), ("until", self.until), ("group", self.group)]
        pairs = [*given, ("whose", self.whose), ("before", str(report.ledger[0].id))]
        return f"{SERVICE_PREFIX}usage?" + urlencode([pair for pair in pairs if pair[1]])


@router.get("/usage")
def usage(
    *,
    web: Carrel,
    visitor: Guest,
    since: Annotated[str, Query(max_length=10)] = "",
    until: Annotated[str, Query(max_length=10)] = "",
    group: Annotated[str, Query(max_length=64)] = "",
    whose: Annotated[str, Query(max_length=10)] = "mine",
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
) -> Response:
    """The sums that people are charged by, by day and by request, down to the ledger's lines."""
    who = visitor.identity
    default = Choice(since=_day(web.clock() - (_DAYS - 1) * DAY), whose=whose, group=group)
    chosen = replace(default, since=since or default.since, until=until)
    error = None
    try:
        asked = chosen.asked(before)
        report = web.figures.usage(who, asked)
    except CarrelError as refused:
        error, chosen = refused, replace(default, group="")
        asked = chosen.asked(None)
        report = web.figures.usage(who, asked)
    days = web.figures.by_day(who, asked)
    named = sorted({*(line.group for line in report.by_group), *filter(None, [chosen.group])})
    page = web.render(
        "usage.html",
        title="Usage" if chosen.whose == "all" else "My usage",
        usage=report,
        plot=history_plots.by_day(report, _all_days(report, days, web.clock())),
        chosen=chosen,
        groups=named,
        most=_ROWS,
        older=chosen.older(report),
        error=error,
        **_around(visitor, web),
    )
    return html(page, error.http_status if error else 200)


@router.get("/admin/use")
def use(
    web: Carrel,
    visitor: Guest,
    span: Annotated[str, Query(max_length=8)] = "week",
    group: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """How full the pool was, and how long waits were."""
    check(visitor.identity)
    found = web.figures.pool(visitor.identity, span, group)
    page = web.render(
        "admin_use.html",
        found=found,
        plots=_plots(found),
        groups=[each.name for each in web.commands.store.groups()],
        **_around(visitor, web),
    )
    return html(page)


@router.get("/course/{group}")
def course(
    web: Carrel,
    visitor: Guest,
    group: Annotated[str, Path(max_length=64)],
    span: Annotated[str, Query(max_length=8)] = "week",
) -> Response:
    """The requests, the use and the waits of a course; nobody else knows that it exists."""
    who = visitor.identity
    web.figures.check_course(who, group)
    found = web.figures.pool(who, span, group)
    since = found.periods[0].starts_at
    live = Wanted(group=group, mine=False, states=frozenset(map(str, LIVE)), limit=_LIVE_SHOWN)
    page = web.render(
        "course.html",
        group=group,
        live=web.commands.find_requests(who, live),
        usage=web.figures.usage(who, UsageAsked(group=group, since=since, lines=0)),
        found=found,
        plots=_plots(found),
        **_around(visitor, web),
    )
    return html(page)


def _plots(found: HistoryOut) -> dict[str, object]:
    return {
        "utilisation": history_plots.utilisation(found),
        "queue": history_plots.queue(found),
        "waits": history_plots.waits(found),
    }


def _all_days(report: UsageReport, days: Sequence[Used], now: float) -> list[UsageRowOut]:
    """With the days between on which nothing was used."""
    since = report.since or now
    until = min(now, report.until or now)
    since = max(since, until - _MOST_DAYS * DAY)
    return [row_out(day) for day in history.every_day(days, since, until)]


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def _around(visitor: Visitor, web: Web) -> dict[str, object]:
    return {"who": visitor.identity, "csrf": web.gate.csrf.issue(visitor.session)}
