"""Terms, periods of budgets, and reservations.

The days of a term begin at midnight UTC, like those of the ledger. The hours of a reservation
are local times in its time zone, also across a change to daylight-saving time.
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
    """A named span of days, including the first and the last one."""

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
    """Return the start and end of the current period; None between two terms.

    Weeks begin on Monday at midnight UTC.
    """
    if period is Period.WEEK:
        today = datetime.fromtimestamp(now, UTC).date()
        monday = today - today.weekday() * _DAY
        return _midnight(monday), _midnight(monday + _WEEK * _DAY)
    term = term_of(terms, now)
    return None if term is None else (term.starts_at, term.ends_at)


def term_of(terms: Iterable[Term], at: float) -> Term | None:
    """Return the term that contains a moment; terms do not overlap."""
    return next((term for term in terms if term.starts_at <= at < term.ends_at), None)


def refill_of(period: Period, terms: Iterable[Term], now: float) -> float | None:
    """Return the start of the next period; None if no later term is defined."""
    if period is Period.WEEK:
        monday = span_of(period, (), now)
        return None if monday is None else monday[1]
    return min((term.starts_at for term in terms if term.starts_at > now), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Devices reserved for a group, once or every week.

    Attributes:
        weekdays: 0 for Monday, in order; none: only on ``first``.
        begins, ends: local times in ``zone``; an end that is not after the start is on the next
            day.
        first, last: the first and last day, both included.
    """

    id: str
    group: str
    devices: int
    weekdays: tuple[int, ...]
    begins: time
    ends: time
    zone: str
    first: date
    last: date
    why: str = ""

    @property
    def when(self) -> str:
        """``Tue 10:00-12:00 Europe/Berlin``; several days are ``Mon,Wed``."""
        days = ",".join(WEEKDAYS[day] for day in self.weekdays) or self.first.isoformat()
        return f"{days} {self.begins:%H:%M}-{self.ends:%H:%M} {self.zone}"

    def occurrences(self, since: float, until: float) -> Iterator[ReservedSpan]:
        """Yield the occurrences between two moments, in order.

        A local time that occurs twice means its first occurrence. A start in an hour that the
        clock skips is the end of the gap.
        """
        zone = ZoneInfo(self.zone)
        # A day earlier, since an occurrence may extend past midnight.
        day = max(self.first, datetime.fromtimestamp(since, zone).date() - _DAY)
        end = min(self.last, datetime.fromtimestamp(until, zone).date())
        while day <= end:
            if not self.weekdays or day.weekday() in self.weekdays:
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
    """Return the moment of a local time; for a skipped one, the end of the gap."""
    wall = datetime.combine(day, clock, tzinfo=zone)
    at = wall.timestamp()
    if datetime.fromtimestamp(at, zone).replace(tzinfo=None) == wall.replace(tzinfo=None):
        return at
    return _end_of_gap(wall)


def _end_of_gap(wall: datetime) -> float:
    """Return the moment at which the clock jumps over a skipped local time."""
    # The UTC offsets before and after the gap.
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
    """Return the occurrences within the horizon for existing groups, by start."""
    known = frozenset(groups)
    spans = (
        span
        for reservation in reservations
        if reservation.group in known
        for span in reservation.occurrences(now, now + horizon)
    )
    return tuple(sorted(spans, key=lambda span: (span.starts_at, span.id)))


def _midnight(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
