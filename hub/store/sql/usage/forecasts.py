"""Forecasts of run times and waits in SQL, what became of them, and times of cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, Table, delete, func, insert, select

from ....interfaces.run_times import CellTimes, ForecastOutcome, RunTimeForecast
from ....records.usage import DAY
from ....scheduling.model.plan import Estimate
from ....scheduling.model.states import State
from ..tables.core import leases, requests
from ..tables.forecasts import cell_times, run_time_forecasts, wait_forecasts

KEPT_SECONDS = 70 * DAY
KEPT_ATTEMPTS = 5000
"""Number of attempts whose cell times are kept."""


def put_run_times(connection: Connection, found: Mapping[str, RunTimeForecast], now: float) -> None:
    rows = [
        {
            "lease_id": lease_id,
            "made_at": now,
            "expected": each.seconds,
            "low": each.low,
            "high": each.high,
            "basis": each.basis or "",
        }
        for lease_id, each in found.items()
    ]
    _put(connection, run_time_forecasts, "lease_id", rows, now)


def put_waits(connection: Connection, found: Mapping[str, Estimate], now: float) -> None:
    rows = [
        {"request_id": request_id, "made_at": now, "earliest": each.at, "latest": each.latest}
        for request_id, each in found.items()
    ]
    _put(connection, wait_forecasts, "request_id", rows, now)


def _put(
    connection: Connection,
    table: Table,
    key: str,
    rows: Sequence[Mapping[str, object]],
    now: float,
) -> None:
    """Insert the rows whose key is new, and delete what is older than ``KEPT_SECONDS``."""
    connection.execute(delete(table).where(table.c.made_at < now - KEPT_SECONDS))
    column = table.c[key]
    known = set(connection.scalars(select(column).where(column.in_([row[key] for row in rows]))))
    new = [dict(row) for row in rows if row[key] not in known]
    if new:
        connection.execute(insert(table), new)


def run_time_outcomes(
    connection: Connection, since: float, limit: int
) -> tuple[ForecastOutcome, ...]:
    table = run_time_forecasts.c
    complete = (requests.c.state == State.SUCCEEDED) & (requests.c.epoch == leases.c.epoch)
    query = (
        select(
            leases.c.granted_at,
            leases.c.released_at,
            requests.c.ended_at,
            complete.label("complete"),
            table.expected,
            table.low,
            table.high,
        )
        .join_from(run_time_forecasts, leases)
        .join(requests, requests.c.id == leases.c.request_id)
        .where(leases.c.released_at >= since)
        .order_by(leases.c.released_at.desc(), leases.c.id)
        .limit(limit)
    )
    return tuple(
        ForecastOutcome(
            at=row.released_at,
            expected=row.expected,
            low=row.low,
            high=row.high,
            seconds=row.ended_at - row.granted_at if row.complete else None,
        )
        for row in connection.execute(query)
    )


def wait_outcomes(connection: Connection, since: float, limit: int) -> tuple[ForecastOutcome, ...]:
    table = wait_forecasts.c
    started = (
        select(func.min(leases.c.granted_at))
        .where(leases.c.request_id == table.request_id, leases.c.granted_at >= table.made_at)
        .scalar_subquery()
    )
    at = func.coalesce(started, requests.c.ended_at)
    query = (
        select(
            at.label("at"),
            started.label("started"),
            table.made_at,
            table.earliest,
            table.latest,
        )
        .join_from(wait_forecasts, requests)
        .where(at >= since)
        .order_by(at.desc(), table.request_id)
        .limit(limit)
    )
    return tuple(
        ForecastOutcome(
            at=row.at,
            expected=row.earliest - row.made_at,
            low=row.earliest - row.made_at,
            high=row.latest - row.made_at,
            seconds=None if row.started is None else row.started - row.made_at,
        )
        for row in connection.execute(query)
    )


def put_cell_times(connection: Connection, found: Sequence[CellTimes]) -> None:
    """Insert the attempts that are new, and delete all but the newest ``KEPT_ATTEMPTS``."""
    table, ids = cell_times, [each.lease_id for each in found]
    leased = set(connection.scalars(select(leases.c.id).where(leases.c.id.in_(ids))))
    known = set(connection.scalars(select(table.c.lease_id).where(table.c.lease_id.in_(ids))))
    rows = [
        {
            "lease_id": each.lease_id,
            "ended_at": each.ended_at,
            "conditions": each.conditions,
            "complete": each.complete,
            "cells": [list(pair) for pair in each.cells.items()],
        }
        for each in found
        if each.lease_id in leased - known
    ]
    if not rows:
        return
    connection.execute(insert(table), rows)
    newest = select(table.c.ended_at).order_by(table.c.ended_at.desc())
    oldest = connection.scalar(newest.offset(KEPT_ATTEMPTS - 1).limit(1))
    if oldest is not None:
        connection.execute(delete(table).where(table.c.ended_at < oldest))


def read_cell_times(connection: Connection) -> tuple[CellTimes, ...]:
    table = cell_times.c
    rows = connection.execute(select(cell_times).order_by(table.ended_at, table.lease_id))
    return tuple(
        CellTimes(
            lease_id=row.lease_id,
            ended_at=row.ended_at,
            conditions=row.conditions,
            cells=dict(row.cells),
            complete=row.complete,
        )
        for row in rows
    )
