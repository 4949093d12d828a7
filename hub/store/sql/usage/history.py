"""Usage reports, ledger lines and counts for monitoring, in SQL.

Whole days are in cached sums (``LedgerSums``, ``ModelSums``). At the edges of a window, and for
sums by request, the database adds up the lines that lie within; the few lines that cross an edge
are read and split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Row,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    text,
)

from ....records.ledger import LedgerEntry
from ....records.requests import CauseCode
from ....records.usage import (
    DAY,
    WAIT_BOUNDS,
    Census,
    LedgerFilter,
    UsageBy,
    UsageRow,
    UsedRequests,
    WaitCount,
)
from ....scheduling.model.snapshot import Kind
from ....usage.aggregation import BY_DEVICE, UsageInterval, added_up, charged, portions
from ..tables.core import leases, ledger, requests
from ..tables.days import first_day, spans_midnight
from ..tables.owner_filter import owner_conditions, owner_values
from ..tables.request_rows import to_ledger
from .daily_sums import whole_days
from .ledger_sums import LedgerSums
from .model_sums import (
    DEVICE_LINES,
    MODEL,
    OPEN_DEVICES,
    PER_DEVICE,
    ModelSums,
    lines_by_device,
)


def used(
    connection: Connection,
    sums: LedgerSums,
    model_sums: ModelSums,
    which: LedgerFilter,
    by: UsageBy,
    *,
    now: float,
) -> tuple[UsageRow, ...]:
    """Return the usage that matches a filter, with running leases up to ``now``."""
    intervals = _open(connection, which, now, by)
    rows = [part for interval in intervals for part in portions(interval, which, by)]
    days = whole_days(which)
    if by is UsageBy.REQUEST or (days is not None and not days):
        return added_up([*rows, *_of_lines(connection, which, by)], by)
    if by in BY_DEVICE:
        rows += model_sums.used(connection, which, days, by)
    else:
        rows += sums.used(connection, which, days, by)
    for edge in _edges(which, days):
        rows += _of_lines(connection, edge, by)
    return added_up(rows, by)


def _edges(which: LedgerFilter, days: range | None) -> Iterator[LedgerFilter]:
    """Yield the parts of a window before its first whole day and after its last one."""
    if days is None:
        return
    if which.since is not None and which.since < days.start * DAY:
        yield replace(which, until=days.start * DAY)
    if which.until is not None and which.until > days.stop * DAY:
        yield replace(which, since=days.stop * DAY)


def _of_lines(connection: Connection, which: LedgerFilter, by: UsageBy) -> Iterator[UsageRow]:
    yield from _inner_lines(connection, which, by)
    for interval in _crossing_lines(connection, which, by):
        yield from portions(interval, which, by)


def used_requests(
    connection: Connection, which: LedgerFilter, *, now: float, most: int, counted: bool
) -> UsedRequests:
    """Return the usage of the ``most`` requests that were used last.

    The newest requests are found first, so that only their lines are added up.

    Args:
        counted: also count all matching requests.
    """
    by = UsageBy.REQUEST
    crossing = (*_crossing_lines(connection, which, by), *_open(connection, which, now, by))
    parts = [part for interval in crossing for part in portions(interval, which, by)]
    inside = _inside(connection, which, by)
    request_id = ledger.c.request_id
    ids = _newest(connection, inside, most)
    split_ids = {part.request_id for part in parts}
    inner = list(_inner_lines(connection, which, by, sorted({*ids, *split_ids})))
    rows = added_up([*parts, *inner], by)[:most]
    if not counted:
        return UsedRequests(rows=rows, total=len(rows))
    total = connection.scalar(select(func.count(request_id.distinct())).where(*inside)) or 0
    only_split = split_ids - {row.request_id for row in inner}
    return UsedRequests(rows=rows, total=total + len(only_split))


def _newest(
    connection: Connection, inside: Sequence[ColumnElement[bool]], most: int
) -> Sequence[str]:
    """Return the ids of the requests that were used last.

    They are taken from the newest lines; if these belong to fewer than ``most`` requests, all lines
    are scanned.
    """
    request_id, limit = ledger.c.request_id, _LINES_PER_REQUEST * most
    lines = select(request_id).where(*inside).order_by(ledger.c.ends_at.desc(), request_id)
    ids = list(dict.fromkeys(connection.scalars(lines.limit(limit))))
    if len(ids) < most:
        scan = select(request_id).where(*inside).group_by(request_id)
        ids = list(connection.scalars(scan.order_by(_LAST.desc(), request_id).limit(most)))
    return ids[:most]


_LINES_PER_REQUEST = 4
"""Typical number of lines of a request that ran for some minutes."""
_LAST = func.max(ledger.c.ends_at)


def _inner_lines(
    connection: Connection,
    which: LedgerFilter,
    by: UsageBy,
    request_ids: Sequence[str] | None = None,
) -> Iterator[UsageRow]:
    """Add up the lines that lie completely within the window."""
    keys, per_device = _keys(connection, by), by in BY_DEVICE
    amount = PER_DEVICE if per_device else ledger.c.device_seconds
    query = (
        select(
            *keys,
            func.sum(amount).label("charged"),
            func.min(ledger.c.starts_at).label("first"),
            _LAST.label("last"),
        )
        .select_from(DEVICE_LINES if per_device else ledger)
        .where(*_inside(connection, which, by))
    )
    if request_ids is not None:
        query = query.where(ledger.c.request_id.in_(request_ids))
    return map(_usage_row, connection.execute(query.group_by(*keys)))


def _inside(connection: Connection, which: LedgerFilter, by: UsageBy) -> list[ColumnElement[bool]]:
    # Conditions on both ends, so that the database scans only a range of the index.
    conditions = owner_conditions(owner_values(which), ledger)
    if which.since is not None:
        conditions += [ledger.c.ends_at > which.since, ledger.c.starts_at >= which.since]
    if which.until is not None:
        conditions += [ledger.c.ends_at <= which.until]
    if by is UsageBy.DAY:
        conditions += [~spans_midnight(connection)]
    return conditions


def _usage_row(row: Row[*tuple[Any, ...]]) -> UsageRow:
    columns = row._mapping
    return UsageRow(
        owner=columns.get("owner", ""),
        group=columns.get("group_name", ""),
        request_id=columns.get("request_id", ""),
        day=columns["day"] * DAY if "day" in columns else None,
        model=columns.get("model", ""),
        charged=row.charged,
        first=row.first,
        last=row.last,
    )


def _keys(connection: Connection, by: UsageBy) -> Sequence[ColumnElement[Any]]:
    match by:
        case UsageBy.DAY:
            return (first_day(connection).label("day"),)
        case UsageBy.REQUEST:
            return (ledger.c.owner, ledger.c.group_name, ledger.c.request_id)
        case UsageBy.OWNER:
            return (ledger.c.owner, ledger.c.group_name)
        case UsageBy.OWNER_MODEL:
            return (ledger.c.owner, ledger.c.group_name, MODEL)
        case _:
            return (MODEL,)


def _crossing_lines(
    connection: Connection, which: LedgerFilter, by: UsageBy
) -> Iterator[UsageInterval]:
    """Yield the lines that must be split."""
    owners = owner_conditions(owner_values(which), ledger)
    conditions = (*owners, _crossing(connection, which, by), *_touching(which))
    if by in BY_DEVICE:
        return lines_by_device(connection, *conditions)
    return map(charged, to_ledger(connection.execute(select(ledger).where(*conditions))))


def _open(
    connection: Connection, which: LedgerFilter, now: float, by: UsageBy
) -> Iterator[UsageInterval]:
    query = OPEN_DEVICES if by in BY_DEVICE else _OPEN
    for row in connection.execute(query, {"now": now}):
        if which.takes(row.owner, row.group_name):
            yield UsageInterval(
                owner=row.owner,
                group=row.group_name,
                request_id=row.id,
                starts_at=row.charged_until,
                ends_at=now,
                device_seconds=row.devices * (now - row.charged_until),
                open=True,
                model=row.model,
            )


# Of all owners, filtered afterwards: few leases are live, but an owner may have thousands of
# requests.
_OPEN = (
    select(requests.c.owner, requests.c.group_name, requests.c.id, requests.c.devices)
    .add_columns(leases.c.charged_until, literal("").label("model"))
    .join_from(leases, requests)
    .where(leases.c.released_at.is_(None), requests.c.devices > 0)
    .where(leases.c.charged_until < bindparam("now", type_=Double))
)


def _crossing(connection: Connection, which: LedgerFilter, by: UsageBy) -> ColumnElement[bool]:
    """Return the condition for lines that cross an edge of the window, or midnight."""
    conditions: list[ColumnElement[bool]] = []
    if which.since is not None:
        conditions.append(ledger.c.starts_at < which.since)
    if which.until is not None:
        conditions.append(ledger.c.ends_at > which.until)
    if by is UsageBy.DAY:
        conditions.append(spans_midnight(connection))
    return or_(*conditions) if conditions else literal(False)


def _touching(which: LedgerFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if which.since is not None:
        conditions.append(ledger.c.ends_at > which.since)
    if which.until is not None:
        conditions.append(ledger.c.starts_at < which.until)
    return conditions


def ledger_lines(
    connection: Connection, which: LedgerFilter, *, limit: int, before: int | None
) -> tuple[LedgerEntry, ...]:
    newest = select(ledger.c.id).where(
        *owner_conditions(owner_values(which), ledger), *_touching(which)
    )
    if before is not None:
        newest = newest.where(ledger.c.id < before)
    # The ids come from an index; only these lines are read as a whole.
    newest = newest.order_by(ledger.c.id.desc()).limit(max(0, limit))
    query = select(ledger).where(ledger.c.id.in_(newest)).order_by(ledger.c.id.desc())
    return tuple(to_ledger(connection.execute(query)))


# -- counts for monitoring --------------------------------------------------------------------


def census(connection: Connection) -> Census:
    ends = (
        select(requests.c.kind, requests.c.cause_code, func.count())
        .where(requests.c.ended_at.is_not(None), requests.c.cause_code.is_not(None))
        .group_by(requests.c.kind, requests.c.cause_code)
    )
    live = (
        select(requests.c.kind, func.count())
        .join_from(leases, requests)
        .where(leases.c.released_at.is_(None))
        .group_by(requests.c.kind)
    )
    return Census(
        ends={
            (Kind(kind), CauseCode(code)): number for kind, code, number in connection.execute(ends)
        },
        leases={Kind(kind): number for kind, number in connection.execute(live)},
        waits=_all_waits(connection),
        size_bytes=_size(connection),
    )


def _all_waits(connection: Connection) -> dict[Kind, WaitCount]:
    wait = leases.c.granted_at - requests.c.submitted_at
    within = [func.sum(case((wait <= bound, 1), else_=0)) for bound in WAIT_BOUNDS]
    query = (
        select(requests.c.kind, func.count(), func.sum(wait), *within)
        .join_from(leases, requests)
        .where(leases.c.epoch == 1, requests.c.devices > 0)
        .group_by(requests.c.kind)
    )
    return {
        Kind(kind): WaitCount(within=tuple(counts), count=number, seconds=seconds)
        for kind, number, seconds, *counts in connection.execute(query)
    }


def _size(connection: Connection) -> int:
    if connection.dialect.name == "sqlite":
        query = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    else:
        query = "SELECT pg_database_size(current_database())"
    return int(connection.scalar(text(query)) or 0)
