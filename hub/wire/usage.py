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


class UsageRowOut(Out):
    """Device-seconds of one owner in a group, one day (``2026-10-01``, UTC), request or model.

    ``model`` is empty also for devices that the pool no longer knows.
    ``first_at`` and ``last_at`` are when they were first and last used in the span asked for.
    """

    owner: str = ""
    group: str = ""
    request_id: str = ""
    day: str = ""
    model: str = ""
    charged: float
    open: float
    first_at: float
    last_at: float


class UsageReport(Out):
    """Device-seconds between ``since`` and ``until``; their sum is that of any of the lists.

    ``rows`` holds them ``by`` owner, day, request or model, the newest 1000 requests; ``ledger``
    the newest whole lines that touch the span.
    """

    device_seconds: float
    by_group: list[UsageOut]
    by: Literal["owner", "day", "request", "model"] = "owner"
    since: float | None = None
    until: float | None = None
    rows: list[UsageRowOut] = []
    rows_left_out: int = 0
    budgets: list[BudgetOut] = []
    """Of the asker's groups, or of the one that was asked for; now, whatever the span."""
    ledger: list[LedgerOut]
    ledger_complete: bool = True
    """Whether no line is left out; older ones come with ``before``."""
