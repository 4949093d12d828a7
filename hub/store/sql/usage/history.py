"""What looks back, in SQL: sums where the database can make them, and only odd lines one by one.

Of the ledger, whole days are summed already (``sums``). At the ends of a window that has others,
and by request, everything that lies within is added up by the database; the few lines that span
an edge are read and split.
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
from ....usage.aggregation import UsageInterval, added_up, charged, portions
from ..tables.core import leases, ledger, requests
from ..tables.days import first_day, spans_midnight
from ..tables.owner_filter import of_whom, whom
from ..tables.request_rows import to_ledger
from . import model_sums
from .daily_sums import whole_days
from .ledger_sums import LedgerSums
from .model_sums import ModelSums


def used(
    connection: Connection,
    sums: LedgerSums,
    of_models: ModelSums,
    which: LedgerFilter,
    by: UsageBy,
    *,
    now: float,
) -> tuple[UsageRow, ...]:
    open_ = _open(connection, which, now, by)
    found = [part for each in open_ for part in portions(each, which, by)]
    days = whole_days(which)
    if by is UsageBy.REQUEST or (days is not None and not days):
        return added_up([*found, *_of_lines(connection, which, by)], by)
    if by is UsageBy.MODEL:
        found += of_models.used(connection, which, days)
    else:
        found += sums.used(connection, which, days, by)
    for edge in _edges(which, days):
        found += _of_lines(connection, edge, by)
    return added_up(found, by)


def _edges(which: LedgerFilter, days: range | None) -> Iterator[LedgerFilter]:
    """What a window has before the first of its whole days and after the last."""
    if days is None:
        return
    if which.since is not None and which.since < days.start * DAY:
        yield replace(which, until=days.start * DAY)
    if which.until is not None and which.until > days.stop * DAY:
        yield replace(which, since=days.stop * DAY)


def _of_lines(connection: Connection, which: LedgerFilter, by: UsageBy) -> Iterator[UsageRow]:
    yield from _whole_lines(connection, which, by)
    for interval in _odd_lines(connection, which, by):
        yield from portions(interval, which, by)


def used_requests(
    connection: Connection, which: LedgerFilter, *, now: float, most: int, counted: bool
) -> UsedRequests:
    """First which are the newest, then the sums of these alone."""
    by = UsageBy.REQUEST
    odd = (*_odd_lines(connection, which, by), *_open(connection, which, now, by))
    parts = [part for interval in odd for part in portions(interval, which, by)]
    inside = _whole_of(connection, which, by)
    request_id = ledger.c.request_id
    names = _newest(connection, inside, most)
    of_odd = {part.request_id for part in parts}
    found = list(_whole_lines(connection, which, by, sorted({*names, *of_odd})))
    rows = added_up([*parts, *found], by)[:most]
    if not counted:
        return UsedRequests(rows=rows, total=len(rows))
    total = connection.scalar(select(func.count(request_id.distinct())).where(*inside)) or 0
    return UsedRequests(rows=rows, total=total + len(of_odd - {row.request_id for row in found}))


def _newest(
    connection: Connection, inside: Sequence[ColumnElement[bool]], most: int
) -> Sequence[str]:
    """Which requests were used last: among the newest lines, unless these are of too few."""
    request_id, walked = ledger.c.request_id, _LINES_A_REQUEST * most
    lines = select(request_id).where(*inside).order_by(ledger.c.ends_at.desc(), request_id)
    names = list(dict.fromkeys(connection.scalars(lines.limit(walked))))
    if len(names) < most:
        every = select(request_id).where(*inside).group_by(request_id)
        names = list(connection.scalars(every.order_by(_LAST.desc(), request_id).limit(most)))
    return names[:most]


_LINES_A_REQUEST = 4
"""A request that ran for some minutes has about as many lines."""
_LAST = func.max(ledger.c.ends_at)


def _whole_lines(
    connection: Connection,
    which: LedgerFilter,
    by: UsageBy,
    request_ids: Sequence[str] | None = None,
) -> Iterator[UsageRow]:
    keys, of_devices = _keys(connection, by), by is UsageBy.MODEL
    amount = model_sums.OF_ONE_DEVICE if of_devices else ledger.c.device_seconds
    query = (
        select(
            *keys,
            func.sum(amount).label("charged"),
            func.min(ledger.c.starts_at).label("first"),
            _LAST.label("last"),
        )
        .select_from(model_sums.LINES if of_devices else ledger)
        .where(*_whole_of(connection, which, by))
    )
    if request_ids is not None:
        query = query.where(ledger.c.request_id.in_(request_ids))
    return map(_used, connection.execute(query.group_by(*keys)))


def _whole_of(
    connection: Connection, which: LedgerFilter, by: UsageBy
) -> list[ColumnElement[bool]]:
    # Said by both ends, so that an index is gone through from one to the other.
    conditions = of_whom(whom(which), ledger)
    if which.since is not None:
        conditions += [ledger.c.ends_at > which.since, ledger.c.starts_at >= which.since]
    if which.until is not None:
        conditions += [ledger.c.ends_at <= which.until]
    if by is UsageBy.DAY:
        conditions += [~spans_midnight(connection)]
    return conditions


def _used(row: Row[*tuple[Any, ...]]) -> UsageRow:
    named = row._mapping
    return UsageRow(
        owner=named.get("owner", ""),
        group=named.get("group_name", ""),
        request_id=named.get("request_id", ""),
        day=named["day"] * DAY if "day" in named else None,
        model=named.get("model", ""),
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
        case _:
            return (model_sums.MODEL,)


def _odd_lines(connection: Connection, which: LedgerFilter, by: UsageBy) -> Iterator[UsageInterval]:
    whose = of_whom(whom(which), ledger)
    conditions = (*whose, _odd(connection, which, by), *_touching(which))
    if by is UsageBy.MODEL:
        return model_sums.lines(connection, *conditions)
    return map(charged, to_ledger(connection.execute(select(ledger).where(*conditions))))


def _open(
    connection: Connection, which: LedgerFilter, now: float, by: UsageBy
) -> Iterator[UsageInterval]:
    query = model_sums.OPEN if by is UsageBy.MODEL else _OPEN
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


# Of everybody: few leases live, but one person may have thousands of requests to begin at.
_OPEN = (
    select(requests.c.owner, requests.c.group_name, requests.c.id, requests.c.devices)
    .add_columns(leases.c.charged_until, literal("").label("model"))
    .join_from(leases, requests)
    .where(leases.c.released_at.is_(None), requests.c.devices > 0)
    .where(leases.c.charged_until < bindparam("now", type_=Double))
)


def _odd(connection: Connection, which: LedgerFilter, by: UsageBy) -> ColumnElement[bool]:
    """Lines that go beyond the window, or beyond the day that they begin on."""
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
    newest = select(ledger.c.id).where(*of_whom(whom(which), ledger), *_touching(which))
    if before is not None:
        newest = newest.where(ledger.c.id < before)
    # The ids come from an index alone, and only so many whole lines are read.
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
    lent = (
        select(requests.c.kind, func.count())
        .join_from(leases, requests)
        .where(leases.c.released_at.is_(None))
        .group_by(requests.c.kind)
    )
    return Census(
        ends={
            (Kind(kind), CauseCode(code)): number for kind, code, number in connection.execute(ends)
        },
        leases={Kind(kind): number for kind, number in connection.execute(lent)},
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
