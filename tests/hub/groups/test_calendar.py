"""Reservations keep their local time across clock changes."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.records.calendar import Reservation, moment_of

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC", "Asia/Kolkata")
CLOCKS = st.times(max_value=time(23, 59)).map(lambda t: t.replace(second=0, microsecond=0))


def reservation(
    begins: time, ends: time, *, zone: str = "Europe/Berlin", weekdays: tuple[int, ...] = (1,)
) -> Reservation:
    return Reservation(
        id="r-1",
        group="cs101",
        devices=8,
        weekdays=weekdays,
        begins=begins,
        ends=ends,
        zone=zone,
        first=date(2026, 1, 1),
        last=date(2027, 12, 31),
    )


def utc(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("day", "begins"),
    [
        ("2026-03-24", "2026-03-24T09:00"),  # winter time
        ("2026-03-31", "2026-03-31T08:00"),  # after the change of 29 March
        ("2026-10-20", "2026-10-20T08:00"),
        ("2026-10-27", "2026-10-27T09:00"),  # after the change of 25 October
    ],
)
def test_a_reservation_at_ten_is_at_ten_before_and_after_a_clock_change(
    day: str, begins: str
) -> None:
    found = list(
        reservation(time(10), time(12)).occurrences(utc(f"{day}T00:00"), utc(f"{day}T23:00"))
    )
    assert [each.starts_at for each in found] == [utc(begins)]
    assert [each.ends_at for each in found] == [utc(begins) + 7200]


def test_an_hour_skipped_by_a_clock_change_has_no_occurrence() -> None:
    night = reservation(time(1), time(4), weekdays=(6,))
    inside = reservation(time(2, 15), time(2, 45), weekdays=(6,))
    partly = reservation(time(2, 30), time(4), weekdays=(6,))
    since, until = utc("2026-03-28T12:00"), utc("2026-03-29T12:00")
    (long,) = night.occurrences(since, until)
    assert long.ends_at - long.starts_at == 2 * 3600
    assert list(inside.occurrences(since, until)) == []
    (short,) = partly.occurrences(since, until)
    assert (short.starts_at, short.ends_at) == (utc("2026-03-29T01:00"), utc("2026-03-29T02:00"))


def test_a_repeated_hour_belongs_to_the_reservation_that_spans_it() -> None:
    since, until = utc("2026-10-24T12:00"), utc("2026-10-25T12:00")
    (night,) = reservation(time(1), time(4), weekdays=(6,)).occurrences(since, until)
    assert night.ends_at - night.starts_at == 4 * 3600


def test_reservations_past_midnight_and_for_a_single_day() -> None:
    late = reservation(time(22), time(2), zone="UTC")
    (night,) = late.occurrences(utc("2026-11-18T00:30"), utc("2026-11-18T20:00"))
    assert (night.starts_at, night.ends_at) == (utc("2026-11-17T22:00"), utc("2026-11-18T02:00"))
    once = Reservation(
        id="r-2",
        group="cs101",
        devices=1,
        weekdays=(),
        begins=time(9),
        ends=time(10),
        zone="UTC",
        first=date(2026, 12, 1),
        last=date(2026, 12, 1),
    )
    assert len(list(once.occurrences(utc("2026-01-01T00:00"), utc("2027-12-31T00:00")))) == 1
    assert once.when == "2026-12-01 09:00-10:00 UTC"
    assert late.when == "Tue 22:00-02:00 UTC"


@given(
    zone=st.sampled_from(ZONES),
    weekdays=st.sets(st.integers(0, 6), min_size=1).map(lambda days: tuple(sorted(days))),
    begins=CLOCKS,
    ends=CLOCKS,
    start=st.dates(date(2026, 2, 1), date(2027, 4, 1)),
)
def test_every_occurrence_is_at_its_local_time(
    zone: str, weekdays: tuple[int, ...], begins: time, ends: time, start: date
) -> None:
    """Eight weeks from any day, across both clock changes of a year, in several time zones."""
    place = ZoneInfo(zone)
    since = moment_of(start, time(0), place)
    until = since + 56 * 86400
    found = list(reservation(begins, ends, zone=zone, weekdays=weekdays).occurrences(since, until))
    assert 7 * len(weekdays) <= len(found) <= 9 * len(weekdays)
    for each in found:
        wall = datetime.fromtimestamp(each.starts_at, place)
        over = datetime.fromtimestamp(each.ends_at, place)
        if wall.time() != begins:
            # Only skipped times differ: the occurrence then begins right after the gap.
            earlier = datetime.fromtimestamp(each.starts_at - 1, place)
            assert earlier.time() < begins < wall.time()
        assert wall.weekday() in weekdays
        by_the_wall = datetime.combine(date.min, ends) - datetime.combine(date.min, begins)
        lasts = by_the_wall if by_the_wall > timedelta(0) else by_the_wall + timedelta(days=1)
        shift = (over.utcoffset() or timedelta(0)) - (wall.utcoffset() or timedelta(0))
        if wall.time() == begins and over.time() == ends:
            assert each.ends_at - each.starts_at == (lasts - shift).total_seconds()
    assert all(a.ends_at <= b.starts_at for a, b in itertools.pairwise(found))
