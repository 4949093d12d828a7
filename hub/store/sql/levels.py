"""How full the pool was and how long waits were, in SQL: sums per part of a window, and waits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Select,
    and_,
    case,
    func,
    insert,
    literal,
    or_,
    select,
)

from ...ports.history import Capacity, Flow, Granted, Levels, Window
from ...scheduling.model import Kind
from .. import pool
from ..tables import capacity, leases, requests
from .days import rounded_down
from .pool_rows import read_devices, read_marks


def granted(connection: Connection, window: Window) -> tuple[Granted, ...]:
    # Ranks are found in Python: the database takes several times as long for them.
    query = (
        select(requests.c.kind, leases.c.granted_at, requests.c.submitted_at)
        .join_from(leases, requests)
        .where(leases.c.epoch == 1, requests.c.devices > 0, *_of_group(window))
        .where(leases.c.granted_at >= window.since, leases.c.granted_at < window.until)
    )
    kinds = {str(kind): kind for kind in Kind}
    rows = connection.execute(query).all()
    return tuple(Granted(kinds[kind], at, at - since) for kind, at, since in rows)


def levels(connection: Connection, window: Window) -> Levels:
    lent = select().select_from(leases.join(requests)).where(requests.c.devices > 0)
    lent = lent.where(*_of_group(window))
    first = and_(leases.c.request_id == requests.c.id, leases.c.epoch == 1)
    asked = select().select_from(requests.outerjoin(leases, first)).where(requests.c.devices > 0)
    asked = asked.where(*_of_group(window))
    # What ended before the window left before it: of that, no lease is looked for. What lives and
    # what has ended are found by an index each.
    recent = (requests.c.ended_at.is_(None), requests.c.ended_at > window.since)
    left = func.coalesce(leases.c.granted_at, requests.c.ended_at)
    begun, ended = _flows(connection, window, [lent], leases.c.granted_at, leases.c.released_at)
    queued, gone = _flows(
        connection,
        window,
        [asked.where(condition) for condition in recent],
        requests.c.submitted_at,
        left,
        amount=literal(1),
    )
    return Levels(leased=begun, released=ended, queued=queued, left=gone)


def _flows(
    connection: Connection,
    window: Window,
    several: Sequence[Select[*tuple[object, ...]]],
    start: ColumnElement[float],
    end: ColumnElement[float | None],
    *,
    amount: ColumnElement[int] = requests.c.devices,
) -> tuple[tuple[Flow, ...], tuple[Flow, ...]]:
    """What began and what ended in each part of the window, of what touches it.

    Added up by the two parts together: few begin in one and end in many others.
    """
    since, width = literal(window.since, Double), window.width
    begun, gone = case((start < since, since), else_=start) - since, end - since
    columns = (
        rounded_down(connection, begun / width).label("first"),
        case((end < window.until, rounded_down(connection, gone / width))).label("last"),
        func.sum(amount).label("amount"),
        func.sum(amount * begun).label("begun"),
        func.sum(amount * gone).label("gone"),
    )
    # What is lent or queued of late is found by its end: the index of beginnings is not meant.
    touches = (start + 0.0 < window.until, or_(end.is_(None), end > window.since))
    rows = [
        row
        for of in several
        for row in connection.execute(
            of.add_columns(*columns).where(*touches).group_by("first", "last")
        )
    ]
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
    healthy = pool.healthy(read_devices(connection, read_marks(connection)).values())
    newest = select(capacity.c.healthy).order_by(capacity.c.id.desc()).limit(1)
    if connection.scalar(newest) != healthy:
        connection.execute(insert(capacity).values(at=now, healthy=healthy))


def read_capacity(connection: Connection, until: float) -> tuple[Capacity, ...]:
    query = select(capacity).where(capacity.c.at < until).order_by(capacity.c.at, capacity.c.id)
    return tuple(Capacity(at=row.at, healthy=row.healthy) for row in connection.execute(query))


def _of_group(window: Window) -> list[ColumnElement[bool]]:
    return [] if window.group is None else [requests.c.group_name == window.group]
