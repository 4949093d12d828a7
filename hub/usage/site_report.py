"""The report of a period for administrators: usage, waits, money and kWh of the whole site.

The smallest part is the usage of one user in one group on one device model. Its money is rounded
to hundredths (half to even) once, and every other sum adds up these amounts, so that the rows of
each table add up to the total exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from math import fsum

from ..config.device_costs import DeviceModelCost
from ..errors import InvalidInput
from ..interfaces.clock import Clock
from ..interfaces.store import Store
from ..records.identity import Identity, require_admin
from ..records.usage import Granted, LedgerFilter, UsageBy, UsageRow, Window
from ..scheduling.model.idleness import CPU_SHARE
from ..scheduling.model.text import hours
from ..scheduling.quota.tree import GroupTree
from ..schemas.usage import SiteReportOut, SiteReportRow
from . import aggregation
from .idle_leases import IDLE_PERCENT, IdleHolding, idle_holding
from .reports import waits_out

HUNDREDTH = Decimal("0.01")
_JOULES_PER_KWH = 3_600_000.0
IDLE_RULE = (
    f"Held idle: leased device time in which the devices did no work (mean use below "
    f"{IDLE_PERCENT:g}%; of simulated devices: less than {CPU_SHARE:.0%} of a CPU core)."
)
ESTIMATE_NOTE = (
    "kWh is an estimate from the watts of each model in the settings; power was not measured."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostedUsage:
    """The usage of one user in one group on one device model.

    Attributes:
        money: rounded to hundredths; None if the model has no price.
        kwh: None if the model has no watts.
        measured: device-seconds in which the use of the devices was measured.
        idle: the part of ``measured`` in which they did no work.
        idle_money: price of ``idle``, rounded likewise; None without a price.
    """

    owner: str
    group: str
    model: str
    device_seconds: float
    money: Decimal | None
    kwh: float | None
    measured: float = 0.0
    idle: float = 0.0
    idle_money: Decimal | None = None


def costed(
    rows: Iterable[UsageRow],
    held: Iterable[IdleHolding],
    costs: Mapping[str, DeviceModelCost],
) -> list[CostedUsage]:
    """Add money, kWh and idle holding to usage by owner, group and model."""
    used = {(row.owner, row.group, row.model): row.total for row in rows}
    idle = {(each.owner, each.group, each.model): each for each in held}
    return [
        _costed(key, used.get(key, 0.0), idle.get(key), costs.get(key[2], DeviceModelCost()))
        for key in dict.fromkeys([*used, *idle])
    ]


def _costed(
    key: tuple[str, str, str], total: float, held: IdleHolding | None, cost: DeviceModelCost
) -> CostedUsage:
    price, watts = cost.price_per_device_hour, cost.watts
    owner, group, model = key
    return CostedUsage(
        owner=owner,
        group=group,
        model=model,
        device_seconds=total,
        money=None if price is None else money_of(total, price),
        kwh=None if watts is None else total * watts / _JOULES_PER_KWH,
        measured=held.measured if held else 0.0,
        idle=held.idle if held else 0.0,
        idle_money=None if price is None or held is None else money_of(held.idle, price),
    )


def money_of(device_seconds: float, price_per_device_hour: float) -> Decimal:
    """Return the price of device-seconds, rounded to hundredths, half to even."""
    exact = Decimal(device_seconds) * Decimal(str(price_per_device_hour)) / 3600
    return exact.quantize(HUNDREDTH, ROUND_HALF_EVEN)


def last_month(now: float) -> tuple[float, float]:
    """Return the start and the end of the calendar month (UTC) before the present one."""
    first = datetime.fromtimestamp(now, UTC).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )
    return (first - timedelta(days=1)).replace(day=1).timestamp(), first.timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteReports:
    """Reports of the whole site, for administrators.

    Attributes:
        costs: price and power by device model.
        currency: the unit of the prices.
    """

    store: Store
    clock: Clock
    costs: Mapping[str, DeviceModelCost]
    currency: str

    def report(
        self,
        who: Identity,
        *,
        since: float | None = None,
        until: float | None = None,
        courses: Collection[str] = (),
    ) -> SiteReportOut:
        """Return the report of a period; of the last calendar month if none is given.

        Args:
            since: start of the period, in seconds since the epoch.
            until: its end; the present if only a start is given.
            courses: names of the groups that are courses.

        Raises:
            Forbidden: the caller is not an administrator.
            InvalidInput: an end without a start, or before it; or the period has not begun.
        """
        require_admin(who)
        now = self.clock()
        since, until = _period(since, until, now)
        window = Window(since=since, until=until, buckets=1)
        store = self.store
        with store.together():
            which = LedgerFilter(since=since, until=until)
            held = store.fold_held_devices(
                since,
                until,
                lambda found: idle_holding(found, since=since, until=until, now=now),
            )
            usage = costed(store.used(which, UsageBy.OWNER_MODEL, now=now), held, self.costs)
            granted, tree = store.granted(window), GroupTree(store.groups())
            utilization, pool = _utilization(store, since, min(until, now))
        course_of = _course_names(tree, courses)
        return SiteReportOut(
            since=since,
            until=until,
            utilization=utilization,
            currency=self.currency,
            total=_row("", usage, granted, pool),
            waits=[waits_out(row) for row in aggregation.waits(window, granted).whole],
            by_group=_rows(usage, granted, pool, lambda each: each.group),
            by_user=_rows(usage, granted, pool, lambda each: each.owner),
            by_course=_rows(usage, granted, pool, lambda each: course_of(each.group)),
            by_model=_model_rows(usage, pool),
            notes=notes(usage, self.costs, unfinished=now < until),
        )


def _utilization(store: Store, since: float, until: float) -> tuple[float | None, float]:
    """Return the utilization in a past period, and the healthy device-seconds of the pool.

    Time before the first count of devices is left out.
    """
    capacity = store.capacity(until)
    since = max(since, capacity[0].at) if capacity else until
    if since >= until:
        return None, 0.0
    window = Window(since=since, until=until, buckets=1)
    levels = store.levels(window)
    leased = aggregation.mean_levels(window, levels.leased, levels.released, until)
    healthy = aggregation.mean_capacity(window, capacity, until)
    return aggregation.share(leased, healthy)[0], (healthy[0] or 0.0) * (until - since)


def _period(since: float | None, until: float | None, now: float) -> tuple[float, float]:
    if since is None:
        if until is not None:
            raise InvalidInput("The period has no first day.", accepted="Give its first day, too.")
        return last_month(now)
    until = now if until is None else until
    if since >= now:
        raise InvalidInput("The period has not begun.", accepted="A first day in the past.")
    if since >= until:
        raise InvalidInput("The period ends before it begins.", accepted="A first day before it.")
    return since, until


def _course_names(tree: GroupTree, courses: Collection[str]) -> Callable[[str], str]:
    """Return a function from a group to the nearest course at or above it, or to ""."""

    def course_of(group: str) -> str:
        chain = (group, *(above.name for above in tree.ancestry(group)))
        return next((name for name in chain if name in courses), "")

    return course_of


def _rows(
    usage: Sequence[CostedUsage],
    granted: Sequence[Granted],
    pool: float,
    key: Callable[[CostedUsage | Granted], str],
) -> list[SiteReportRow]:
    """Return a row for each key with usage or a grant."""
    parts: dict[str, list[CostedUsage]] = {}
    grants: dict[str, list[Granted]] = {}
    for each in usage:
        parts.setdefault(key(each), []).append(each)
    for grant in granted:
        grants.setdefault(key(grant), []).append(grant)
    found = (
        _row(name, parts.get(name, ()), grants.get(name, ()), pool)
        for name in parts.keys() | grants.keys()
    )
    return _ordered(found)


def _model_rows(usage: Sequence[CostedUsage], pool: float) -> list[SiteReportRow]:
    parts: dict[str, list[CostedUsage]] = {}
    for each in usage:
        parts.setdefault(each.model, []).append(each)
    return _ordered(_row(model, of, None, pool) for model, of in parts.items())


def _ordered(rows: Iterable[SiteReportRow]) -> list[SiteReportRow]:
    """Order rows by usage, the largest first, then by name."""
    return sorted(rows, key=lambda row: (-row.device_seconds, row.name))


def _row(
    name: str, usage: Sequence[CostedUsage], granted: Sequence[Granted] | None, pool: float
) -> SiteReportRow:
    seconds = fsum(each.device_seconds for each in usage)
    money = [each.money for each in usage if each.money is not None]
    kwh = [each.kwh for each in usage if each.kwh is not None]
    measured = fsum(each.measured for each in usage)
    idle_money = [each.idle_money for each in usage if each.idle_money is not None]
    waits = sorted(each.waited for each in granted or ())
    return SiteReportRow(
        name=name,
        device_seconds=seconds,
        of_pool=seconds / pool if pool else None,
        money=sum(money, Decimal()) if money else None,
        kwh=fsum(kwh) if kwh else None,
        measured_seconds=measured,
        idle_seconds=fsum(each.idle for each in usage) if measured else None,
        idle_money=sum(idle_money, Decimal()) if idle_money else None,
        granted=None if granted is None else len(waits),
        median_wait_seconds=aggregation.nearest_rank(waits, 50) if waits else None,
        ninetieth_wait_seconds=aggregation.nearest_rank(waits, 90) if waits else None,
    )


def notes(
    usage: Iterable[CostedUsage], costs: Mapping[str, DeviceModelCost], *, unfinished: bool
) -> list[str]:
    """Return what the report estimates or leaves out, and which settings would add it."""
    used = list(usage)
    found = ["The period is not over: the report covers it until now."] if unfinished else []
    for column, key, known, missing in (
        (
            "Money",
            "price_per_device_hour",
            any(cost.price_per_device_hour is not None for cost in costs.values()),
            {each.model for each in used if each.money is None},
        ),
        (
            "kWh",
            "watts",
            any(cost.watts is not None for cost in costs.values()),
            {each.model for each in used if each.kwh is None},
        ),
    ):
        how = f"set {key} of the model below device_models in settings.json while Carrel is stopped"
        if not known:
            found.append(f"{column} is not shown: {how}.")
        elif missing:
            names = ", ".join(sorted(model or "unknown devices" for model in missing))
            found.append(f"{column} does not include {names}: {how}.")
    if any(each.kwh is not None for each in used):
        found.append(ESTIMATE_NOTE)
    return [*found, _idle_note(used)]


def _idle_note(usage: Iterable[CostedUsage]) -> str:
    """Return how idle holding is counted, and how much of the usage was measured."""
    used = list(usage)
    measured = fsum(each.measured for each in used)
    if not measured:
        return "Idle holding is not shown: the use of devices was not measured in this period."
    total = fsum(each.device_seconds for each in used)
    return (
        f"{IDLE_RULE} It was measured in {hours(measured)} of {hours(total)} device-hours; "
        "the rest does not count as idle."
    )
