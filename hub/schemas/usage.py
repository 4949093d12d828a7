"""Bodies of usage: device-seconds and ledger entries, and the history of the pool.

Times are seconds since the epoch (UTC); durations are seconds.
"""

from __future__ import annotations

from typing import Literal

from .base import Out
from .calendar import BudgetOut

Span = Literal["day", "week", "term"]


class UsageOut(Out):
    owner: str
    group: str
    charged: float
    open: float


class LedgerOut(Out):
    id: int
    lease_id: str
    request_id: str
    epoch: int
    owner: str
    group: str
    devices: int
    starts_at: float
    ends_at: float
    device_seconds: float
    kind: Literal["charge", "credit"] = "charge"
    """A credit refunds the charge of an attempt whose device failed."""


UsedBy = Literal["owner", "user", "group", "model", "day", "week", "term", "request"]


class UsageRowOut(Out):
    """Device-seconds of one owner in a group, or of another grouping.

    ``day`` is a date such as ``2026-10-01`` (UTC), ``week`` the date of its Monday. ``term`` is
    empty for days outside terms, ``model`` is empty for devices that the pool no longer has. The
    values of a group include its subgroups; ``own`` excludes them, and ``above`` is the nearest
    ancestor with a row. ``first_at`` and ``last_at`` are the first and last usage in the period.
    """

    owner: str = ""
    group: str = ""
    request_id: str = ""
    day: str = ""
    week: str = ""
    term: str = ""
    own: float | None = None
    above: str = ""
    model: str = ""
    charged: float
    open: float
    first_at: float
    last_at: float


class UsageReport(Out):
    """Device-seconds between ``since`` and ``until``; each list adds up to the total.

    ``rows`` are grouped ``by`` the given key; by request, they are limited to the newest 1000; by
    group, the ``own`` values add up to the total. ``ledger`` lists the newest entries that overlap
    the period.
    """

    device_seconds: float
    by_group: list[UsageOut]
    by: UsedBy = "owner"
    since: float | None = None
    until: float | None = None
    rows: list[UsageRowOut] = []
    rows_left_out: int = 0
    budgets: list[BudgetOut] = []
    """Current budgets of the caller's groups, or of the given group, regardless of the period."""
    ledger: list[LedgerOut]
    ledger_complete: bool = True
    """Whether ``ledger`` is complete; ``before`` returns older entries."""


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
