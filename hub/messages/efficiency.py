"""Tables of what was held and not used, the same on the page and in the terminal."""

from __future__ import annotations

from datetime import UTC, datetime

from ..scheduling.model.text import hours
from ..schemas.usage import EfficiencyOut, EfficiencyRow
from . import units

HEADS = ("Request", "Title", "Owner", "Held", "Used", "Idle", "Not used", "Signs")


def summary(found: EfficiencyOut) -> str:
    """Return the sums of the week in sentences."""
    held = units.device_hours(found.device_seconds)
    whose = f"The group {found.group}" if found.group else "You"
    verb = "held" if found.group or found.ended else "have held"
    first = f"{whose} {verb} {held} in the week from {_day(found.since)}"
    if not found.device_seconds:
        return f"{first}."
    if not found.measured_device_seconds:
        return f"{first}. Their use was not measured."
    unused = units.device_hours(found.unused_device_seconds)
    part = found.unused_device_seconds / found.measured_device_seconds
    return f"{first}; {unused} of them ({part:.0%} of what was measured) were not used."


def none_listed(found: EfficiencyOut) -> str:
    return f"No request used its devices by less than {found.low_percent:.0f} % on average."


def cells(row: EfficiencyRow) -> tuple[str, ...]:
    """Return the cells of a row, as ``HEADS``; hours are device-hours."""
    return (
        row.request_id,
        row.title,
        row.owner,
        hours(row.device_seconds),
        _percent(row.used),
        _percent(row.idle),
        hours(row.unused_device_seconds),
        ", ".join(row.signs),
    )


def _percent(part: float | None) -> str:
    return "" if part is None else f"{part:.0%}"


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%-d %B %Y}"
