"""REST routes for the past: device-seconds, ledger, utilization and wait times."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from ...proofs.document import ProofDocument
from ...records.usage import UsageBy
from ...schemas import LARGEST, LATEST, UsageReport
from ...schemas.usage import HistoryOut
from ...usage.reports import MOST_ROWS, UsageQuery
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
    """Proves the caller's own ledger entries that overlap a period, offline; at most 10,000.

    `carrel verify` reads the answer as a file.
    """
    return web.proofs().prove_usage(who, group=group, since=since, until=until)


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
