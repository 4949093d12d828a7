"""The values about the past that travel over HTTP: how the pool was used, and how long waits were.

Times are seconds since the epoch (UTC); spans are seconds.
"""

from __future__ import annotations

from typing import Literal

from .base import Out

Span = Literal["day", "week", "term"]


class WaitsOut(Out):
    """How long requests of a kind waited for devices until they were first granted them.

    Both figures are waits that somebody had (nearest rank).
    """

    kind: str
    count: int
    median_seconds: float
    ninetieth_seconds: float


class PeriodOut(Out):
    """One part of the span; levels are means over as much of it as has passed."""

    starts_at: float
    ends_at: float
    leased: float
    """Devices on lease."""
    healthy: float | None = None
    """Devices in order and not in quarantine; null before anybody counted."""
    share: float | None = None
    """``leased`` of ``healthy``, from 0 to 1."""
    queued: float
    """Requests that waited for devices and had never been granted any."""
    waits: list[WaitsOut]
    """By kind; of those that were first granted their devices in this part."""


class HistoryOut(Out):
    """How the pool was used over a span, in equal parts; of one group, or of all."""

    span: Span
    group: str = ""
    periods: list[PeriodOut]
    waits: list[WaitsOut]
    """Over the whole span."""
