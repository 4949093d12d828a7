"""Series of the use of CPU, memory and devices, one row for each lease."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields

from sqlalchemy import Connection, delete, insert, select

from ...records.json_value import Json
from ...records.utilization import (
    AttemptUtilization,
    UtilizationPoint,
    UtilizationSeries,
    UtilizationSummary,
)
from .tables.core import leases, utilization
from .transactions import Transactions

_POINT = tuple(field.name for field in fields(UtilizationPoint))
_SUMMARY = [utilization.c[field.name] for field in fields(UtilizationSummary)]
_SERIES = (utilization.c.begins, utilization.c.seconds, utilization.c.points)


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


def _columns(points: Sequence[UtilizationPoint]) -> dict[str, list[Json]]:
    """Return one list for each value: half the size of one object for each point."""
    return {name: [getattr(point, name) for point in points] for name in _POINT}


def _series(
    begins: float, seconds: float, columns: Mapping[str, Sequence[float | int | None]]
) -> UtilizationSeries:
    rows = zip(*(columns[name] for name in _POINT), strict=True)
    points = tuple(UtilizationPoint(**dict(zip(_POINT, row, strict=True))) for row in rows)
    return UtilizationSeries(begins=begins, seconds=seconds, points=points)
