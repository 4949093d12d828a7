"""Priorities that users may request, and the runtime estimates of jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.errors import Forbidden, InvalidInput
from carrel.hub.records.identity import Identity
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.requests.jobs import JobService
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import PriorityClass
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas import JobIn, SessionIn
from carrel.hub.sessions.lifecycle import SessionLifecycle
from carrel.hub.transitions import lifecycle
from carrel.spawners.fake import FakeBackend

from ...stores import new_store
from ..doubles import ADMIN, STUDENT1, TEACHER, Clock, FakeHub, build, device


@pytest.fixture
def context(tmp_path: Path) -> Context:
    clock = Clock()
    backend = FakeBackend(devices=(device(0), device(1)), clock=clock)
    hub = FakeHub()
    hub.members["cs101"].add("admin")
    return build(new_store(), backend, hub, clock, tmp_path)


def asked(**more: object) -> JobIn:
    body = {"group": "cs101", "devices": 1, "command": ["python", "train.py", "--lr", "1"]}
    return JobIn.model_validate(body | more)


@pytest.mark.parametrize("who", [TEACHER, ADMIN])
def test_teachers_and_administrators_may_be_urgent(context: Context, who: Identity) -> None:
    made = JobService(context).submit(who, asked(priority="urgent"))
    assert made.priority == "urgent"
    assert context.store.request(made.id).priority is PriorityClass.URGENT


def test_students_may_not_submit_urgent_jobs(context: Context) -> None:
    with pytest.raises(Forbidden, match=r"'normal' or 'opportunistic'"):
        JobService(context).submit(STUDENT1, asked(priority="urgent"))
    assert context.store.snapshot(0).pending == ()


def test_a_session_goes_before_jobs_that_were_queued_earlier(context: Context) -> None:
    job = JobService(context).submit(STUDENT1, asked())
    session = SessionLifecycle(context).queue("student2", "", SessionIn(devices=1, group="cs101"))
    assert session.priority is PriorityClass.INTERACTIVE
    snapshot = replace(context.store.snapshot(context.clock()), devices=())
    assert [wait.request_id for wait in decide(snapshot, context.clock()).waits] == [
        session.id,
        job.id,
    ]


def test_a_job_is_preemptible_unless_submitted_otherwise(context: Context) -> None:
    assert JobService(context).submit(STUDENT1, asked()).preemptible
    assert not JobService(context).submit(STUDENT1, asked(preemptible=False)).preemptible
    with pytest.raises(InvalidInput, match="is always preemptible"):
        JobService(context).submit(STUDENT1, asked(preemptible=False, priority="opportunistic"))


def test_running_a_job_again_keeps_its_options_except_urgency(context: Context) -> None:
    first = JobService(context).submit(STUDENT1, asked(priority="opportunistic"))
    assert JobService(context).same_job(STUDENT1, first.id).priority == "opportunistic"
    hurried = JobService(context).submit(TEACHER, asked(priority="urgent", preemptible=False))
    again = JobService(context).same_job(TEACHER, hurried.id)
    assert (again.priority, again.preemptible) == ("normal", False)


def test_the_runtime_estimate_of_a_job_is_that_of_the_last_two_equal_jobs(context: Context) -> None:
    def ran(seconds: float, **more: object) -> None:
        made = JobService(context).submit(STUDENT1, asked(**more))
        store, now = context.store, context.clock()
        (lease,) = store.grant(
            [Start(request_id=made.id, devices=("SIM-0",))], now=now, lease_seconds=30
        )
        store.launch(lease.id, now=now)
        done = Cause(code=CauseCode.SUCCEEDED, message="It ended.")
        store.apply(made.id, lifecycle.stop, State.SUCCEEDED, done, now=now + seconds)
        store.apply_to_lease(
            lease.id, lifecycle.finish, now=now + seconds, charge_until=now + seconds
        )

    assert JobService(context).submit(STUDENT1, asked()).expected_seconds is None
    for seconds in (100, 200, 900):
        ran(seconds)
    ran(5, command=["python", "plot.py"])
    other_arguments = asked(command=["python", "train.py", "--lr", "2"])
    assert JobService(context).submit(STUDENT1, other_arguments).expected_seconds == 550
    assert JobService(context).submit(STUDENT1, asked(seconds=60)).expected_seconds == 60
    assert JobService(context).submit(TEACHER, asked()).expected_seconds is None
