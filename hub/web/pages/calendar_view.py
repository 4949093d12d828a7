"""The days of a week or a month with the reservations on them, in one time zone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from ...groups.calendar import ReservedTime
from ...records.calendar import moment_of

_DAY = timedelta(days=1)
_WEEK = 7


class Scale(StrEnum):
    """How many days a calendar shows."""

    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarEntry:
    """A reservation on one day; ``hours`` are local times of the calendar's zone."""

    reserved: ReservedTime
    hours: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarDay:
    """Attributes:
    outside: not in the month, but in one of its weeks.
    """

    day: date
    today: bool
    outside: bool
    entries: tuple[CalendarEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarSpan:
    """The days that a calendar shows: whole weeks from Monday, around one day."""

    scale: Scale
    around: date
    zone: ZoneInfo

    @property
    def days(self) -> tuple[date, ...]:
        month = self.scale is Scale.MONTH
        first = self.around.replace(day=1) if month else self.around
        last = self.following - _DAY if month else self.around
        monday = first - first.weekday() * _DAY
        weeks = (last - monday).days // _WEEK + 1
        return tuple(monday + number * _DAY for number in range(weeks * _WEEK))

    @property
    def starts_at(self) -> float:
        return moment_of(self.days[0], time(0), self.zone)

    @property
    def ends_at(self) -> float:
        return moment_of(self.days[-1] + _DAY, time(0), self.zone)

    @property
    def title(self) -> str:
        if self.scale is Scale.MONTH:
            return f"{self.around:%B %Y}"
        first, last = self.days[0], self.days[-1]
        return f"{first.day} {first:%b} to {last.day} {last:%b} {last.year}"

    @property
    def previous(self) -> date:
        """A day of the span before this one."""
        if self.scale is Scale.WEEK:
            return self.around - _WEEK * _DAY
        return self.around.replace(day=1) - _DAY

    @property
    def following(self) -> date:
        """A day of the span after this one."""
        if self.scale is Scale.WEEK:
            return self.around + _WEEK * _DAY
        return (self.around.replace(day=28) + 4 * _DAY).replace(day=1)

    def filled(self, found: Iterable[ReservedTime], now: float) -> tuple[CalendarDay, ...]:
        """Return the days with their reservations; one past midnight is on its first day."""
        today = datetime.fromtimestamp(now, self.zone).date()
        entries: dict[date, list[CalendarEntry]] = {day: [] for day in self.days}
        for each in found:
            begins = datetime.fromtimestamp(each.span.starts_at, self.zone)
            ends = datetime.fromtimestamp(each.span.ends_at, self.zone)
            # What began before the first day is shown on it.
            on = max(begins.date(), self.days[0])
            entries[on].append(
                CalendarEntry(reserved=each, hours=f"{begins:%H:%M} to {ends:%H:%M}")
            )
        return tuple(
            CalendarDay(
                day=day,
                today=day == today,
                outside=self.scale is Scale.MONTH and day.month != self.around.month,
                entries=tuple(entries[day]),
            )
            for day in self.days
        )
