"""Series of the use of CPU, memory and devices, one row for each lease."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import groupby
from typing import TypeVar

from sqlalchemy import Connection, delete, false, func, insert, or_, select

from ...records.json_value import Json
from ...records.utilization import (
    AttemptUtilization,
    HeldDevices,
    UtilizationPoint,
    UtilizationSeries,
    UtilizationSummary,
)
from .tables.core import devices, lease_devices, leases, requests, utilization
from .transactions import Transactions

_POINT = tuple(field.name for field in fields(UtilizationPoint))
_SUMMARY = [utilization.c[field.name] for field in fields(UtilizationSummary)]
_AT_ONCE = 20
"""Rows with points that are fetched at once."""
_SERIES = (utilization.c.begins, utilization.c.seconds, utilization.c.points)

T = TypeVar("T")


class SqlUtilization:
    """The part of ``SqlStore`` for the use of resources; every method is one transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def put_utilization(self, found: Mapping[str, UtilizationSeries]) -> None:
        if found:
            self._transactions.write(lambda c: put(c, found))

    def utilization(self, request_id: str) -> tuple[AttemptUtilization, ...]:
        return self._transactions.read(lambda c: read_request(c, request_id))

    def utilization_of(self, lease_ids: Sequence[str]) -> Mapping[str, UtilizationSeries]:
        return self._transactions.read(lambda c: read_series(c, lease_ids))

    def utilization_summaries(self, lease_ids: Sequence[str]) -> Mapping[str, UtilizationSummary]:
        return self._transactions.read(lambda c: read_summaries(c, lease_ids))

    def fold_held_devices(
        self, since: float, until: float, fold: Callable[[Iterator[HeldDevices]], T]
    ) -> T:
        return self._transactions.read(lambda c: fold(read_held(c, since, until)))


def put(connection: Connection, found: Mapping[str, UtilizationSeries]) -> None:
    known = connection.scalars(select(leases.c.id).where(leases.c.id.in_(list(found)))).all()
    rows = [
        {
            "lease_id": lease_id,
            "begins": found[lease_id].begins,
            "seconds": found[lease_id].seconds,
            "points": _columns(found[lease_id].points),
            **asdict(found[lease_id].summary),
        }
        for lease_id in known
    ]
    connection.execute(delete(utilization).where(utilization.c.lease_id.in_(known)))
    if rows:
        connection.execute(insert(utilization), rows)


def read_request(connection: Connection, request_id: str) -> tuple[AttemptUtilization, ...]:
    query = (
        select(leases.c.id, leases.c.epoch, leases.c.granted_at, *_SERIES)
        .join_from(leases, utilization)
        .where(leases.c.request_id == request_id)
        .order_by(leases.c.epoch)
    )
    return tuple(
        AttemptUtilization(
            lease_id=row.id,
            request_id=request_id,
            epoch=row.epoch,
            granted_at=row.granted_at,
            series=_series(row.begins, row.seconds, row.points),
        )
        for row in connection.execute(query)
    )


def read_series(
    connection: Connection, lease_ids: Sequence[str]
) -> Mapping[str, UtilizationSeries]:
    query = select(utilization.c.lease_id, *_SERIES).where(utilization.c.lease_id.in_(lease_ids))
    return {
        row.lease_id: _series(row.begins, row.seconds, row.points)
        for row in connection.execute(query)
    }


def read_summaries(
    connection: Connection, lease_ids: Sequence[str]
) -> Mapping[str, UtilizationSummary]:
    query = select(utilization.c.lease_id, *_SUMMARY).where(utilization.c.lease_id.in_(lease_ids))
    return {
        lease_id: UtilizationSummary(
            **dict(zip((column.name for column in _SUMMARY), values, strict=True))
        )
        for lease_id, *values in connection.execute(query)
    }


def read_held(connection: Connection, since: float, until: float) -> Iterator[HeldDevices]:
    """Yield the leases with devices and a series that overlap a period, in the order of grants."""
    overlapping = (
        leases.c.granted_at < until,
        or_(leases.c.released_at.is_(None), leases.c.released_at > since),
    )
    models = (
        select(leases.c.id, func.coalesce(devices.c.model, "").label("model"))
        .add_columns(func.coalesce(devices.c.simulated, false()).label("simulated"))
        .select_from(
            leases.join(lease_devices, lease_devices.c.lease_id == leases.c.id).outerjoin(
                devices, devices.c.id == lease_devices.c.device_id
            )
        )
        .where(*overlapping)
        .order_by(leases.c.id, lease_devices.c.position)
    )
    held = {
        lease_id: tuple(rows)
        for lease_id, rows in groupby(connection.execute(models), lambda row: row.id)
    }
    query = (
        select(leases.c.id, leases.c.granted_at, leases.c.released_at, *_SERIES)
        .add_columns(requests.c.owner, requests.c.group_name)
        .select_from(leases.join(requests).join(utilization))
        .where(*overlapping)
        .order_by(leases.c.granted_at, leases.c.id)
    )
    for row in connection.execute(query, execution_options={"yield_per": _AT_ONCE}):
        if row.id in held:
            yield HeldDevices(
                owner=row.owner,
                group=row.group_name,
                models=tuple(each.model for each in held[row.id]),
                simulated=all(each.simulated for each in held[row.id]),
                granted_at=row.granted_at,
                released_at=row.released_at,
                series=_series(row.begins, row.seconds, row.points),
            )


def _columns(points: Sequence[UtilizationPoint]) -> dict[str, list[Json]]:
    """Return one list for each value: half the size of one object for each point."""
    return {name: [getattr(point, name) for point in points] for name in _POINT}


def _series(
    begins: float, seconds: float, columns: Mapping[str, Sequence[float | int | None]]
) -> UtilizationSeries:
    # Rows of earlier versions lack values that were not measured then.
    known = [name for name in _POINT if name in columns]
    rows = zip(*(columns[name] for name in known), strict=True)
    points = tuple(UtilizationPoint(**dict(zip(known, row, strict=True))) for row in rows)
    return UtilizationSeries(begins=begins, seconds=seconds, points=points)
