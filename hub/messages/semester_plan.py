"""The tables of the semester plan, the same on the page, in the terminal and as CSV."""

from __future__ import annotations

from collections.abc import Mapping

from ..scheduling.model.text import plural
from ..schemas.calendar import DemandClashOut, ProposedReservationOut, SemesterPlanOut

DAY_HEAD = ("Day", "Device-hours", "Devices needed", "By course", "Reserved")


def day_rows(found: SemesterPlanOut) -> list[tuple[str, ...]]:
    """Return a row for each day with work or a reservation."""
    return [
        (
            day.day,
            f"{sum(day.device_hours.values()):.1f}",
            str(day.needed),
            _parts({name: f"{hours:.1f}" for name, hours in day.device_hours.items()}),
            _parts({name: str(devices) for name, devices in day.reserved.items()}),
        )
        for day in found.days
        if day.needed
    ]


def _parts(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {found[name]}" for name in sorted(found))


def clash(found: DemandClashOut) -> str:
    """``2026-12-01: cs101 6 and lab 4 need 10 devices; the pool has 8.``"""
    parts = " and ".join(f"{name} {devices}" for name, devices in found.parts.items())
    verb = "needs" if len(found.parts) == 1 else "need"
    return (
        f"{found.day}: {parts} {verb} {plural(found.needed, 'device')}; the pool has {found.pool}."
    )


def proposal(found: ProposedReservationOut) -> str:
    """Return what a proposal sets aside, or why it does not."""
    about = f"{found.assignment} of {found.course}"
    if found.reservation is None:
        return f"{about}: {plural(found.wanted, 'device')} would be needed, and none is free."
    less = "" if found.reservation.devices == found.wanted else f"; {found.wanted} would be needed"
    return f"{about}: {plural(found.reservation.devices, 'device')}, {found.reservation.when}{less}"


def csv_rows(found: SemesterPlanOut) -> list[list[str | float | None]]:
    """Return one row for each day and course or group; the first is the heading."""
    lines: list[list[str | float | None]] = [
        ["day", "name", "device_hours", "reserved_devices", "needed_devices", "pool_devices"]
    ]
    for day in found.days:
        for name in sorted({*day.device_hours, *day.reserved}):
            hours = day.device_hours.get(name, 0.0)
            lines.append([day.day, name, hours, day.reserved.get(name, 0), day.needed, found.pool])
    return lines
