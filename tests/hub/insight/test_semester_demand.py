"""The demand of courses before due dates: curve, clashes and proposed reservations."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import pytest

from carrel.hub.insight.semester_demand import (
    DAY,
    DEFAULT_SHARES,
    DueWork,
    SemesterDemand,
    devices_for,
    semester_demand,
    shares_of,
    window_before,
    work_between,
)
from carrel.hub.records.calendar import Reservation

MONDAY = datetime(2026, 11, 30, tzinfo=UTC).timestamp()
DUE = MONDAY + 4 * DAY + 20 * 3600
"""Friday at 20:00."""


def work(course: str = "cs101", *, hours: float = 200.0, due: float = DUE) -> DueWork:
    return DueWork(
        course=course, assignment="ps1", due=due, zone="UTC", students=20, hours_each=hours / 20
    )


def reservation(group: str, devices: int) -> Reservation:
    """A reservation on Friday from 12:00 to 21:00."""
    friday = date(2026, 12, 4)
    return Reservation(
        id=f"r-{group}",
        group=group,
        devices=devices,
        weekdays=(),
        begins=time(12),
        ends=time(21),
        zone="UTC",
        first=friday,
        last=friday,
    )


def demand(*works: DueWork, reservations: tuple[Reservation, ...] = ()) -> SemesterDemand:
    return semester_demand(
        works, reservations, pool=8, since=MONDAY, until=MONDAY + 7 * DAY, most={}
    )


def test_the_shares_sum_to_the_work_and_grow_toward_the_due_date() -> None:
    assert sum(DEFAULT_SHARES) == pytest.approx(1.0)
    found = demand(work(due=MONDAY + 6.5 * DAY))
    hours = [day.device_hours.get("cs101", 0.0) for day in found.days]
    assert hours[:6] == sorted(hours[:6])
    assert work_between(work(), 0.0, DUE) == pytest.approx(200.0)


def test_two_courses_that_are_due_at_once_clash() -> None:
    assert demand(work(hours=100)).clashes == ()
    found = demand(work(hours=100), work("ml", hours=160))
    clash = next(each for each in found.clashes if each.at == MONDAY + 4 * DAY)
    assert (clash.needed, clash.pool, clash.parts) == (10, 8, (("ml", 6), ("cs101", 4)))


def test_a_course_clashes_with_a_reservation_and_gets_what_is_left() -> None:
    found = demand(work(), reservations=(reservation("lab", 5),))
    assert dict(found.clashes[-1].parts) == {"lab": 5, "cs101": 7}
    [proposal] = found.proposals
    assert (proposal.devices, proposal.wanted) == (3, 8)
    assert f"{proposal.begins:%a %H:%M}-{proposal.ends:%H:%M}" == "Fri 10:00-20:00"


def test_what_a_course_has_reserved_is_not_proposed_again() -> None:
    assert demand(work(), reservations=(reservation("cs101", 8),)).proposals == ()


def test_the_earlier_due_date_is_proposed_first_and_later_ones_get_the_rest() -> None:
    found = demand(work("ml", due=DUE + 60), work("cs101", hours=150))
    assert [(each.works[0].course, each.devices) for each in found.proposals] == [
        ("cs101", 6),
        ("ml", 2),
    ]


def test_due_dates_of_a_course_in_the_same_hours_get_one_reservation() -> None:
    later = work(hours=50, due=DUE + 3600)
    found = demand(work(hours=75), later, reservations=(reservation("cs101", 1),))
    [proposal] = found.proposals
    assert [each.due for each in proposal.works] == [DUE, DUE + 3600]
    assert (proposal.devices, proposal.wanted) == (4, 4)
    assert f"{proposal.begins:%a %H:%M}-{proposal.ends:%H:%M}" == "Fri 10:00-21:00"


def test_hours_that_have_begun_are_proposed_from_now_on() -> None:
    now = DUE - 5 * 3600 - 30
    found = semester_demand([work()], (), pool=8, since=now, until=now + DAY, most={})
    [proposal] = found.proposals
    assert f"{proposal.begins:%a %H:%M}-{proposal.ends:%H:%M}" == "Fri 15:00-20:00"
    assert proposal.devices == 8


@pytest.mark.parametrize("due", [MONDAY - 1, float("nan"), float("inf")])
def test_due_dates_in_the_past_or_without_a_time_have_no_demand(due: float) -> None:
    found = demand(work(due=due))
    assert (found.proposals, found.clashes) == ((), ())
    assert not any(day.needed for day in found.days)


def test_a_class_does_not_work_at_night() -> None:
    due = datetime(2026, 12, 4, 7, tzinfo=UTC).timestamp()
    begins, ends = window_before(due, "Europe/Berlin")
    assert f"{begins:%a %H:%M}-{ends:%a %H:%M}" == "Thu 12:00-Thu 22:00"


def test_shares_come_from_earlier_days_and_broken_values_count_as_none() -> None:
    assert shares_of([3.0, 1.0, float("nan"), -1.0]) == (0.75, 0.25, 0.0, 0.0)
    assert shares_of([0.0]) == DEFAULT_SHARES
    assert (devices_for(0.0), devices_for(10.0), devices_for(10.1)) == (0, 1, 2)
