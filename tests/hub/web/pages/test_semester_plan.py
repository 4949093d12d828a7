"""The semester plan: its page, its REST call, and reservations that are accepted."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from carrel.courses.model.records import Assignment, Course, Member
from carrel.hub.records.calendar import Term
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.scheduling.model.states import State
from carrel.hub.transitions import lifecycle

from ....contracts.store_kit import DONE, job, running
from ...doubles import STUDENT1
from ..fakes import API, PREFIX
from ..page_checks import check_page
from ..site import Site, site

__all__ = ["site"]

DAY = 86400.0
PAGE = f"{PREFIX}admin/semester"


@pytest.fixture
def course(site: Site) -> Site:
    """cs101 has 12 students on its roster, 2 in its group; ps1 is due in 5 days at 18:00 UTC."""
    store = site.world.web.courses.access.store
    now = site.clock()
    site.context.store.put_group(Group(name="cs101", max_devices=2, max_devices_per_user=2))
    store.put_course(Course(name="cs101", created_at=now, created_by="admin"))
    store.put_members("cs101", [Member(course="cs101", person=f"s{n}") for n in range(12)])
    due = (now // DAY + 5) * DAY + 18 * 3600
    for name, at in (("ps1", due), ("ps0", now - DAY), ("project", None)):
        store.put_assignment(Assignment(course="cs101", name=name, due=at, devices=1, seconds=900))
    return site


def test_the_plan_says_what_a_course_needs_and_how_that_is_known(course: Site) -> None:
    found = course.api().get(f"{API}/plan/semester").json()
    [work] = found["works"]
    assert (work["assignment"], work["students"], work["device_hours"]) == ("ps1", 14, 14.0)
    assert work["source"] == "time limit of the assignment, 4 runs per student assumed"
    assert "cs101: project has no due date." in found["notes"]
    assert sum(sum(day["device_hours"].values()) for day in found["days"]) == pytest.approx(
        14.0, rel=0.06
    ), "the first hours of the week before lie in the past"
    [proposal] = found["proposals"]
    assert proposal["reservation"]["devices"] == 1
    assert proposal["reservation"]["when"].endswith("08:00-18:00 UTC")


def test_a_proposal_becomes_an_ordinary_reservation(course: Site) -> None:
    page = course.page().get(PAGE)
    check_page(page.text)
    [form] = re.findall(r'<form method="post" action="[^"]*admin/calendar".*?</form>', page.text)
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form)) | {"do": "reserve"}
    answer = course.page().post(f"{PREFIX}admin/calendar", data=fields)
    assert answer.status_code == 303
    [made] = course.context.store.reservations()
    assert (made.group, made.devices, made.why) == ("cs101", 1, "Before ps1 is due")
    assert course.api().get(f"{API}/plan/semester").json()["proposals"] == []


def test_usage_before_two_earlier_due_dates_counts_once_and_with_that_of_subgroups(
    course: Site,
) -> None:
    """Two hours of a subgroup, and an hour of another course below, before ps0 and an exam."""
    store, now = course.context.store, course.clock()
    courses = course.world.web.courses.access.store
    for name in ("cs101-a", "ml"):
        store.put_group(Group(name=name, parent="cs101", max_devices=2, max_devices_per_user=2))
    courses.put_course(Course(name="ml", created_at=now, created_by="admin"))
    courses.put_assignment(Assignment(course="cs101", name="exam", due=now - DAY))
    device = store.devices()[0].id
    for name, group, seconds in (("a", "cs101-a", 7200), ("b", "ml", 3600)):
        start = now - 1.5 * DAY - seconds
        new = replace(job(name), group=group, seconds=seconds)
        lease = running(store, new, device, at=start)
        store.apply(new.id, lifecycle.stop, State.SUCCEEDED, DONE, now=start + seconds)
        store.apply_to_lease(
            lease.id, lifecycle.finish, now=start + seconds, charge_until=start + seconds
        )
    [work] = course.api().get(f"{API}/plan/semester").json()["works"]
    assert work["source"] == "usage before 2 earlier due dates"
    assert work["device_hours"] == pytest.approx(1.0)


def test_the_demand_is_downloaded_by_day_and_course(course: Site) -> None:
    rows = list(csv.DictReader(io.StringIO(course.page().get(f"{PAGE}/csv").text)))
    assert {row["name"] for row in rows} == {"cs101"}
    assert rows[-1]["pool_devices"] == "2"


def test_without_courses_and_with_an_empty_roster_the_page_says_so(site: Site) -> None:
    empty = site.page().get(PAGE)
    check_page(empty.text)
    assert "There are no courses: nothing is planned." in empty.text
    store = site.world.web.courses.access.store
    site.context.store.put_group(Group(name="ml", max_devices=1, max_devices_per_user=1))
    store.put_course(Course(name="ml", created_at=0.0, created_by="admin"))
    assert "ml has no students" in site.page().get(PAGE).text


def test_a_term_that_is_over_or_unknown_is_refused_on_the_page(site: Site) -> None:
    first = datetime.fromtimestamp(0, UTC).date()
    site.context.store.put_term(Term(name="old", first=first, last=first))
    for term, said in (("old", "is over"), ("none", "There is no term none")):
        answer = site.page().get(f"{PAGE}?term={term}")
        assert answer.status_code >= 400
        assert said in answer.text
    assert site.page(STUDENT1).get(PAGE).status_code == 403
