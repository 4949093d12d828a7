"""The demand of courses for devices before their due dates: clashes, and reservations that help.

The work of one due date ends with it. It is spread over the days before by shares: those of the
course's earlier due dates, or ``DEFAULT_SHARES``, which grow toward the due date. The devices that
a day needs follow from ``BUSY_HOURS``: a class does not work around the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from math import ceil, floor, isfinite
from zoneinfo import ZoneInfo

from ..records.calendar import Reservation, moment_of

DAY = 86400.0
HOUR = 3600.0
BUSY_HOURS = 10.0
"""Hours of a day in which the device-hours of that day are used."""
DEFAULT_SHARES = (0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.02)
"""Shares of the work on the last day before a due date, the day before it, and so on."""
_EARLIEST = time(8)
_NOON = time(12)
_LATEST = time(22)


@dataclass(frozen=True, slots=True, kw_only=True)
class DueWork:
    """The work of a class for one due date.

    Attributes:
        due: seconds since the epoch.
        zone: time zone of the due date.
        students: number of students on the roster.
        hours_each: device-hours of one student until the due date.
        shares: of the work by days before the due date, the last day first; their sum is 1.
    """

    course: str
    assignment: str
    due: float
    zone: str
    students: int
    hours_each: float
    shares: tuple[float, ...] = DEFAULT_SHARES

    @property
    def device_hours(self) -> float:
        return self.students * self.hours_each


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandDay:
    """One day (UTC).

    Attributes:
        at: its midnight.
        device_hours: of each course with work on this day.
        reserved: devices of the largest reservation of each group on this day.
        needed: devices of all courses and reservations together; a course that needs fewer than it
            has reserved counts with its reservation.
    """

    at: float
    device_hours: Mapping[str, float]
    reserved: Mapping[str, int]
    needed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandClash:
    """A day on which courses and reservations need more devices than the pool has.

    Attributes:
        parts: devices of each course and group, the largest first.
    """

    at: float
    needed: int
    pool: int
    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedReservation:
    """Devices for a course before a due date.

    Attributes:
        works: in the order of their due dates; several if the class does them in the same hours.
        wanted: devices that the work needs; more than ``devices`` if these are not free.
    """

    works: tuple[DueWork, ...]
    devices: int
    wanted: int
    begins: datetime
    ends: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SemesterDemand:
    """The demand curve with its clashes, and what to reserve."""

    days: tuple[DemandDay, ...]
    clashes: tuple[DemandClash, ...]
    proposals: tuple[ProposedReservation, ...]


def semester_demand(
    works: Iterable[DueWork],
    reservations: Sequence[Reservation],
    *,
    pool: int,
    since: float,
    until: float,
    most: Mapping[str, int],
) -> SemesterDemand:
    """Return the demand from ``since`` to ``until``.

    Args:
        pool: number of devices.
        most: the largest number of devices that each course may hold.
    """
    coming = sorted(
        (work for work in works if isfinite(work.due) and since < work.due and work.device_hours),
        key=lambda work: (work.due, work.course, work.assignment),
    )
    first, last = floor(since / DAY), ceil(until / DAY)
    days = tuple(_day(day * DAY, coming, reservations, since=since) for day in range(first, last))
    return SemesterDemand(
        days=days,
        clashes=tuple(_clash(day, pool) for day in days if day.needed > pool),
        proposals=tuple(_proposals(coming, reservations, pool=pool, since=since, most=most)),
    )


def devices_for(device_hours: float, hours: float = BUSY_HOURS) -> int:
    """Return how many devices do this work in some hours; less than a minute needs none."""
    return ceil(device_hours / hours) if device_hours >= 1 / 60 else 0


def _day(
    at: float, works: Iterable[DueWork], reservations: Iterable[Reservation], *, since: float
) -> DemandDay:
    hours: dict[str, float] = {}
    for work in works:
        amount = work_between(work, max(at, since), at + DAY)
        if amount > 0:
            hours[work.course] = hours.get(work.course, 0.0) + amount
    reserved = _reserved(reservations, at, at + DAY)
    needed = {name: devices_for(amount) for name, amount in hours.items()}
    parts = {name: max(needed.get(name, 0), reserved.get(name, 0)) for name in needed | reserved}
    return DemandDay(at=at, device_hours=hours, reserved=reserved, needed=sum(parts.values()))


def work_between(work: DueWork, since: float, until: float) -> float:
    """Return the device-hours of a due date between two moments; a share is spread evenly."""
    total = 0.0
    for number, share in enumerate(work.shares):
        end = work.due - number * DAY
        overlap = min(until, end) - max(since, end - DAY)
        total += share * work.device_hours * max(0.0, overlap) / DAY
    return total


def _reserved(reservations: Iterable[Reservation], since: float, until: float) -> dict[str, int]:
    """Return the devices of the largest occurrence of each group between two moments."""
    found: dict[str, int] = {}
    for each in reservations:
        if any(each.occurrences(since, until)):
            found[each.group] = max(found.get(each.group, 0), each.devices)
    return found


def _clash(day: DemandDay, pool: int) -> DemandClash:
    names = {*day.device_hours, *day.reserved}
    parts = {
        name: max(devices_for(day.device_hours.get(name, 0.0)), day.reserved.get(name, 0))
        for name in names
    }
    ordered = sorted(parts.items(), key=lambda part: (-part[1], part[0]))
    return DemandClash(at=day.at, needed=day.needed, pool=pool, parts=tuple(ordered))


def _proposals(
    works: Iterable[DueWork],
    reservations: Sequence[Reservation],
    *,
    pool: int,
    since: float,
    most: Mapping[str, int],
) -> Iterable[ProposedReservation]:
    """Yield a reservation for the last hours before each due date, in their order.

    Due dates of a course with overlapping hours get one together. Hours that have begun are
    proposed from now on. What the course has reserved in these hours is subtracted; what others
    have reserved, or get by an earlier proposal, is not proposed again.
    """
    given: list[tuple[float, float, int]] = []
    # Reservations begin at whole minutes.
    now = ceil(since / 60) * 60
    coming = (work for work in works if window_before(work.due, work.zone)[1].timestamp() > now)
    for together in _with_overlapping_windows(coming):
        course = together[0].course
        windows = [window_before(work.due, work.zone) for work in together]
        wanted = sum(map(_devices_in_window, together))
        soonest = datetime.fromtimestamp(now, ZoneInfo(together[0].zone))
        begins = max(min(begins for begins, _ in windows), soonest)
        ends = max(ends for _, ends in windows)
        start, end = begins.timestamp(), ends.timestamp()
        held = _reserved(reservations, start, end)
        others = sum(devices for group, devices in held.items() if group != course)
        others += sum(devices for a, b, devices in given if a < end and start < b)
        own = held.get(course, 0)
        devices = min(wanted - own, pool - others - own, most.get(course, pool) - own)
        if devices >= 1:
            given.append((start, end, devices))
        if wanted > own:
            yield ProposedReservation(
                works=together,
                devices=max(0, devices),
                wanted=wanted - own,
                begins=begins,
                ends=ends,
            )


def _with_overlapping_windows(works: Iterable[DueWork]) -> Iterable[tuple[DueWork, ...]]:
    """Return the works in their order, those of a course with overlapping windows together."""
    found: list[list[DueWork]] = []
    for work in works:
        begins, _ = window_before(work.due, work.zone)
        for each in found:
            same = (each[-1].course, each[-1].zone) == (work.course, work.zone)
            if same and begins < window_before(each[-1].due, work.zone)[1]:
                each.append(work)
                break
        else:
            found.append([work])
    return map(tuple, found)


def _devices_in_window(work: DueWork) -> int:
    begins, ends = window_before(work.due, work.zone)
    hours = (ends.timestamp() - begins.timestamp()) / HOUR
    return devices_for(work.shares[0] * work.device_hours, hours)


def window_before(due: float, zone: str) -> tuple[datetime, datetime]:
    """Return the hours before a due date in which a class works, in its time zone.

    They end with the due date; for a due date before noon, at 22:00 on the day before. They begin
    ``BUSY_HOURS`` earlier, but not before 8:00.
    """
    local = ZoneInfo(zone)
    end = datetime.fromtimestamp(due, local).replace(second=0, microsecond=0)
    if end.time() < _NOON:
        before = end.date() - timedelta(days=1)
        end = datetime.fromtimestamp(moment_of(before, _LATEST, local), local)
    earliest = datetime.fromtimestamp(moment_of(end.date(), _EARLIEST, local), local)
    start = datetime.fromtimestamp(end.timestamp() - BUSY_HOURS * HOUR, local)
    return max(start, earliest), end


def shares_of(amounts: Sequence[float]) -> tuple[float, ...]:
    """Return amounts by days before a due date as shares; the default ones without an amount."""
    known = [amount if isfinite(amount) and amount > 0 else 0.0 for amount in amounts]
    total = sum(known)
    return tuple(amount / total for amount in known) if total else DEFAULT_SHARES


def day_text(at: float) -> str:
    """``2026-12-01``"""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"
