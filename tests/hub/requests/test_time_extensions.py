"""Time extensions, unless other requests wait or the group's limit is reached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from carrel.hub.errors import Conflict, NotFound, OverMaximum
from carrel.hub.records.calendar import Reservation
from carrel.hub.requests.amendments import TimeExtensions
from carrel.hub.requests.attempt_reports import AttemptReports
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.snapshot import Budget, Period
from carrel.hub.scheduling.model.text import span
from carrel.hub.schemas import SessionIn
from carrel.hub.sessions.lifecycle import SessionLifecycle

from ..doubles import ADMIN, STUDENT1, STUDENT2, TEACHER
from ..world import World
from .samples import job

HOUR = 3600


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """One device."""
    made = World.over(tmp_path, devices=1)
    yield made
    made.loop.close()


@pytest.fixture
def extending(world: World) -> TimeExtensions:
    return TimeExtensions(world.context)


def test_an_extended_session_runs_past_its_first_limit(
    world: World, extending: TimeExtensions
) -> None:
    made = world.running_session()
    before = world.see(made)
    assert before.ends_by is not None
    extended = extending.extend(STUDENT1, made.id, 1800)
    assert extended.ends_by == before.ends_by + 1800
    world.clock.pass_(HOUR + 60)
    world.settle(2)
    assert world.see(made).state == "running"
    world.clock.pass_(1800)
    world.settle(3)
    assert world.see(made).state == "timed_out"


def test_an_engine_that_ends_jobs_itself_may_refuse(
    world: World, extending: TimeExtensions
) -> None:
    made = world.running_session()
    world.backend.refuses_to_extend = "Slurm says no."
    with pytest.raises(Conflict, match=r"^It cannot be extended\. Slurm says no\.$"):
        extending.extend(STUDENT1, made.id, 1800)
    assert world.see(made).seconds == made.seconds


def test_a_job_is_extended_too_and_by_those_who_teach_or_administrate(
    world: World, extending: TimeExtensions
) -> None:
    made = world.running_job()
    for who in (STUDENT1, TEACHER, ADMIN):
        extending.extend(who, made.id, 60)
    assert world.see(made).seconds == 600 + 180
    told = [e.data["by"] for e in world.context.store.events(made.id) if e.kind == "extended"]
    assert told == ["student1", "teacher", "admin"]
    with pytest.raises(NotFound):
        extending.extend(STUDENT2, made.id, 60)


def test_an_extension_repeated_after_a_lost_response_counts_once(
    world: World, extending: TimeExtensions
) -> None:
    made = world.running_session()
    for _ in range(2):
        assert extending.extend(STUDENT1, made.id, 1800, seen=HOUR).seconds == HOUR + 1800
    assert len([e for e in world.context.store.events(made.id) if e.kind == "extended"]) == 1
    # Also if another request has been queued, or the first one reached the group's limit.
    waits = JobService(world.context).submit(STUDENT2, job())
    world.settle()
    assert extending.extend(STUDENT1, made.id, 1800, seen=HOUR).seconds == HOUR + 1800
    RequestTermination(world.context).cancel(STUDENT2, waits.id)
    most = extending.extend(STUDENT1, made.id, 7 * HOUR, seen=HOUR)
    assert extending.extend(STUDENT1, made.id, 7 * HOUR, seen=HOUR) == most
    # A call with the new end adds to it.
    world.clock.pass_(HOUR)
    again = extending.extend(STUDENT1, made.id, 600, seen=most.seconds)
    assert again.seconds == most.seconds + 600


def test_no_extension_while_another_request_waits_for_the_device(
    world: World, extending: TimeExtensions
) -> None:
    made = world.running_session()
    waits = JobService(world.context).submit(STUDENT2, job())
    world.settle()
    with pytest.raises(Conflict, match="a queued request waits for the device") as refused:
        extending.extend(STUDENT1, made.id, 60)
    assert "student2" not in str(refused.value)
    RequestTermination(world.context).cancel(STUDENT2, waits.id)
    assert extending.extend(STUDENT1, made.id, 60).seconds == HOUR + 60


def test_a_cpu_session_is_extended_while_others_wait(
    world: World, extending: TimeExtensions
) -> None:
    desk = SessionLifecycle(world.context).start(STUDENT1, "cpu", SessionIn(devices=0, hours=1.0))
    world.context.spawner_listeners.attach(desk.id)
    world.settle()
    AttemptReports(world.context).launch(world.lease(desk))
    world.running_job()
    JobService(world.context).submit(STUDENT2, job())
    world.settle()
    assert extending.extend(STUDENT1, desk.id, 60).seconds == HOUR + 60


def test_no_extension_beyond_the_limit_of_the_group(
    world: World, extending: TimeExtensions
) -> None:
    made = world.running_session()
    with pytest.raises(OverMaximum, match="allows at most 8 hours from now") as refused:
        extending.extend(STUDENT1, made.id, 7 * HOUR + 1)
    assert refused.value.accepted == "Extend it by at most 7 hours."
    extending.extend(STUDENT1, made.id, 7 * HOUR)
    with pytest.raises(OverMaximum, match="remaining time is at this limit"):
        extending.extend(STUDENT1, made.id, 60)
    world.clock.pass_(HOUR)
    assert extending.extend(STUDENT1, made.id, HOUR).seconds == 9 * HOUR


def test_queued_and_ended_requests_are_not_extended(
    world: World, extending: TimeExtensions
) -> None:
    made = JobService(world.context).submit(STUDENT1, job())
    with pytest.raises(Conflict, match="it is queued"):
        extending.extend(STUDENT1, made.id, 60)
    RequestTermination(world.context).cancel(STUDENT1, made.id)
    with pytest.raises(Conflict, match="it is cancelled"):
        extending.extend(STUDENT1, made.id, 60)


def reserve(world: World, devices: int, starts_at: float, hours: int = 2) -> None:
    """Reserve devices for lab."""
    begins, ends = (datetime.fromtimestamp(at, UTC) for at in (starts_at, starts_at + hours * HOUR))
    store = world.context.store
    store.put_group(replace(store.group("cs101"), name="lab"))
    store.put_reservation(
        Reservation(
            id="r-1",
            group="lab",
            devices=devices,
            weekdays=(),
            begins=begins.time(),
            ends=ends.time(),
            zone="UTC",
            first=begins.date(),
            last=begins.date(),
        )
    )


def minute_after(at: float) -> float:
    """Return the next whole minute, because reservations begin at one."""
    return -(-at // 60) * 60


def test_an_extension_ends_before_a_reservation_of_others(
    world: World, extending: TimeExtensions
) -> None:
    made = world.running_session()
    ends = world.see(made).ends_by
    assert ends is not None
    begins = minute_after(ends + 1200)
    reserve(world, 1, begins)
    with pytest.raises(Conflict, match="reserved from then on") as refused:
        extending.extend(STUDENT1, made.id, HOUR)
    assert refused.value.accepted == f"Extend it by at most {span(int(begins - ends))}."
    extended = extending.extend(STUDENT1, made.id, int(begins - ends))
    assert extended.ends_by == begins
    with pytest.raises(Conflict) as refused:
        extending.extend(STUDENT1, made.id, 60)
    assert refused.value.accepted == "It runs until its time limit."


def test_an_extension_past_a_reservation_that_leaves_enough_devices(tmp_path: Path) -> None:
    world = World.over(tmp_path, devices=2)
    made = world.running_session()
    ends = world.see(made).ends_by
    assert ends is not None
    reserve(world, 1, minute_after(ends + 1200))
    assert TimeExtensions(world.context).extend(STUDENT1, made.id, HOUR).seconds == 2 * HOUR
    world.loop.close()


def test_no_extension_during_a_reservation_that_ends_later(
    world: World, extending: TimeExtensions
) -> None:
    made = world.running_session()
    reserve(world, 1, minute_after(world.clock.now + 60), hours=3)
    world.clock.pass_(HOUR // 2)
    with pytest.raises(Conflict, match="reserved from then on"):
        extending.extend(STUDENT1, made.id, 60)


def test_a_reservation_that_ends_earlier_does_not_prevent_an_extension(
    world: World, extending: TimeExtensions
) -> None:
    made = world.running_session()
    extending.extend(STUDENT1, made.id, 3 * HOUR)
    reserve(world, 1, minute_after(world.clock.now + 60), hours=1)
    assert extending.extend(STUDENT1, made.id, 60).seconds == 4 * HOUR + 60


def test_no_extension_of_borrowed_devices_that_others_could_not_reclaim(
    world: World, extending: TimeExtensions
) -> None:
    made = world.running_session()
    store = world.context.store
    store.put_group(replace(store.group("cs101"), name="lab", guaranteed=1))
    with pytest.raises(Conflict, match="needed for the guaranteed quota of other groups"):
        extending.extend(STUDENT1, made.id, 60)
    store.put_group(replace(store.group("cs101"), sessions_borrow=True))
    assert extending.extend(STUDENT1, made.id, 60).seconds == HOUR + 60


def test_no_extension_without_budget(world: World, extending: TimeExtensions) -> None:
    made = world.running_session()
    store = world.context.store
    whole = Budget(device_seconds=HOUR, period=Period.WEEK)
    store.put_group(replace(store.group("cs101"), budget=whole))
    with pytest.raises(Conflict, match="all that is left of its group's budget in this period"):
        extending.extend(STUDENT1, made.id, 60)
    store.put_group(replace(store.group("cs101"), budget=replace(whole, device_seconds=2 * HOUR)))
    assert extending.extend(STUDENT1, made.id, 60).seconds == HOUR + 60
