"""The tables of a what-if replay, the same on the page, in the terminal and as CSV."""

from __future__ import annotations

from ..scheduling.model.text import plural
from ..schemas.usage import WhatIfOut, WhatIfRow, WhatIfSide
from . import units

HEAD = ("Group", "Requests", "Median wait", "Median then", "90% wait", "90% then")


def summary(found: WhatIfOut) -> str:
    """Return the devices and the utilization on both sites as sentences."""
    now, changed = found.total.now, found.total.changed
    text = f"{plural(found.devices, 'device')} now, {found.changed_devices} then."
    if now.utilization is not None and changed.utilization is not None:
        text += f" Utilization {now.utilization:.1%} now, {changed.utilization:.1%} then."
    if now.never_started or changed.never_started:
        text += (
            f" {plural(now.never_started, 'request')} would never have started now, "
            f"{changed.never_started} then."
        )
    return text


def rows(found: WhatIfOut) -> list[tuple[str, ...]]:
    """Return a row for each group, and the total at the end."""
    total = found.total.model_copy(update={"name": "All groups"})
    return [_cells(row) for row in [*found.by_group, total]]


def _cells(row: WhatIfRow) -> tuple[str, ...]:
    waits = (
        (row.now.median_wait_seconds, row.changed.median_wait_seconds),
        (row.now.ninetieth_wait_seconds, row.changed.ninetieth_wait_seconds),
    )
    cells = ["" if each is None else units.duration(each) for pair in waits for each in pair]
    return (row.name or "no group", str(row.now.requests), *cells)


def csv_rows(found: WhatIfOut) -> list[list[str | float | None]]:
    """Return both replays as rows of one table; the first is the heading, the second the total."""
    head: list[str | float | None] = ["name", "site", "devices", "requests", "median_wait_seconds"]
    head += ["ninetieth_wait_seconds", "utilization", "never_started"]
    lines = [head]
    for row in (found.total, *found.by_group):
        for site, side, devices in (
            ("now", row.now, found.devices),
            ("changed", row.changed, found.changed_devices),
        ):
            lines.append([row.name, site, devices, *_figures(side)])
    return lines


def _figures(side: WhatIfSide) -> list[float | None]:
    return [
        side.requests,
        side.median_wait_seconds,
        side.ninetieth_wait_seconds,
        side.utilization,
        side.never_started,
    ]
