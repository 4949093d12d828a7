"""The jobs before and after a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from carrel.hub.errors import NotFound
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.requests import pipelines
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.pipelines import PipelineQueries
from carrel.hub.requests.resumption import Resumption
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas import PipelineJobOut, PipelineOut
from carrel.hub.schemas.resume import ResumeIn
from carrel.hub.transitions import lifecycle, owner_changes
from carrel.spawners.fake import FakeBackend

from ...stores import new_store
from ..doubles import STUDENT1, STUDENT2, TEACHER, Clock, FakeHub, build
from .samples import command

CAUSE = Cause(code=CauseCode.COMMAND_FAILED, message="It failed.")


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return build(new_store(), FakeBackend(), FakeHub(), Clock(), tmp_path)


def submit(context: Context, name: str, *after: str, who: Any = STUDENT1) -> str:
    context.clock.pass_(1)  # type: ignore[attr-defined]  # the clock of tests
    body = command(command=[name], after=list(after), idempotency_key=name)
    return JobService(context).submit(who, body).id


def of(context: Context, job: str, who: Any = STUDENT1) -> PipelineOut:
    return PipelineQueries(context).of(who, job)


def drawn(found: PipelineOut) -> set[tuple[str, str, str]]:
    """Return the arrows by the names of their jobs."""
    names = {job.id: job.name for job in found.jobs}
    return {(names[each.first], names[each.then], each.kind) for each in found.links}


def test_each_job_of_a_pipeline_shows_all_of_it(context: Context) -> None:
    prepare = submit(context, "prepare")
    train = submit(context, "train", prepare)
    lone = submit(context, "lone")
    report = submit(context, "report", f"{train}:any", prepare)
    context.store.apply(train, owner_changes.release, now=9.0)
    expected = {
        ("prepare", "train", "ok"), ("train", "report", "any"), ("prepare", "report", "ok")
    }  # fmt: skip  # a set of arrows
    for job in (prepare, train, report):
        found = of(context, job)
        assert [each.name for each in found.jobs] == ["prepare", "train", "report"]
        assert (drawn(found), found.cut) == (expected, False)
    assert of(context, lone) == PipelineOut(jobs=[], links=[])


def test_arrows_start_at_the_job_that_resumes_a_failed_one(context: Context) -> None:
    first = submit(context, "first")
    failed = submit(context, "failed", first)
    submit(context, "then", failed)
    submit(context, "either", f"{failed}:any")
    context.store.apply(failed, lifecycle.stop, State.FAILED, CAUSE, now=9.0)
    context.clock.pass_(1)  # type: ignore[attr-defined]  # the clock of tests
    resumed = Resumption(context).resume(STUDENT1, failed, ResumeIn()).request
    assert resumed is not None
    found = of(context, first)
    links = {(each.first, each.kind) for each in found.links if each.then == resumed.id}
    assert links == {(failed, "resumes")}
    starts = {(each.first, each.kind) for each in found.links} - {(first, "ok")}
    assert starts == {(failed, "resumes"), (resumed.id, "ok"), (failed, "any")}
    states = {each.id: each.state for each in found.jobs}
    assert (states[failed], states[resumed.id]) == ("failed", "queued")
    alone = submit(context, "alone")
    context.store.apply(alone, lifecycle.stop, State.FAILED, CAUSE, now=9.0)
    assert Resumption(context).resume(STUDENT1, alone, ResumeIn()).request is not None
    assert of(context, alone).jobs == [], "a resumption alone is no pipeline"


def test_the_nearest_jobs_of_a_large_pipeline_are_shown(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelines, "MOST_JOBS", 4)
    names = [submit(context, "0")]
    for number in range(1, 7):
        names.append(submit(context, str(number), names[-1]))
    found = of(context, names[3])
    assert found.cut
    assert {"3", "2", "4"} < {each.name for each in found.jobs}
    assert len(found.jobs) == 4
    assert len(found.links) == 3


def test_jobs_of_others_are_shown_to_those_who_may_see_them(context: Context) -> None:
    mine = submit(context, "mine")
    then = submit(context, "theirs", mine, who=TEACHER)
    assert [each.id for each in of(context, mine, TEACHER).jobs] == [mine, then]
    assert of(context, mine).jobs == []
    with pytest.raises(NotFound):
        of(context, mine, STUDENT2)


def test_a_job_has_its_name_in_the_file(context: Context) -> None:
    first = submit(context, "first")
    context.clock.pass_(1)  # type: ignore[attr-defined]  # the clock of tests
    body = command(after=[first], labels={"pipeline": "ab", "pipeline-job": "second"})
    second = JobService(context).submit(STUDENT1, body).id
    assert of(context, second).jobs[1] == PipelineJobOut(
        id=second, name="second", state="queued", owner=STUDENT1.name
    )


def test_the_end_of_a_pipeline_is_expected_on_the_present_queue(context: Context) -> None:
    first = submit(context, "first")
    second = submit(context, "second", first)
    now = context.clock()
    found = of(context, second).expected_end
    assert found is not None
    # Without predictions, each job uses its time limit.
    limit = context.store.request(first).seconds
    assert (found.at, found.latest, found.unknown) == (now + 2 * limit, now + 2 * limit, 2)
    assert found.earliest == now
    context.store.apply(first, lifecycle.stop, State.CANCELLED, CAUSE, now=now)
    assert of(context, second).expected_end is None


def test_an_expected_end_is_shown_again_until_a_job_changes_or_half_a_minute_has_passed(
    context: Context,
) -> None:
    first = submit(context, "first")
    submit(context, "second", first)
    queries, now = PipelineQueries(context), context.clock()

    def end() -> float:
        found = queries.of(STUDENT1, first).expected_end
        assert found is not None
        return found.at - 2 * context.store.request(first).seconds - now

    assert end() == 0.0
    context.clock.pass_(20)  # type: ignore[attr-defined]  # the clock of tests
    assert end() == 0.0
    context.clock.pass_(10)  # type: ignore[attr-defined]  # the clock of tests
    assert end() == 30.0
    assert queries.of(STUDENT1, first, with_end=False).expected_end is None
    context.store.apply(first, lifecycle.stop, State.CANCELLED, CAUSE, now=now)
    assert queries.of(STUDENT1, first).expected_end is None
