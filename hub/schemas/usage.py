"""What is answered about device-seconds."""

from __future__ import annotations

from typing import Literal

from .base import Out
from .calendar import BudgetOut


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
    """A credit takes back what an attempt was charged whose device failed."""


UsedBy = Literal["owner", "user", "group", "model", "day", "week", "term", "request"]


class UsageRowOut(Out):
    """Device-seconds of one owner in a group, or of one of what else they are added up for.

    ``day`` is such as ``2026-10-01`` (UTC), ``week`` its Monday. ``term`` is empty for the days
    that are in none, ``model`` also for devices that the pool no longer knows. A group counts
    what those below it used as well; ``own`` is its part without those, ``above`` the nearest
    group above it that has a row. ``first_at`` and ``last_at`` are when they were first and last
    used in the span asked for.
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
    """Device-seconds between ``since`` and ``until``; their sum is that of any of the lists.

    ``rows`` holds them ``by`` what was asked for, the newest 1000 requests; by group, their sum is
    that of what each group used of its ``own``. ``ledger`` holds the newest whole lines that touch
    the span.
    """

    device_seconds: float
    by_group: list[UsageOut]
    by: UsedBy = "owner"
    since: float | None = None
    until: float | None = None
    rows: list[UsageRowOut] = []
    rows_left_out: int = 0
    budgets: list[BudgetOut] = []
    """Of the asker's groups, or of the one that was asked for; now, whatever the span."""
    ledger: list[LedgerOut]
    ledger_complete: bool = True
    """Whether no line is left out; older ones come with ``before``."""
