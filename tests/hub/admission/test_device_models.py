"""Requests for one device model: permission, grants, and removal of the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from click.testing import CliRunner, Result
from pydantic import ValidationError

from carrel.hub.admission.quotes import Quotes
from carrel.hub.cli import cli
from carrel.hub.client import Client
from carrel.hub.errors import CarrelError, Conflict, InvalidInput, OverMaximum
from carrel.hub.groups.membership import Membership
from carrel.hub.inventory.pool import PoolQueries
from carrel.hub.requests.amendments import Amendments
from carrel.hub.requests.explanation import WaitExplanations
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.pipelines import PipelineQueries
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.schemas import ChangeIn, JobIn, PipelineOut, QuoteIn, RequestOut, SessionIn
from carrel.hub.schemas.explanation import WhyOut
from carrel.hub.sessions.lifecycle import SessionLifecycle

from ..doubles import STUDENT1, STUDENT2
from ..requests.samples import job
from ..world import World
from .two_models import NEW, OLD, POOL, model_of


@dataclass
class Terminal:
    """The command line of student1, with a client of the service in this process."""

    world: World

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(cli, arguments, prog_name="carrel")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        pass

    def why(self, request_id: str) -> WhyOut:
        return WaitExplanations(self.world.context).why(STUDENT1, request_id)

    def change(self, request_id: str, wanted: ChangeIn) -> RequestOut:
        sent = ChangeIn.model_validate_json(wanted.model_dump_json(exclude_unset=True))
        return Amendments(self.world.context).change(STUDENT1, request_id, sent)

    def request(self, request_id: str) -> RequestOut:
        return RequestQueries(self.world.context).request(STUDENT1, request_id)

    def pipeline(self, request_id: str) -> PipelineOut:
        return PipelineQueries(self.world.context).of(STUDENT1, request_id)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """One device of each of two models."""
    made = World.over(tmp_path, devices=0)
    made.backend.devices = POOL
    made.context.store.sync_devices("local", POOL)
    yield made
    made.loop.close()


@pytest.fixture
def carrel(world: World, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    terminal = Terminal(world)
    monkeypatch.setattr(Client, "from_environment", lambda *_: terminal)
    return terminal


def group(world: World, name: str = "cs101", **changes: object) -> None:
    """Change a group, or add one with the student as a member."""
    known = {each.name: each for each in world.context.store.groups()}
    values = {"name": name, "max_devices": 4, "max_devices_per_user": 2, "max_seconds": 28800}
    found = known.get(name) or Group(**values)  # type: ignore[arg-type]  # as written above
    world.context.store.put_group(replace(found, **changes))  # type: ignore[arg-type]
    world.hub.members.setdefault(name, set()).add("student1")


# -- grants ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [OLD, NEW])
def test_a_job_gets_a_device_of_its_model(world: World, model: str) -> None:
    made = JobService(world.context).submit(STUDENT1, job(model=model))
    world.settle()
    assert made.model == model
    assert model_of(world, made) == model


def test_a_session_gets_a_device_of_its_model(world: World) -> None:
    options = SessionIn(devices=1, model=NEW, hours=1.0)
    made = SessionLifecycle(world.context).start(STUDENT1, "", options)
    world.settle()
    assert model_of(world, made) == NEW


def test_a_job_waits_for_its_model_while_other_models_are_free(world: World) -> None:
    JobService(world.context).submit(STUDENT2, job(model=NEW))
    world.settle()
    made = JobService(world.context).submit(STUDENT1, job(model=NEW))
    world.settle()
    found = world.see(made)
    assert found.lease is None
    assert found.wait is not None
    assert f"Not enough {NEW} devices" in found.wait.sentence
    assert PoolQueries.of(world.context).pool(STUDENT1).free == 1


def test_a_quote_depends_on_the_model(world: World) -> None:
    JobService(world.context).submit(STUDENT2, job(model=NEW))
    world.settle()
    asked = [QuoteIn(devices=1, model=model) for model in (NEW, OLD, "Abacus")]
    new, old, unknown = Quotes(world.context).quotes(STUDENT1, asked)
    assert (new.starts_now, old.starts_now, unknown.admitted) == (False, True, False)
    assert "no device of the model Abacus" in unknown.sentence


# -- refusals ----------------------------------------------------------------------------------


def refusal(world: World, **asked: object) -> CarrelError:
    """Return the error of a job, after a check that a session gets the same one."""
    with pytest.raises(CarrelError) as of_job:
        JobService(world.context).submit(STUDENT1, job(**asked))
    with pytest.raises(CarrelError) as of_session:
        SessionLifecycle(world.context).start(STUDENT1, "", SessionIn.model_validate(asked))
    assert str(of_job.value) == str(of_session.value)
    assert of_job.value.field == of_session.value.field == "model"
    return of_job.value


def test_a_model_that_the_pool_does_not_have_is_refused(world: World) -> None:
    found = refusal(world, devices=1, model="Abacus")
    assert isinstance(found, InvalidInput)
    assert str(found) == (
        f"The pool has no device of the model Abacus. Any model, or one of: {OLD}, {NEW}."
    )


def test_a_model_without_a_device_is_refused(world: World) -> None:
    found = refusal(world, devices=0, model=OLD)
    assert isinstance(found, InvalidInput)
    assert found.accepted == "Leave the model out, or ask for at least one device."


def test_a_model_that_the_group_may_not_use_is_refused(world: World) -> None:
    group(world, models=frozenset({OLD}))
    found = refusal(world, devices=1, model=NEW)
    assert isinstance(found, OverMaximum)
    assert str(found) == (
        f"cs101 may not use devices of the model {NEW}. Any model, or one of: {OLD}."
    )
    JobService(world.context).submit(STUDENT1, job(model=OLD))


def test_a_model_that_a_parent_group_may_not_use_is_refused(world: World) -> None:
    group(world, "faculty", models=frozenset({NEW}))
    group(world, parent="faculty")
    assert "cs101 may not use" in refusal(world, devices=1, model=OLD, group="cs101").message


@pytest.mark.parametrize("model", ["", "x" * 256, 7])
def test_an_invalid_model_name_is_refused_first(model: object) -> None:
    for body in (JobIn, SessionIn, ChangeIn, QuoteIn):
        with pytest.raises(ValidationError):
            body.model_validate({"group": "cs101", "model": model})


# -- changes in the queue ----------------------------------------------------------------------


@pytest.fixture
def waits(world: World) -> RequestOut:
    """A queued job for the new model, whose only device student2 uses."""
    JobService(world.context).submit(STUDENT2, job(model=NEW, seconds=1800))
    world.settle()
    made = JobService(world.context).submit(STUDENT1, job(model=NEW))
    world.settle()
    return made


def test_the_printed_command_of_a_suggestion_starts_the_job(
    world: World, waits: RequestOut, carrel: Terminal
) -> None:
    lines = carrel("why", waits.id).output.splitlines()
    said = lines.index(f"  With a device of any model instead of {NEW} it starts now.")
    command = lines[said + 1].split()
    assert command == ["carrel", "change", waits.id, "--model", "any"]

    done = carrel(*command[1:])
    assert done.output == f"{waits.id} now requests 1 device, 10 min at most, in the group cs101.\n"
    world.settle()

    after = world.see(waits)
    assert (after.model, after.submitted_at) == (None, waits.submitted_at)
    assert model_of(world, waits) == OLD


def test_the_model_of_a_queued_job_can_be_changed(
    world: World, waits: RequestOut, carrel: Terminal
) -> None:
    done = carrel("change", waits.id, "--model", OLD)
    assert f"now requests 1 device ({OLD})" in done.output
    world.settle()
    assert model_of(world, waits) == OLD


def test_a_change_is_refused_like_a_new_request(world: World, waits: RequestOut) -> None:
    change = Amendments(world.context).change
    with pytest.raises(InvalidInput, match="Abacus"):
        change(STUDENT1, waits.id, ChangeIn(model="Abacus"))
    group(world, models=frozenset({NEW}))
    with pytest.raises(OverMaximum, match="may not use"):
        change(STUDENT1, waits.id, ChangeIn(model=OLD))
    group(world, "math", models=frozenset({OLD}))
    with pytest.raises(OverMaximum, match="math may not use"):
        change(STUDENT1, waits.id, ChangeIn(group="math"))
    found = change(STUDENT1, waits.id, ChangeIn(group="math", model=None))
    assert (found.group, found.model) == ("math", None)


def test_a_change_without_a_model_keeps_the_model(world: World, waits: RequestOut) -> None:
    found = Amendments(world.context).change(STUDENT1, waits.id, ChangeIn(seconds=300))
    assert (found.seconds, found.model) == (300, NEW)


def test_a_running_job_keeps_its_model(world: World) -> None:
    made = JobService(world.context).submit(STUDENT1, job(model=NEW))
    world.settle()
    with pytest.raises(Conflict):
        Amendments(world.context).change(STUDENT1, made.id, ChangeIn(model=None))


def test_the_model_is_shown_and_kept_when_the_job_runs_again(
    world: World, waits: RequestOut, carrel: Terminal
) -> None:
    assert f"1 device ({NEW})" in carrel("show", waits.id).output
    assert JobService(world.context).same_job(STUDENT1, waits.id).model == NEW
    assert waits.model == NEW


def test_groups_list_the_models_they_may_use(world: World) -> None:
    group(world, models=frozenset({NEW, OLD}))
    (found,) = Membership.of(world.context).groups(STUDENT1).groups
    assert found.models == [OLD, NEW]


def test_the_hub_starts_the_session_with_its_model(world: World) -> None:
    SessionLifecycle(world.context).start(STUDENT1, "", SessionIn(devices=1, model=NEW))
    world.settle()
    assert world.hub.options["student1", ""]["model"] == NEW
