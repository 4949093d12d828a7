"""Terms, budgets and reservations: what is agreed for spans of the calendar.

A day of a term begins at midnight UTC, where days of the ledger begin. The hours of a
reservation are those of the clock on the wall of the place that it names, also across a change
to daylight-saving time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from ..scheduling.model.snapshot import Period, ReservedSpan

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY = timedelta(days=1)
_WEEK = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A named span of days; both named days belong to it."""

    name: str
    first: date
    last: date

    @property
    def starts_at(self) -> float:
        return _midnight(self.first)

    @property
    def ends_at(self) -> float:
        return _midnight(self.last + _DAY)


def span_of(period: Period, terms: Iterable[Term], now: float) -> tuple[float, float] | None:
    """The period that runs now, from and to; None between two terms.

    Weeks begin on Monday at midnight UTC.
    """
    if period is Period.WEEK:
        today = datetime.fromtimestamp(now, UTC).date()
        monday = today - today.weekday() * _DAY
        return _midnight(monday), _midnight(monday + _WEEK * _DAY)
    term = term_of(terms, now)
    return None if term is None else (term.starts_at, term.ends_at)


def term_of(terms: Iterable[Term], at: float) -> Term | None:
    """The term that a moment belongs to; no two terms overlap."""
    return next((term for term in terms if term.starts_at <= at < term.ends_at), None)


def refill_of(period: Period, terms: Iterable[Term], now: float) -> float | None:
    """When the next period begins; None where no later term is known."""
    if period is Period.WEEK:
        monday = span_of(period, (), now)
        return None if monday is None else monday[1]
    return min((term.starts_at for term in terms if term.starts_at > now), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Devices promised to a group, once or every week.

    Attributes:
        weekday: 0 for Monday; None: only on ``first``.
        begins, ends: by the clock on the wall in ``zone``; an end that is not later is that of
            the next day.
        first, last: the days between which it holds, both included.
    """

    id: str
    group: str
    devices: int
    weekday: int | None
    begins: time
    ends: time
    zone: str
    first: date
    last: date
    why: str = ""

    @property
    def when(self) -> str:
        """``Tue 10:00-12:00 Europe/Berlin``."""
        day = self.first.isoformat() if self.weekday is None else WEEKDAYS[self.weekday]
        return f"{day} {self.begins:%H:%M}-{self.ends:%H:%M} {self.zone}"

    def occurrences(self, since: float, until: float) -> Iterator[ReservedSpan]:
        """Those that run between two moments, in order.

        A time that the clock shows twice is meant the first time. An hour that the clock
        leaves out is left out: what begins in it begins at its end.
        """
        zone = ZoneInfo(self.zone)
        # A day earlier: what began before midnight may run still.
        day = max(self.first, datetime.fromtimestamp(since, zone).date() - _DAY)
        end = min(self.last, datetime.fromtimestamp(until, zone).date())
        while day <= end:
            if self.weekday in (None, day.weekday()):
                next_day = day + _DAY if self.ends <= self.begins else day
                starts_at = moment_of(day, self.begins, zone)
                ends_at = moment_of(next_day, self.ends, zone)
                if starts_at < ends_at and ends_at > since and starts_at < until:
                    yield ReservedSpan(
                        id=self.id,
                        group=self.group,
                        devices=self.devices,
                        starts_at=starts_at,
                        ends_at=ends_at,
                    )
            day += _DAY


def moment_of(day: date, clock: time, zone: ZoneInfo) -> float:
    """When the clock on the wall shows that time; where it never does, when it has passed it."""
    wall = datetime.combine(day, clock, tzinfo=zone)
    at = wall.timestamp()
    if datetime.fromtimestamp(at, zone).replace(tzinfo=None) == wall.replace(tzinfo=None):
        return at
    return _end_of_gap(wall)


def _end_of_gap(wall: datetime) -> float:
    """The clock goes from before the gap to after it in this moment."""
    # Before and after the gap the clock differs from UTC by these.
    before, after = wall.replace(fold=0).utcoffset(), wall.replace(fold=1).utcoffset()
    assert before is not None
    assert after is not None
    low, high = wall.timestamp() - 86400.0, wall.timestamp() + 86400.0
    while high - low > 1:
        middle = (low + high) // 2
        passed = datetime.fromtimestamp(middle, wall.tzinfo).utcoffset() == after
        low, high = (low, middle) if passed else (middle, high)
    return high


def reserved(
    reservations: Iterable[Reservation], groups: Iterable[str], now: float, horizon: float
) -> tuple[ReservedSpan, ...]:
    """What runs now or begins within the horizon, of groups that there are; the next one first."""
    known = frozenset(groups)
    found = (
        each
        for reservation in reservations
        if reservation.group in known
        for each in reservation.occurrences(now, now + horizon)
    )
    return tuple(sorted(found, key=lambda each: (each.starts_at, each.id)))


def _midnight(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
