"""The list of requests as a table (CSV)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import chain

from ....files.csv_table import Cell, csv_of
from ....schemas import RequestOut
from ...html.filters import title

_COLUMNS = (
    *("id", "kind", "title", "owner", "group", "state", "cause", "message"),
    *("devices", "device_ids", "node", "submitted_at", "started_at", "ended_at"),
    *("duration_seconds", "device_seconds", "mean_cores", "peak_memory_bytes"),
    *("mean_device_percent", "peak_device_bytes", "labels"),
)


def csv_text(requests: Iterable[RequestOut]) -> str:
    """One row for each request; times are in UTC, unknown values are empty."""
    return csv_of(chain([_COLUMNS], map(_row, requests)))


def _row(request: RequestOut) -> list[Cell]:
    lease, used, cause = request.lease, request.utilization, request.cause
    ran = request.started_at is not None and request.ended_at is not None
    return [
        request.id,
        request.kind,
        title(request),
        request.owner,
        request.group,
        request.state,
        cause.code if cause else "",
        cause.message if cause else "",
        request.devices,
        " ".join(device.id for device in lease.devices) if lease else "",
        lease.node if lease else "",
        _time(request.submitted_at),
        _time(request.started_at),
        _time(request.ended_at),
        round((request.ended_at or 0.0) - (request.started_at or 0.0), 3) if ran else None,
        request.device_seconds,
        used.mean_cores if used else None,
        used.peak_memory_bytes if used else None,
        used.mean_device_percent if used else None,
        used.peak_device_bytes if used else None,
        " ".join(f"{name}={value}" for name, value in request.labels.items()),
    ]


def _time(at: float | None) -> str:
    return "" if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
