"""Jobs that wait for other jobs."""

from __future__ import annotations

import pytest

from carrel.hub.controller.dependencies import RESUMPTIONS_EVERY, DependencyController
from carrel.hub.errors import InvalidInput
from carrel.hub.records.identity import ProgramJob
from carrel.hub.requests.explanation import WaitExplanations
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.requests.resumption import Resumption
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.schemas import RequestOut
from carrel.hub.schemas.resume import ResumeIn
from carrel.hub.store.sql.programs import SqlPrograms

from ..doubles import STUDENT1, STUDENT2
from ..requests.samples import job
from ..world import World, world

__all__ = ["world"]


def submit(world: World, *after: str, **changes: object) -> RequestOut:
    return JobService(world.context).submit(STUDENT1, job(after=list(after), **changes))


def end(world: World, made: RequestOut, code: str = "succeeded") -> None:
    world.report(made, "ended", code=code, message="It ended.", details="")
    world.backend.end(world.lease(made))
    world.settle(2)


def state(world: World, made: RequestOut) -> str:
    return world.see(made).state


def sentence(world: World, made: RequestOut) -> str:
    wait = world.see(made).wait
    assert wait is not None
    assert wait.reason == "dependency"
    return wait.sentence


def test_a_job_starts_after_the_job_that_it_waits_for_and_holds_nothing_until_then(
    world: World,
) -> None:
    first = world.running_job(devices=1)
    second = submit(world, first.id)
    world.settle(3)
    assert sentence(world, second) == f"It waits for {first.id} to succeed, and that is running."
    assert (world.see(second).not_before, world.see(second).after) == (None, [first.id])
    other = world.running_job(devices=1)
    assert state(world, other) == "running", "the free device is not kept for it"
    end(world, first)
    assert state(world, second) == "starting"


def test_the_jobs_of_programs_are_read_only_if_one_is_held(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = submit(world, world.running_job(devices=0).id)

    def refused(_store: SqlPrograms) -> tuple[ProgramJob, ...]:
        pytest.fail("the jobs of programs were read")

    monkeypatch.setattr(SqlPrograms, "program_jobs", refused)
    DependencyController(world.context).reconcile(world.clock.now)
    assert state(world, held) == "queued"


def test_a_job_waits_for_all_of_several_jobs(world: World) -> None:
    first, second = world.running_job(devices=0), world.running_job(devices=0)
    last = submit(world, first.id, f"{second.id}:any", f"{first.id}:ok", devices=0)
    end(world, second, "cell_error")
    assert sentence(world, last) == f"It waits for {first.id} to succeed, and that is running."
    end(world, first)
    assert state(world, last) == "starting"


def test_after_a_failure_the_rest_goes_on_when_the_failed_job_was_resumed(world: World) -> None:
    first = world.running_job()
    second = submit(world, first.id)
    end(world, first, "cell_error")
    assert state(world, second) == "queued"
    assert sentence(world, second) == (
        f"It waits for {first.id} to succeed, and that is failed: resume that job (carrel resume "
        f"{first.id}), or cancel this one."
    )
    again = Resumption(world.context).resume(STUDENT1, first.id, ResumeIn()).request
    assert again is not None
    world.clock.pass_(RESUMPTIONS_EVERY)
    world.settle()
    assert f"waits for {again.id} to succeed" in sentence(world, second)
    world.restart()
    world.claim(again)
    end(world, again, "cell_error")
    last = Resumption(world.context).resume(STUDENT1, again.id, ResumeIn()).request
    assert last is not None
    world.clock.pass_(RESUMPTIONS_EVERY)
    world.settle()
    world.claim(last)
    end(world, last)
    assert state(world, second) == "starting"


def test_an_end_counts_although_the_job_is_resumed_later(world: World) -> None:
    first, second = world.running_job(devices=0), world.running_job(devices=0)
    last = submit(world, f"{first.id}:any", second.id, devices=0)
    end(world, first, "cell_error")
    assert Resumption(world.context).resume(STUDENT1, first.id, ResumeIn()).request is not None
    world.clock.pass_(RESUMPTIONS_EVERY)
    end(world, second)
    assert state(world, last) == "starting"


def test_a_waiting_job_can_be_cancelled_explained_and_followed(world: World) -> None:
    first = world.running_job()
    second = submit(world, first.id)
    world.settle()
    followers = RequestQueries(world.context).followers(STUDENT1, first.id)
    assert [each.id for each in followers] == [second.id]
    assert RequestQueries(world.context).followers(STUDENT2, first.id) == []
    why = WaitExplanations(world.context).why(STUDENT1, second.id)
    assert why.suggestions == []
    assert why.wait is not None
    assert f"It waits for {first.id} to succeed" in why.wait.sentence
    assert f"waits for {first.id}" in " ".join(why.sentences), why.sentences
    RequestTermination(world.context).cancel(STUDENT1, second.id)
    assert state(world, second) == "cancelled"
    assert RequestQueries(world.context).followers(STUDENT1, first.id) == []


def test_a_job_that_has_ended_already_is_no_wait(world: World) -> None:
    first = world.running_job()
    end(world, first)
    second = submit(world, first.id)
    world.settle(2)
    assert state(world, second) == "starting"


@pytest.mark.parametrize("text", ["j-x:maybe", "j-x:", ":ok", ""])
def test_a_malformed_dependency_names_what_is_accepted(world: World, text: str) -> None:
    with pytest.raises(InvalidInput, match="Invalid dependency") as caught:
        submit(world, text)
    assert caught.value.field == "after"
    assert "JOB:any" in caught.value.accepted


def test_a_job_depends_only_on_jobs_that_its_owner_can_see(world: World) -> None:
    foreign = JobService(world.context).submit(STUDENT2, job())
    session = world.running_session()
    for name, message in [
        ("j-unknown", "There is no request j-unknown"),
        (foreign.id, f"There is no request {foreign.id}"),
        (session.id, f"{session.id} is a session"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            submit(world, name)


def test_a_waiting_job_has_no_position(world: World) -> None:
    first = world.running_job()
    second, third = submit(world, first.id), submit(world, devices=2)
    world.settle()
    (waiting, behind) = (world.see(each).wait for each in (second, third))
    assert waiting is not None
    assert behind is not None
    assert (waiting.place, behind.place) == (0, 1)
