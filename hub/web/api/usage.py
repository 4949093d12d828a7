"""REST about the past: device-seconds down to the ledger, how full the pool was, and waits."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from ...records.usage import UsageBy
from ...schemas import LARGEST, LATEST, UsageReport
from ...schemas.pool_history import HistoryOut
from ...usage.reports import MOST_ROWS, UsageQuery
from ..dependencies.callers import Carrel, Reader
from ..openapi.description import ERRORS

Moment = Annotated[float | None, Query(ge=0, le=LATEST, allow_inf_nan=False)]

router = APIRouter(responses=ERRORS, tags=["usage"])


@router.get("/usage", summary="Device-seconds, down to the ledger")
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
            description="Only in this group and those below it: of all whom you may see in them.",
        ),
    ] = "",
    by: Annotated[UsageBy, Query(description="What `rows` are added up for.")] = UsageBy.OWNER,
    mine: Annotated[
        bool | None,
        Query(description="Only yours, or not; by default only yours unless a group is named."),
    ] = None,
    lines: Annotated[
        int, Query(ge=0, le=MOST_ROWS, description="The newest lines of the ledger to show.")
    ] = MOST_ROWS,
    before: Annotated[
        int | None, Query(ge=1, le=LARGEST, description="Only lines with a smaller id.")
    ] = None,
) -> UsageReport:
    """The sum, what it is made of, and the lines of the ledger.

    `charged` stands in the ledger, `open` has been used since its last line. Everybody sees
    their own, teachers what was used in their groups, administrators everything. Days begin at
    midnight UTC, weeks with Monday; terms are those of the site's calendar. Of a line that goes
    beyond a day or beyond the span, each part counts where it belongs. A group counts what those
    below it used as well, as far as you may see it. By model, each device of a lease counts for
    the same part; work without a device is charged nothing and is in no sum.
    """
    asked = UsageQuery(
        group=group, since=since, until=until, by=by, mine=mine, lines=lines, before=before
    )
    return web.usage.report(who, asked)


@router.get("/history", summary="How full the pool was, and how long waits were")
def history(
    web: Carrel,
    who: Reader,
    span: Annotated[
        str,
        Query(max_length=8, description="day (hours), week (quarters of a day), term (18 weeks)"),
    ] = "week",
    group: Annotated[str, Query(max_length=64, description="Only of this group.")] = "",
) -> HistoryOut:
    """For administrators; of a group also for its teachers.

    A wait is the time until the first grant, of requests for devices; it counts where it ended.
    """
    return web.usage.pool(who, span, group)
