"""The form of a schedule's times: how often, the time of day and the days, or a cron expression."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from enum import StrEnum
from typing import Self

from ...errors import InvalidInput
from ...records.calendar import WEEKDAYS
from .fields import clock

DAY = "cron_on_"
"""Prefix of the checkboxes of the weekdays."""
_SIMPLE = re.compile(
    r"(?P<m>\d\d?) (?P<h>\d\d?|\*) (?P<d>\d\d?|\*) \* (?P<w>\*|[0-7](?:[,-][0-7])*)"
)
_LAST_DAY = 31
_CRON_LENGTH = 200


class Repeat(StrEnum):
    """How often; empty for once."""

    ONCE = ""
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    CRON = "cron"


@dataclass(frozen=True, slots=True, kw_only=True)
class CronForm:
    """The fields as entered.

    Attributes:
        at: time of day; of an hourly schedule, only its minutes count.
        days: selected weekdays, for each week.
        month_day: day of the month, for each month.
        cron: the expression of other times.
    """

    every: Repeat = Repeat.ONCE
    at: str = "06:00"
    days: tuple[str, ...] = ()
    month_day: str = "1"
    cron: str = ""

    @classmethod
    def filled(cls, fields: Mapping[str, str]) -> Self:
        given = fields.get("every", "")
        return cls(
            every=Repeat(given) if given in set(Repeat) else Repeat.ONCE,
            at=fields.get("cron_at", "06:00").strip()[:8],
            days=tuple(name for name in WEEKDAYS if fields.get(DAY + name)),
            month_day=fields.get("cron_month_day", "1").strip()[:4],
            cron=fields.get("cron", "").strip()[:_CRON_LENGTH],
        )

    @classmethod
    def of(cls, expression: str) -> Self:
        """Return the form of an expression; with the expression itself unless it is simple."""
        other = cls(every=Repeat.CRON, cron=expression)
        found = _SIMPLE.fullmatch(expression)
        if found is None:
            return other
        minute, hour, month_day, week = (found[part] for part in "mhdw")
        days = _weekdays(week)
        try:
            at = f"{time(0 if hour == '*' else int(hour), int(minute)):%H:%M}"
        except ValueError:
            return other
        if hour == "*":
            return cls(every=Repeat.HOUR, at=at) if (month_day, week) == ("*", "*") else other
        if days is None or (month_day != "*" and week != "*"):
            return other
        if month_day != "*":
            return cls(every=Repeat.MONTH, at=at, month_day=month_day)
        return cls(every=Repeat.WEEK, at=at, days=days) if days else cls(every=Repeat.DAY, at=at)

    def expression(self) -> str:
        """Return the cron expression. Raises InvalidInput with the field."""
        if self.every is Repeat.CRON and self.cron:
            return self.cron
        if self.every in (Repeat.CRON, Repeat.ONCE):
            raise InvalidInput(
                "The schedule has no times.", accepted="Select how often it runs.", field="every"
            )
        at = clock(self.at, "cron_at")
        daily = f"{at.minute} {at.hour}"
        match self.every:
            case Repeat.HOUR:
                return f"{at.minute} * * * *"
            case Repeat.WEEK:
                return f"{daily} * * {self._numbers()}"
            case Repeat.MONTH:
                return f"{daily} {self._month_day()} * *"
            case _:
                return f"{daily} * * *"

    def _numbers(self) -> str:
        if not self.days:
            raise InvalidInput(
                "No day of the week is selected.", accepted="Select one or more.", field="cron_days"
            )
        # In cron, 0 is Sunday.
        return ",".join(str((WEEKDAYS.index(name) + 1) % 7) for name in self.days)

    def _month_day(self) -> int:
        if not self.month_day.isdecimal() or not 1 <= int(self.month_day) <= _LAST_DAY:
            raise InvalidInput(
                f"{self.month_day!r} is not a day of a month.",
                accepted="A number from 1 to 31; months without that day are skipped.",
                field="cron_month_day",
            )
        return int(self.month_day)

    @property
    def sentence(self) -> str:
        """``every week on Mon, Wed at 06:00``."""
        match self.every:
            case Repeat.HOUR:
                return f"every hour at minute {time.fromisoformat(self.at).minute}"
            case Repeat.WEEK:
                return f"every week on {', '.join(self.days)} at {self.at}"
            case Repeat.MONTH:
                return f"every month on day {self.month_day} at {self.at}"
            case Repeat.DAY:
                return f"every day at {self.at}"
            case _:
                return self.cron


def _weekdays(text: str) -> tuple[str, ...] | None:
    """Return the days of a cron field: none for all of them; None if it is not a plain list."""
    if text == "*":
        return ()
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            return None
        numbers.update(range(int(first), int(last or first) + 1))
    return tuple(name for number, name in enumerate(WEEKDAYS, 1) if {number, number % 7} & numbers)
