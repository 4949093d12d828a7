"""Tables of the report for administrators, the same on the page, in the terminal and as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from ..scheduling.model.text import hours
from ..schemas.usage import SiteReportOut, SiteReportRow
from . import units


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteReportTable:
    """One table; the first column is the name, all others are numbers."""

    key: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def period(report: SiteReportOut) -> str:
    """``1 Oct 2026 to 31 Oct 2026 (UTC)``; the last day is included."""
    return period_text(report.since, report.until)


def period_text(since: float, until: float) -> str:
    """Return the period between two moments as ``period`` does."""
    first, last = (
        datetime.fromtimestamp(at, UTC).strftime("%-d %b %Y")
        for at in (since, max(since, until - 1))
    )
    return f"{first} to {last} (UTC)"


def file_name(since: float, until: float, kind: str = "csv") -> str:
    """Return the name of a file of the report of a period, with the first and the last day."""
    first, last = (
        f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}" for at in (since, max(since, until - 1))
    )
    return f"report-{first}-{last}.{kind}"


_STYLE = """
@page{margin:15mm}
body{margin:2rem auto;max-width:64rem;padding:0 1rem;background:#fff;color:#1a1a1a;
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2rem;break-after:avoid}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .5rem;text-align:right;border-bottom:1px solid #d5d9dd}
th:first-child{text-align:left;min-width:7rem;overflow-wrap:break-word}
thead{display:table-header-group}tr{break-inside:avoid}tbody tr:last-child{font-weight:600}
@media print{.scroll{overflow:visible}body{margin:0;max-width:none;padding:0}}
"""


def page(report: SiteReportOut) -> str:
    """Return the report as one HTML page without scripts, to be printed or sent."""
    title = f"Report of {period(report)}"
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(sentence)}</p>" for sentence in sentences(report)),
    ]
    for table in tables(report):
        head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.head)
        parts.append(
            f'<h2 id="{table.key}">{escape(table.title)}</h2><div class="scroll" tabindex="0" '
            f'role="region" aria-labelledby="{table.key}"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{''.join(_html_row(row) for row in table.rows)}</tbody></table></div>"
        )
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
    parts.append(f"<h2>Notes</h2><ul>{notes}</ul></body></html>")
    return "\n".join(parts) + "\n"


def _html_row(row: Sequence[str]) -> str:
    cells = "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
    return f'<tr><th scope="row">{escape(row[0])}</th>{cells}</tr>'


def sentences(report: SiteReportOut) -> list[str]:
    """Return usage, utilization, waits and idle holding of the whole site."""
    total = report.total
    found = [
        f"{units.device_hours(total.device_seconds)} were used."
        if total.device_seconds
        else "No devices were used in this period."
    ]
    if report.utilization is not None:
        found.append(f"Utilization {report.utilization:.1%}.")
    if total.idle_seconds:
        price = "" if total.idle_money is None else f", {total.idle_money:,.2f} {report.currency}"
        found.append(f"Held idle: {units.device_hours(total.idle_seconds)}{price}.")
    return found + wait_sentences(report)


def wait_sentences(report: SiteReportOut) -> list[str]:
    """Return the waits of each kind of request."""
    found = []
    for row in report.waits:
        median, most = units.duration(row.median_seconds), units.duration(row.ninetieth_seconds)
        kind = f"{row.kind.capitalize()}s"
        found.append(f"{kind}: {row.count} granted, median wait {median}, 90% within {most}.")
    return found


def tables(report: SiteReportOut) -> list[SiteReportTable]:
    """Return the tables by group, user, course and model, each with the total at its end."""
    return [
        _table(report, "group", "Group", report.by_group, "no group"),
        _table(report, "user", "User", report.by_user, "no user"),
        _table(report, "course", "Course", report.by_course, "outside courses"),
        _table(report, "model", "Device model", report.by_model, "unknown"),
    ]


def _table(
    report: SiteReportOut, key: str, title: str, rows: Sequence[SiteReportRow], unnamed: str
) -> SiteReportTable:
    waits = key != "model"
    head = [title, "Device-hours"]
    head += ["Of the pool"] if has_pool(report) else []
    head += ["Requests", "Median wait", "90% wait"] if waits else []
    head += (
        [f"Cost ({report.currency})" if report.currency else "Cost"] if has_money(report) else []
    )
    head += ["kWh (estimate)"] if has_kwh(report) else []
    head += ["Held idle (h)"] if has_idle(report) else []
    head += ["Cost of idle"] if has_idle_money(report) else []
    total = report.total.model_copy(update={"name": "Total"})
    return SiteReportTable(
        key=key,
        title=f"By {title.lower()}",
        head=tuple(head),
        rows=tuple(_cells(report, row, unnamed, waits=waits) for row in [*rows, total]),
    )


def _cells(
    report: SiteReportOut, row: SiteReportRow, unnamed: str, *, waits: bool
) -> tuple[str, ...]:
    cells = [row.name or unnamed, hours(row.device_seconds)]
    if has_pool(report):
        cells.append("" if row.of_pool is None else f"{row.of_pool:.1%}")
    if waits:
        cells.append("" if row.granted is None else str(row.granted))
        for seconds in (row.median_wait_seconds, row.ninetieth_wait_seconds):
            cells.append("" if seconds is None else units.duration(seconds))
    if has_money(report):
        cells.append("" if row.money is None else f"{row.money:,.2f}")
    if has_kwh(report):
        cells.append("" if row.kwh is None else f"{row.kwh:,.1f}")
    if has_idle(report):
        cells.append("" if row.idle_seconds is None else hours(row.idle_seconds))
    if has_idle_money(report):
        cells.append("" if row.idle_money is None else f"{row.idle_money:,.2f}")
    return tuple(cells)


def has_pool(report: SiteReportOut) -> bool:
    """Whether the device time of the whole pool is known."""
    return report.total.of_pool is not None


def has_money(report: SiteReportOut) -> bool:
    return report.total.money is not None


def has_kwh(report: SiteReportOut) -> bool:
    return report.total.kwh is not None


def has_idle(report: SiteReportOut) -> bool:
    return report.total.idle_seconds is not None


def has_idle_money(report: SiteReportOut) -> bool:
    return report.total.idle_money is not None


def csv_rows(report: SiteReportOut) -> list[list[str | float | None]]:
    """Return the report as rows of one table; the first is the heading, the second the total.

    Seconds are those of the ledger. Money, kWh and idle holding have columns only if they are
    known.
    """
    money, kwh = has_money(report), has_kwh(report)
    idle, idle_money = has_idle(report), has_idle_money(report)
    head: list[str | float | None] = ["by", "name", "device_seconds", "device_hours", "of_pool"]
    head += ["granted", "median_wait_seconds", "ninetieth_wait_seconds"]
    head += ["money", "currency"] if money else []
    head += ["kwh_estimate"] if kwh else []
    head += ["measured_device_seconds", "idle_device_seconds"] if idle else []
    head += ["idle_money"] if idle_money else []
    found = [head]
    for by, rows in (
        ("total", [report.total]),
        ("group", report.by_group),
        ("user", report.by_user),
        ("course", report.by_course),
        ("model", report.by_model),
    ):
        for row in rows:
            cells: list[str | float | None] = [by, row.name, row.device_seconds]
            cells += [row.device_seconds / 3600, row.of_pool, row.granted]
            cells += [row.median_wait_seconds, row.ninetieth_wait_seconds]
            if money:
                cells += [None if row.money is None else float(row.money), report.currency]
            if kwh:
                cells.append(row.kwh)
            if idle:
                cells += [row.measured_seconds, row.idle_seconds]
            if idle_money:
                cells.append(None if row.idle_money is None else float(row.idle_money))
            found.append(cells)
    return found
