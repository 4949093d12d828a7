"""Utilization and wait times of the pool over a window, in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Select,
    and_,
    bindparam,
    case,
    func,
    insert,
    literal,
    or_,
    select,
)

from ....records.usage import Capacity, Flow, Granted, Levels, Window
from ....scheduling.model.snapshot import Kind
from ...rules import conversions
from ..tables.core import capacity, leases, requests
from ..tables.days import rounded_down
from ..tables.pool_rows import read_devices, read_marks


def granted(connection: Connection, window: Window) -> tuple[Granted, ...]:
    query = _grant_query(of_group=window.group is not None)
    rows = connection.execute(query, _values(window)).all()
    return tuple(
        Granted(_KINDS[kind], at, at - since, owner, group)
        for kind, at, since, owner, group in rows
    )


def levels(connection: Connection, window: Window) -> Levels:
    dialect, of_group = connection.dialect.name, window.group is not None
    values = _values(window)
    leased, released = _flows(connection, [_lease_query(dialect, of_group=of_group)], values)
    queued, left = _flows(connection, _queue_queries(dialect, of_group=of_group), values)
    return Levels(leased=leased, released=released, queued=queued, left=left)


# -- queries: built once, and run with the values of a window --------------------------------------

_SINCE, _UNTIL, _WIDTH = (bindparam(name, type_=Double) for name in ("since", "until", "width"))
_KINDS = {str(kind): kind for kind in Kind}


def _values(window: Window) -> dict[str, object]:
    return {
        "since": window.since,
        "until": window.until,
        "width": window.width,
        "group": window.group,
    }


@cache
def _grant_query(*, of_group: bool) -> Select[str, float, float, str, str]:
    # Percentiles are computed in Python: the database takes several times as long.
    return (
        select(requests.c.kind, leases.c.granted_at, requests.c.submitted_at)
        .add_columns(requests.c.owner, requests.c.group_name)
        .join_from(leases, requests)
        .where(leases.c.epoch == 1, requests.c.devices > 0, *_of_group(of_group=of_group))
        .where(leases.c.granted_at >= _SINCE, leases.c.granted_at < _UNTIL)
    )


@cache
def _lease_query(dialect: str, *, of_group: bool) -> Select[*tuple[object, ...]]:
    start, end = leases.c.granted_at, leases.c.released_at
    query = select(*_flow_columns(dialect, start, end, requests.c.devices))
    query = query.select_from(leases.join(requests)).where(requests.c.devices > 0)
    query = query.where(*_of_group(of_group=of_group))
    return _touching(query, start, end)


@cache
def _queue_queries(dialect: str, *, of_group: bool) -> Sequence[Select[*tuple[object, ...]]]:
    first = and_(leases.c.request_id == requests.c.id, leases.c.epoch == 1)
    left = func.coalesce(leases.c.granted_at, requests.c.ended_at)
    query = select(*_flow_columns(dialect, requests.c.submitted_at, left, literal(1)))
    query = query.select_from(requests.outerjoin(leases, first)).where(requests.c.devices > 0)
    query = query.where(*_of_group(of_group=of_group))
    # Requests that ended before the window are excluded, so that their leases are not read. Two
    # queries, because live requests and ended ones have different indexes.
    recent = (requests.c.ended_at.is_(None), requests.c.ended_at > _SINCE)
    return [_touching(query.where(part), requests.c.submitted_at, left) for part in recent]


def _flow_columns(
    dialect: str,
    start: ColumnElement[float],
    end: ColumnElement[float | None],
    amount: ColumnElement[int],
) -> Sequence[ColumnElement[Any]]:
    """Return the sums of the amounts that began and that ended in each bucket of the window.

    Rows are grouped by the pair of first and last bucket, of which there are few.
    """
    begun, gone = case((start < _SINCE, _SINCE), else_=start) - _SINCE, end - _SINCE
    return (
        rounded_down(dialect, begun / _WIDTH).label("first"),
        case((end < _UNTIL, rounded_down(dialect, gone / _WIDTH))).label("last"),
        func.sum(amount).label("amount"),
        func.sum(amount * begun).label("begun"),
        func.sum(amount * gone).label("gone"),
    )


def _touching(
    query: Select[*tuple[object, ...]],
    start: ColumnElement[float],
    end: ColumnElement[float | None],
) -> Select[*tuple[object, ...]]:
    # ``start + 0.0``: the index on the end is to be used, not the one on the start.
    touches = (start + 0.0 < _UNTIL, or_(end.is_(None), end > _SINCE))
    return query.where(*touches).group_by("first", "last")


def _of_group(*, of_group: bool) -> list[ColumnElement[bool]]:
    return [requests.c.group_name == bindparam("group")] if of_group else []


# -- results ---------------------------------------------------------------------------------


def _flows(
    connection: Connection,
    queries: Sequence[Select[*tuple[object, ...]]],
    values: Mapping[str, object],
) -> tuple[tuple[Flow, ...], tuple[Flow, ...]]:
    """Return the amounts that began and that ended, by bucket of the window."""
    rows = [row for query in queries for row in connection.execute(query, values)]
    return (
        _flow((row.first, row.amount, row.begun) for row in rows),
        _flow((row.last, row.amount, row.gone) for row in rows if row.last is not None),
    )


def _flow(rows: Iterable[tuple[int, float, float]]) -> tuple[Flow, ...]:
    """Add up rows of bucket, amount and offset."""
    amounts, offsets = dict[int, float](), dict[int, float]()
    for bucket, amount, offset in rows:
        amounts[bucket] = amounts.get(bucket, 0.0) + float(amount)
        offsets[bucket] = offsets.get(bucket, 0.0) + float(offset)
    return tuple(
        Flow(bucket=bucket, amount=amounts[bucket], offset=offsets[bucket])
        for bucket in sorted(amounts)
    )


def note_capacity(connection: Connection, now: float) -> None:
    healthy = conversions.healthy(read_devices(connection, read_marks(connection)).values())
    newest = select(capacity.c.healthy).order_by(capacity.c.id.desc()).limit(1)
    if connection.scalar(newest) != healthy:
        connection.execute(insert(capacity).values(at=now, healthy=healthy))


def read_capacity(connection: Connection, until: float) -> tuple[Capacity, ...]:
    query = select(capacity).where(capacity.c.at < until).order_by(capacity.c.at, capacity.c.id)
    return tuple(Capacity(at=row.at, healthy=row.healthy) for row in connection.execute(query))
