"""REST routes for the past: device-seconds, ledger, utilization and wait times."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from ...efficiency.report import EfficiencyReports
from ...forecasts.outcomes import forecast_history
from ...proofs.document import ProofDocument
from ...records.usage import UsageBy
from ...schemas import LARGEST, LATEST, UsageReport
from ...schemas.calendar import SemesterPlanOut
from ...schemas.usage import (
    EfficiencyOut,
    ForecastHistoryOut,
    HistoryOut,
    SiteReportOut,
    WhatIfOut,
)
from ...usage.reports import MOST_ROWS, UsageQuery
from ...usage.what_if.service import DEFAULT_DAYS, MOST_DAYS, SiteChange
from ..dependencies.callers import Carrel, Reader
from ..openapi.description import ERRORS

Moment = Annotated[float | None, Query(ge=0, le=LATEST, allow_inf_nan=False)]

router = APIRouter(responses=ERRORS, tags=["usage"])


@router.get("/usage", summary="Device-seconds and ledger entries")
def usage(
    *,
    web: Carrel,
    who: Reader,
    since: Moment = None,
    until: Moment = None,
    group: Annotated[
        str,
        Query(
            max_length=64,
            description="Only usage in this group and its subgroups, of all users you may see.",
        ),
    ] = "",
    by: Annotated[UsageBy, Query(description="What `rows` are grouped by.")] = UsageBy.OWNER,
    mine: Annotated[
        bool | None,
        Query(description="Only your usage; the default is true unless a group is given."),
    ] = None,
    lines: Annotated[
        int,
        Query(
            ge=0, le=MOST_ROWS, description="The number of ledger entries to return, newest first."
        ),
    ] = MOST_ROWS,
    before: Annotated[
        int | None, Query(ge=1, le=LARGEST, description="Only entries with a smaller id.")
    ] = None,
) -> UsageReport:
    """The sum, its parts, and the entries of the ledger.

    `charged` is in the ledger, `open` is the usage since its last entry. All users see their own
    usage, teachers the usage in their groups, administrators all usage. Days begin at midnight UTC,
    weeks on Monday; terms are those of the site's calendar. Entries that extend beyond a day or the
    period are split. A group includes its subgroups as far as the caller may see them. By model,
    each device of a lease counts for the same part; work without devices is not charged and not
    included.
    """
    query = UsageQuery(
        group=group, since=since, until=until, by=by, mine=mine, lines=lines, before=before
    )
    return web.usage.report(who, query)


@router.get("/usage/proof", summary="Proof of my usage")
def usage_proof(
    web: Carrel,
    who: Reader,
    since: Moment = None,
    until: Moment = None,
    group: Annotated[str, Query(max_length=64, description="Only in this group.")] = "",
) -> ProofDocument:
    """Proves the caller's own ledger entries that overlap a period, offline; at most 2,000.

    `carrel verify` reads the answer as a file.
    """
    return web.proofs().prove_usage(who, group=group, since=since, until=until)


@router.get("/report", summary="Usage and costs of the site")
def site_report(
    web: Carrel,
    who: Reader,
    since: Annotated[
        float | None,
        Query(
            ge=0,
            le=LATEST,
            allow_inf_nan=False,
            description="By default the start of the last calendar month (UTC).",
        ),
    ] = None,
    until: Annotated[
        float | None,
        Query(
            ge=0,
            le=LATEST,
            allow_inf_nan=False,
            description="With a start, by default now.",
        ),
    ] = None,
) -> SiteReportOut:
    """For administrators: device-seconds, waits, money and kWh by group, user, course and model.

    Money and kWh need a price and watts of the device models in `settings.json`; `notes` name what
    is missing. The money of one user in one group on one model is rounded to hundredths, half to
    even; all sums add up these amounts.
    """
    courses = web.courses.access.course_names()
    return web.site_reports.report(who, since=since, until=until, courses=courses)


@router.get("/report/what-if", summary="Waits with other devices or quotas")
def what_if(
    web: Carrel,
    who: Reader,
    devices: Annotated[
        str,
        Query(
            max_length=200,
            description="`+4` adds a node of four devices, `+2x4` two such nodes, `6x8` replaces "
            "all nodes.",
        ),
    ] = "",
    quota: Annotated[
        list[Annotated[str, Query(max_length=100)]] | None,
        Query(max_length=50, description="The max quota of a group in devices, `cs101=8`."),
    ] = None,
    days: Annotated[
        int, Query(ge=1, le=MOST_DAYS, description="How far back requests were submitted.")
    ] = DEFAULT_DAYS,
) -> WhatIfOut:
    """For administrators: the ledger of the site, replayed on the site and on a changed site.

    Both replays have the same submissions and run times, and Carrel's policy with the learned
    order of the site, if it has one. A wait lasts until the first start. At most the newest 20,000
    requests are replayed, in a process of its own; that takes up to two minutes.
    """
    query = SiteChange(devices=devices, quotas=tuple(quota or ()), days=days)
    return web.what_if.replay(who, query)


@router.get("/plan/semester", summary="Demand of the courses in a term")
def semester_plan(
    web: Carrel,
    who: Reader,
    term: Annotated[
        str,
        Query(max_length=64, description="By default the running one, or the next 120 days."),
    ] = "",
) -> SemesterPlanOut:
    """For administrators: device-hours by day and course before due dates, with clashes.

    The work of one student comes from usage before earlier due dates of the course, or from trial
    runs, or from the limits of the assignment. `proposals` have the body of
    `POST /api/v1/reservations`.
    """
    return web.semester.plan(who, term)


@router.get("/efficiency", summary="Devices held and not used")
def efficiency(
    web: Carrel,
    who: Reader,
    week: Annotated[
        float | None,
        Query(
            ge=0,
            le=LATEST,
            allow_inf_nan=False,
            description="Any moment of the week; by default now, for a group a week ago.",
        ),
    ] = None,
    group: Annotated[
        str, Query(max_length=64, description="All users of a group that the caller teaches.")
    ] = "",
) -> EfficiencyOut:
    """What requests held and did not use in a week (from Monday, UTC).

    Users see their own requests at any time, teachers those of their group when the week has ended.
    `rows` are the requests with a mean use of their devices below `low_percent`.
    """
    reports = EfficiencyReports(web.context.store, web.clock)
    return reports.report(who, week=week, group=group)


@router.get("/history", summary="Utilization and wait times")
def history(
    web: Carrel,
    who: Reader,
    span: Annotated[
        str,
        Query(max_length=8, description="day (hours), week (quarters of a day), term (18 weeks)"),
    ] = "week",
    group: Annotated[str, Query(max_length=64, description="Only of this group.")] = "",
) -> HistoryOut:
    """For administrators; for a group also for its teachers.

    A wait time is the time until the first grant of a request for devices, counted when it ends.
    """
    return web.usage.pool(who, span, group)


@router.get("/forecasts", summary="Forecasts against outcomes")
def forecasts(web: Carrel, who: Reader) -> ForecastHistoryOut:
    """Predicted run times and expected starts of the last 8 weeks, compared with what happened.

    Sums over all users, which every user may see. A run time is predicted when an attempt starts,
    a wait when the queue first gives an expected start. Attempts that were cancelled or preempted,
    failed or reached their time limit, and requests that ended without a start, are only counted.
    """
    return forecast_history(web.context.store, web.clock())
