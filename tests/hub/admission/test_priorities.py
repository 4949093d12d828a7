"""What a person may ask for about when a job is served, and what is expected of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.errors import Forbidden, InvalidInput
from carrel.hub.records.identity import Identity
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import PriorityClass
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas import JobIn, SessionIn
from carrel.hub.store.memory import MemoryStore
from carrel.spawners.fake import FakeBackend

from ..doubles import ADMIN, STUDENT1, TEACHER, Clock, FakeHub, build, device


@pytest.fixture
def commands(tmp_path: Path) -> Context:
    clock = Clock()
    backend = FakeBackend(devices=(device(0), device(1)), clock=clock)
    hub = FakeHub()
    hub.members["cs101"].add("admin")
    return build(MemoryStore(), backend, hub, clock, tmp_path)


def asked(**more: object) -> JobIn:
    body = {"group": "cs101", "devices": 1, "command": ["python", "train.py", "--lr", "1"]}
    return JobIn.model_validate(body | more)


@pytest.mark.parametrize("who", [TEACHER, ADMIN])
def test_teachers_and_administrators_may_be_urgent(commands: Context, who: Identity) -> None:
    made = commands.submit_job(who, asked(priority="urgent"))
    assert made.priority == "urgent"
    assert commands.store.request(made.id).priority is PriorityClass.URGENT


def test_a_student_may_not(commands: Context) -> None:
    with pytest.raises(Forbidden, match=r"'normal' or 'opportunistic'"):
        commands.submit_job(STUDENT1, asked(priority="urgent"))
    assert commands.store.snapshot(0).pending == ()


def test_a_session_goes_before_jobs_that_wait_longer(commands: Context) -> None:
    job = commands.submit_job(STUDENT1, asked())
    session = commands.queue_session("student2", "", SessionIn(devices=1, group="cs101"))
    assert session.priority is PriorityClass.INTERACTIVE
    snapshot = replace(commands.store.snapshot(commands.clock()), devices=())
    assert [wait.request_id for wait in decide(snapshot, commands.clock()).waits] == [
        session.id,
        job.id,
    ]


def test_a_job_gives_way_unless_it_is_told_not_to(commands: Context) -> None:
    assert commands.submit_job(STUDENT1, asked()).preemptible
    assert not commands.submit_job(STUDENT1, asked(preemptible=False)).preemptible
    with pytest.raises(InvalidInput, match="gives way to everybody"):
        commands.submit_job(STUDENT1, asked(preemptible=False, priority="opportunistic"))


def test_the_same_job_again_keeps_what_was_asked_but_not_the_hurry(commands: Context) -> None:
    first = commands.submit_job(STUDENT1, asked(priority="opportunistic"))
    assert commands.same_job(STUDENT1, first.id).priority == "opportunistic"
    hurried = commands.submit_job(TEACHER, asked(priority="urgent", preemptible=False))
    again = commands.same_job(TEACHER, hurried.id)
    assert (again.priority, again.preemptible) == ("normal", False)


def test_a_job_is_expected_to_run_as_long_as_the_last_two_like_it(commands: Context) -> None:
    def ran(seconds: float, **more: object) -> None:
        made = commands.submit_job(STUDENT1, asked(**more))
        store, now = commands.store, commands.clock()
        (lease,) = store.grant(
            [Start(request_id=made.id, devices=("SIM-0",))], now=now, lease_seconds=30
        )
        store.launch(lease.id, now=now)
        done = Cause(code=CauseCode.SUCCEEDED, message="It ended.")
        store.stop(made.id, State.SUCCEEDED, done, now=now + seconds)
        store.finish(lease.id, now=now + seconds, charge_until=now + seconds)

    assert commands.submit_job(STUDENT1, asked()).expected_seconds is None
    for seconds in (100, 200, 900):
        ran(seconds)
    ran(5, command=["python", "plot.py"])
    other_arguments = asked(command=["python", "train.py", "--lr", "2"])
    assert commands.submit_job(STUDENT1, other_arguments).expected_seconds == 550
    assert commands.submit_job(STUDENT1, asked(seconds=60)).expected_seconds == 60
    assert commands.submit_job(TEACHER, asked()).expected_seconds is None
