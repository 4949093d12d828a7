"""Schedules of rehearsals: who makes and changes them, their times, and owners who leave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.errors import Conflict, Forbidden, InvalidInput, NotFound
from carrel.hub.records.identity import Identity
from carrel.hub.schemas.coursework.rehearsals import RehearsalScheduleIn
from carrel.hub.schemas.schedules import ScheduleChangeIn, ScheduleOut
from carrel.hub.workflows.due_schedules import DueSchedules
from carrel.hub.workflows.rehearsal_schedules import RehearsalSchedules
from carrel.hub.workflows.schedules import ScheduleService

from ...courses import course_site
from ...courses.course_site import GRADER, CourseSite
from ..doubles import STUDENT1, TEACHER

HOUR = 3600.0
ANOTHER = replace(TEACHER, name="another")


@pytest.fixture
def site(tmp_path: Path) -> CourseSite:
    made = course_site.build_site(tmp_path)
    made.create(students="student,role\nstudent1,student\ngus,grader\n")
    made.hub.people.add("another")
    made.services.access.context.store.set_teachers("cs101", ["another", "teacher"])
    made.release()
    return made


def schedules(site: CourseSite) -> RehearsalSchedules:
    return RehearsalSchedules(site.services.access.context, site.services.rehearsals)


def create(site: CourseSite, who: Identity = TEACHER, **changes: str) -> ScheduleOut:
    body = RehearsalScheduleIn.model_validate({"cron": "0 * * * *"} | changes)
    return schedules(site).create(who, "cs101", body)


def pass_time(site: CourseSite, seconds: float) -> ScheduleOut:
    """Run a cycle after so long; return the only schedule as a grader sees it."""
    site.clock.now += seconds
    DueSchedules(site.services.access.context, schedules(site)).reconcile()
    (found,) = schedules(site).all(GRADER, "cs101").schedules
    return found


def rehearsed(site: CourseSite) -> list[tuple[str, str]]:
    found = site.services.rehearsals.recent(GRADER, "cs101").rehearsals
    return [(each.id, each.asked_by) for each in found]


def change(site: CourseSite, who: Identity, found: ScheduleOut, state: str) -> ScheduleOut:
    body = ScheduleChangeIn.model_validate({"state": state})
    return ScheduleService(site.services.access.context).change(who, found.id, body)


def test_a_rehearsal_is_started_at_each_time(site: CourseSite) -> None:
    made = create(site, assignment="ps1")
    assert (made.owner, made.course, made.what) == ("teacher", "cs101", "Rehearsal of ps1 of cs101")
    assert pass_time(site, 60).last_due is None
    found = pass_time(site, 3 * HOUR)
    assert (found.missed, found.last_error) == (2, "")
    assert rehearsed(site) == [(found.last_request, "teacher")]
    assert found.next_at is not None
    assert found.next_at > site.clock()


def test_a_crash_after_the_start_does_not_start_it_twice(site: CourseSite) -> None:
    create(site)
    store = site.services.access.context.store
    update = store.update_schedule
    store.update_schedule = None  # type: ignore[assignment,method-assign]  # the service stops here
    site.clock.now += HOUR
    DueSchedules(site.services.access.context, schedules(site)).reconcile()
    store.update_schedule = update  # type: ignore[method-assign]
    found = pass_time(site, 1)
    assert [each for each, _ in rehearsed(site)] == [found.last_request]


def test_it_is_paused_when_its_owner_leaves_and_belongs_to_the_one_who_resumes_it(
    site: CourseSite,
) -> None:
    store = site.services.access.context.store
    made = create(site)
    store.set_teachers("cs101", ["another"])
    found = pass_time(site, HOUR)
    assert (found.state, found.paused_why) == ("paused", "teacher does not teach cs101 any more.")
    assert store.schedule(made.id).paused_at == site.clock()
    assert rehearsed(site) == []
    resumed = change(site, ANOTHER, found, "active")
    assert (resumed.owner, resumed.paused_why) == ("another", "")
    assert pass_time(site, HOUR).last_error == ""
    assert [by for _, by in rehearsed(site)] == ["another"]
    with pytest.raises(NotFound):
        change(site, TEACHER, found, "paused")


def test_the_account_of_its_owner_is_removed(site: CourseSite) -> None:
    create(site)
    site.hub.people.discard("teacher")
    assert site.services.access.context.store.remove_schedules_of("teacher") == 0
    found = pass_time(site, HOUR)
    assert (found.state, found.paused_why) == ("paused", "There is no user teacher any more.")


def test_teachers_change_the_schedules_of_their_course(site: CourseSite) -> None:
    service = ScheduleService(site.services.access.context)
    made = create(site)
    assert change(site, ANOTHER, made, "paused").owner == "teacher"
    for who in (STUDENT1, GRADER):
        with pytest.raises(NotFound):
            service.remove(who, made.id)
        with pytest.raises(Forbidden):
            create(site, who)
    with pytest.raises(Forbidden):
        schedules(site).all(STUDENT1, "cs101")
    with pytest.raises(Conflict, match="has no job"):
        service.run(TEACHER, made.id)
    with pytest.raises(Conflict, match="has no job"):
        service.job(TEACHER, made.id)
    service.remove(ANOTHER, made.id)
    assert schedules(site).all(GRADER, "cs101").schedules == []


def test_what_cannot_be_rehearsed_is_refused_now(site: CourseSite) -> None:
    with pytest.raises(InvalidInput, match="not a cron expression"):
        create(site, cron="at night")
    with pytest.raises(InvalidInput, match="time zone"):
        create(site, zone="Mars/Base")
    with pytest.raises(NotFound):
        create(site, assignment="ps9")
