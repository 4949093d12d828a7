"""How full the pool was and how long waits were, in SQL: sums per part of a window, and waits."""

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
    query = _granted(of_group=window.group is not None)
    rows = connection.execute(query, _values(window)).all()
    return tuple(Granted(_KINDS[kind], at, at - since) for kind, at, since in rows)


def levels(connection: Connection, window: Window) -> Levels:
    dialect, of_group = connection.dialect.name, window.group is not None
    values = _values(window)
    begun, ended = _flows(connection, [_lent(dialect, of_group=of_group)], values)
    queued, gone = _flows(connection, _waited(dialect, of_group=of_group), values)
    return Levels(leased=begun, released=ended, queued=queued, left=gone)


# -- the questions: each is made once, and asked with the values of a window -----------------------

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
def _granted(*, of_group: bool) -> Select[str, float, float]:
    # Ranks are found in Python: the database takes several times as long for them.
    return (
        select(requests.c.kind, leases.c.granted_at, requests.c.submitted_at)
        .join_from(leases, requests)
        .where(leases.c.epoch == 1, requests.c.devices > 0, *_of_group(of_group=of_group))
        .where(leases.c.granted_at >= _SINCE, leases.c.granted_at < _UNTIL)
    )


@cache
def _lent(dialect: str, *, of_group: bool) -> Select[*tuple[object, ...]]:
    lent = select(*_moved(dialect, leases.c.granted_at, leases.c.released_at, requests.c.devices))
    lent = lent.select_from(leases.join(requests)).where(requests.c.devices > 0)
    lent = lent.where(*_of_group(of_group=of_group))
    return _touching(lent, leases.c.granted_at, leases.c.released_at)


@cache
def _waited(dialect: str, *, of_group: bool) -> Sequence[Select[*tuple[object, ...]]]:
    first = and_(leases.c.request_id == requests.c.id, leases.c.epoch == 1)
    left = func.coalesce(leases.c.granted_at, requests.c.ended_at)
    asked = select(*_moved(dialect, requests.c.submitted_at, left, literal(1)))
    asked = asked.select_from(requests.outerjoin(leases, first)).where(requests.c.devices > 0)
    asked = asked.where(*_of_group(of_group=of_group))
    # What ended before the window left before it: of that, no lease is looked for. What lives and
    # what has ended are found by an index each.
    recent = (requests.c.ended_at.is_(None), requests.c.ended_at > _SINCE)
    return [_touching(asked.where(each), requests.c.submitted_at, left) for each in recent]


def _moved(
    dialect: str,
    start: ColumnElement[float],
    end: ColumnElement[float | None],
    amount: ColumnElement[int],
) -> Sequence[ColumnElement[Any]]:
    """What began and what ended in each part of the window.

    Added up by the two parts together: few begin in one and end in many others.
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
    # What is lent or queued of late is found by its end: the index of beginnings is not meant.
    touches = (start + 0.0 < _UNTIL, or_(end.is_(None), end > _SINCE))
    return query.where(*touches).group_by("first", "last")


def _of_group(*, of_group: bool) -> list[ColumnElement[bool]]:
    return [requests.c.group_name == bindparam("group")] if of_group else []


# -- their answers ---------------------------------------------------------------------------


def _flows(
    connection: Connection,
    queries: Sequence[Select[*tuple[object, ...]]],
    values: Mapping[str, object],
) -> tuple[tuple[Flow, ...], tuple[Flow, ...]]:
    """What began and what ended in each part of the window, of what touches it."""
    rows = [row for query in queries for row in connection.execute(query, values)]
    return (
        _flow((row.first, row.amount, row.begun) for row in rows),
        _flow((row.last, row.amount, row.gone) for row in rows if row.last is not None),
    )


def _flow(moved: Iterable[tuple[int, float, float]]) -> tuple[Flow, ...]:
    """Of parts of the window, amounts and offsets."""
    amounts, offsets = dict[int, float](), dict[int, float]()
    for bucket, amount, offset in moved:
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
