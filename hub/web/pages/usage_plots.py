"""Plots of usage: device-hours by day, utilization, queue and wait times."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...messages import units
from ...scheduling.model.text import hours
from ...schemas import UsageReport, UsageRowOut
from ...schemas.usage import HistoryOut, PeriodOut, WaitsOut
from ..html.plot import Plot, Series, span_unit

_PERCENT = 100.0
_HOUR = 3600.0


def by_day(report: UsageReport, days: Sequence[UsageRowOut]) -> Plot:
    totals = [day.charged + day.open for day in days]
    return Plot(
        id="by-day",
        title="By day",
        about=f"Device-hours on each day from {days[0].day} to {days[-1].day}; together "
        f"{units.device_hours(report.device_seconds)}."
        if days
        else "",
        unit="device-hours",
        marks=tuple(day.day for day in days),
        across="Day (UTC)",
        series=(
            Series(
                name="Device-hours",
                values=tuple(total / _HOUR for total in totals),
                texts=tuple(hours(total) for total in totals),
            ),
        ),
    )


def utilisation(found: HistoryOut) -> Plot:
    shares = [period.share for period in found.periods]
    return Plot(
        id="utilisation",
        title="Devices on lease",
        about="The fraction of healthy device time on lease. "
        + _range(shares, lambda share: f"{share:.0%}"),
        unit="%",
        marks=_starts(found.periods),
        across="From",
        series=(
            Series(
                name="On lease",
                values=tuple(None if share is None else _PERCENT * share for share in shares),
                texts=tuple(_lease_text(period) for period in found.periods),
            ),
        ),
        most=_PERCENT,
    )


def queue(found: HistoryOut) -> Plot:
    # Rounded as displayed: less than a tenth of a request is not drawn.
    lengths = [round(period.queued, 1) for period in found.periods]
    return Plot(
        id="queue",
        title="Requests that waited for devices",
        about="The average number. " + _range(lengths, lambda length: f"{length:.1f}"),
        unit="requests",
        marks=_starts(found.periods),
        across="From",
        series=(
            Series(
                name="Waiting",
                values=tuple(lengths),
                texts=tuple(f"{length:.1f}" for length in lengths),
            ),
        ),
        most=0.0 if max(lengths, default=0.0) > 1 else 1.0,
    )


def waits(found: HistoryOut) -> Plot:
    """Plot the median and 90th percentile by kind, in the period in which the wait ended."""
    size, unit = span_unit([each.ninetieth_seconds for p in found.periods for each in p.waits])
    series = list[Series]()
    for kind in sorted({each.kind for period in found.periods for each in period.waits}):
        of_kind = [_of_kind(period, kind) for period in found.periods]
        for name, values in (
            ("median", [None if each is None else each.median_seconds for each in of_kind]),
            (
                "90th percentile",
                [None if each is None else each.ninetieth_seconds for each in of_kind],
            ),
        ):
            series.append(
                Series(
                    name=f"{kind}, {name}",
                    values=tuple(None if value is None else value / size for value in values),
                    texts=tuple("" if v is None else units.duration(v) for v in values),
                )
            )
    return Plot(
        id="waits",
        title="Waits for devices",
        about=f"The wait time until the first grant, in {unit}: the median and the 90th percentile "
        "of each kind.",
        unit=unit,
        marks=_starts(found.periods),
        across="Granted from",
        series=tuple(series),
        shape="lines",
    )


def _range(values: Sequence[float | None], text: Callable[[float], str]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "No data yet."
    return f"Between {text(min(known))} and {text(max(known))}; last {text(known[-1])}."


def _of_kind(period: PeriodOut, kind: str) -> WaitsOut | None:
    return next((each for each in period.waits if each.kind == kind), None)


def _starts(periods: Sequence[PeriodOut]) -> tuple[float, ...]:
    return tuple(period.starts_at for period in periods)


def _lease_text(period: PeriodOut) -> str:
    if period.share is None or period.healthy is None:
        return f"{period.leased:.1f} devices"
    return f"{period.share:.0%} ({period.leased:.1f} of {period.healthy:.1f} devices)"
