"""Bodies of usage: device-seconds and ledger entries, and the history of the pool.

Times are seconds since the epoch (UTC); durations are seconds.
"""

from __future__ import annotations

from decimal import Decimal
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


UsedBy = Literal["owner", "user", "group", "model", "owner-model", "day", "week", "term", "request"]


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


class SiteReportRow(Out):
    """Device-seconds, waits and costs of one group, user, course or device model, or of all.

    ``name`` is empty for usage outside courses, and for devices that the pool no longer has.
    """

    name: str
    device_seconds: float
    of_pool: float | None = None
    """``device_seconds`` divided by the healthy device-seconds of the pool in the period."""
    money: Decimal | None = None
    """In the site's currency; null if no device model of the row has a price."""
    kwh: float | None = None
    """An estimate from the watts of the settings; null if no device model has watts."""
    measured_seconds: float = 0.0
    """Device-seconds in which the use of the devices was measured."""
    idle_seconds: float | None = None
    """The part of ``measured_seconds`` in which the devices did no work; null if nothing was
    measured."""
    idle_money: Decimal | None = None
    """The price of ``idle_seconds``; null without a price or a measurement."""
    granted: int | None = None
    """Requests first granted devices in the period; null by model."""
    median_wait_seconds: float | None = None
    ninetieth_wait_seconds: float | None = None


class SiteReportOut(Out):
    """Usage and costs of the site in a period; each list of rows adds up to ``total``."""

    since: float
    until: float
    utilization: float | None = None
    """Leased time divided by healthy device time, from 0 to 1; null if the latter is unknown."""
    currency: str = ""
    total: SiteReportRow
    waits: list[WaitsOut]
    by_group: list[SiteReportRow]
    """Each group without its subgroups."""
    by_user: list[SiteReportRow]
    by_course: list[SiteReportRow]
    """Usage in a group counts for the nearest course at or above it."""
    by_model: list[SiteReportRow]
    notes: list[str] = []
    """What the report estimates or leaves out, and which settings would add it."""


class WhatIfSide(Out):
    """Waits until the first start in one replay, and the utilization of the site."""

    requests: int
    median_wait_seconds: float | None = None
    ninetieth_wait_seconds: float | None = None
    utilization: float | None = None
    """Held device time divided by all device time, from 0 to 1; only of the whole site."""
    never_started: int = 0
    """Requests that a budget or a reservation held to the end; only of the whole site."""


class WhatIfRow(Out):
    """One group, without its subgroups, or the whole site, on the site and on the changed site."""

    name: str
    now: WhatIfSide
    changed: WhatIfSide


class WhatIfOut(Out):
    """A replay of the ledger on the site as it is, and with other devices or quotas.

    ``since`` and ``until`` are the first and the last submission.
    """

    requests: int
    since: float
    until: float
    devices: int
    changed_devices: int
    total: WhatIfRow
    by_group: list[WhatIfRow]
    notes: list[str] = []
    """What the replay assumes and leaves out."""


class ForecastScoreOut(Out):
    """Forecasts of one week compared with their outcomes.

    Attributes:
        outcomes: number of complete runs, or of waits that ended with a start.
        inside: share of them inside the predicted interval, 0 to 1; of waits, by its end.
        median_error: median of the relative errors; 0.2 is 20 % of the outcome.
        stopped: number that ended before they were complete; they are not in the other figures.
    """

    outcomes: int
    inside: float | None
    median_error: float | None
    stopped: int


class ForecastWeekOut(Out):
    """``week`` is the date of its Monday (UTC)."""

    week: str
    run_times: ForecastScoreOut
    waits: ForecastScoreOut


class ForecastHistoryOut(Out):
    """Sums over all users, the newest week first; ``goal`` is the intended share of run times."""

    goal: float
    weeks: list[ForecastWeekOut]


class EfficiencyRow(Out):
    """A request that held devices and used little of them."""

    request_id: str
    kind: str
    title: str
    owner: str
    group: str
    device_seconds: float
    """Held in the period."""
    used: float | None = None
    """Mean use of its devices, from 0 to 1; null if it was not measured."""
    idle: float | None = None
    """Part of the measured time in which its devices were idle."""
    unused_device_seconds: float = 0.0
    signs: list[str] = []
    """Titles of the signs of its newest attempt."""


class EfficiencyOut(Out):
    """What requests held and did not use in a week."""

    group: str = ""
    """Empty for the caller's own requests."""
    since: float
    until: float
    ended: bool
    """Whether the week is over."""
    device_seconds: float
    measured_device_seconds: float
    """Of requests whose use was measured, which it is not on simulated devices."""
    unused_device_seconds: float
    """The part of these that was not used."""
    low_percent: float
    """Requests with less mean use are listed."""
    rows: list[EfficiencyRow]
    """The largest unused part first."""
    left_out: int = 0
    """Further ones, and requests that were not read because 500 were used later."""


class CompileCacheEntryOut(Out):
    """What the jobs of a user have compiled in one program, for the next jobs of that program."""

    program: str
    """Name of the notebook, or the command."""
    request: str
    """The job that has compiled it."""
    group: str
    image: str
    graphs: int
    """Compiled graphs in it."""
    size: int
    """In bytes."""
    used_at: float
    """When it was kept, or a later job got it."""


class CompileCacheOut(Out):
    """What is kept for a user of what their jobs have compiled, last used first."""

    entries: list[CompileCacheEntryOut]
    size: int
    """Of all entries, in bytes."""
    limit: int
    """The most bytes that are kept; 0: this site keeps nothing."""
