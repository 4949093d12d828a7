"""Bodies of the pool history: utilization and wait times.

Times are seconds since the epoch (UTC); durations are seconds.
"""

from __future__ import annotations

from typing import Literal

from .base import Out

Span = Literal["day", "week", "term"]


class WaitsOut(Out):
    """Wait times of the requests of a kind until the first grant of devices.

    Median and 90th percentile use the nearest rank.
    """

    kind: str
    count: int
    median_seconds: float
    ninetieth_seconds: float


class PeriodOut(Out):
    """One part of the period; device and request counts are means over its elapsed time."""

    starts_at: float
    ends_at: float
    leased: float
    """Leased devices."""
    healthy: float | None = None
    """Healthy devices that are not quarantined; null before the first count."""
    share: float | None = None
    """Utilization: ``leased`` divided by ``healthy``, from 0 to 1."""
    queued: float
    """Requests that waited for devices and had never been granted any."""
    waits: list[WaitsOut]
    """By kind; of requests that were first granted devices in this part."""


class HistoryOut(Out):
    """Utilization over a period, in equal parts, of one group or of all."""

    span: Span
    group: str = ""
    periods: list[PeriodOut]
    waits: list[WaitsOut]
    """Over the whole period."""
