"""Bodies about the past of the pool: utilization and wait times.

Times are seconds since the epoch (UTC); durations are seconds.
"""

from __future__ import annotations

from typing import Literal

from .base import Out

Span = Literal["day", "week", "term"]


class WaitsOut(Out):
    """Wait time of the requests of a kind until the first grant of devices.

    Both values are waits of actual requests (nearest rank).
    """

    kind: str
    count: int
    median_seconds: float
    ninetieth_seconds: float


class PeriodOut(Out):
    """One part of the period; levels are means over the part that has passed."""

    starts_at: float
    ends_at: float
    leased: float
    """Devices on lease."""
    healthy: float | None = None
    """Healthy devices that are not quarantined; null before the first count."""
    share: float | None = None
    """``leased`` of ``healthy``, from 0 to 1."""
    queued: float
    """Requests that waited for devices and had never been granted any."""
    waits: list[WaitsOut]
    """By kind; of requests that were first granted devices in this part."""


class HistoryOut(Out):
    """Utilization over a period in equal parts; of one group, or of all."""

    span: Span
    group: str = ""
    periods: list[PeriodOut]
    waits: list[WaitsOut]
    """Over the whole period."""
