"""Values of earlier jobs as parameters of later ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from carrel.hub.attempts.reports import REPORTS
from carrel.hub.attempts.trials import TrialRecord, TrialState, add_trials
from carrel.hub.controller.dependencies import RESUMPTIONS_EVERY
from carrel.hub.errors import InvalidInput
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.resumption import Resumption
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.schemas import RequestOut
from carrel.hub.schemas.requests import ResultOut
from carrel.hub.schemas.resume import ResumeIn
from carrel.hub.schemas.sweeps import SweepIn

from ..doubles import STUDENT1
from ..requests.samples import command, job
from ..world import World, world

__all__ = ["world"]

GRID = {"grid": {"lr": [0.1, 0.01]}}


def submit(world: World, results: dict[str, str], *after: str, **changes: Any) -> RequestOut:
    fields = {"parameters": {}, "devices": 0, "after": list(after), "results": results}
    return JobService(world.context).submit(STUDENT1, job(**{**fields, **changes}))


def first_job(world: World, **changes: Any) -> RequestOut:
    return world.running_job(devices=0, **changes)


def sweep(world: World, **changes: Any) -> RequestOut:
    space = SweepIn(space=GRID, **{"objective": "loss"} | changes)
    return first_job(world, parameters={}, sweep=space)


def folder(world: World, made: RequestOut) -> Path:
    lease = world.see(made).lease
    assert lease is not None
    return world.context.files.attempt_folder(made.id, lease.epoch)


def report(world: World, made: RequestOut, **values: float | str) -> None:
    lines = [
        json.dumps({"name": name, "value": value, "step": None}) + "\n"
        for name, value in values.items()
    ]
    with (folder(world, made) / REPORTS).open("a") as file:
        file.writelines(lines)


def trial(number: int, **reported: float) -> TrialRecord:
    return TrialRecord(number=number, state=TrialState.SUCCEEDED, at=5.0, reported=reported)


def end(world: World, made: RequestOut, code: str = "succeeded") -> None:
    world.report(made, "ended", code=code, message="It ended.", details="")
    world.backend.end(world.lease(made))
    world.settle(2)


def resumed(world: World, made: RequestOut) -> RequestOut:
    found = Resumption(world.context).resume(STUDENT1, made.id, ResumeIn()).request
    assert found is not None
    world.clock.pass_(RESUMPTIONS_EVERY)
    world.settle()
    return found


def injected(world: World, made: RequestOut) -> dict[str, Any]:
    """Return the parameters in the order of the newest attempt."""
    return dict(world.backend.attempts[world.lease(made)].order.job.parameters)


def failure(world: World, made: RequestOut) -> str:
    seen = world.see(made)
    assert (seen.state, seen.cause and seen.cause.code) == ("failed", "missing_result")
    assert seen.cause is not None
    return seen.cause.message


def test_a_job_gets_the_last_value_that_an_earlier_one_has_reported(world: World) -> None:
    first = first_job(world)
    second = submit(world, {"lr": f"{first.id}.report.rate"}, first.id)
    report(world, first, rate=0.5, loss=2.0)
    report(world, first, rate=0.25)
    waiting = world.see(second)
    assert (waiting.parameters, waiting.results) == (
        {},
        [ResultOut(name="lr", job=first.id, value="report.rate")],
    )
    end(world, first)
    assert injected(world, second) == {"lr": 0.25}
    seen = world.see(second)
    assert seen.parameters == {"lr": 0.25}
    assert seen.results == [
        ResultOut(name="lr", job=first.id, value="report.rate", source=first.id)
    ]


def test_an_integer_stays_one_and_the_id_is_text(world: World) -> None:
    first, other = first_job(world), first_job(world)
    report(world, first, epochs=5)
    end(world, first)
    end(world, other)
    for value, expected in (
        (f"{first.id}.report.epochs", 5),
        (f"{other.id}.id", other.id),
    ):
        made = submit(world, {"lr": value}, first.id, other.id)
        world.settle(2)
        (found,) = injected(world, made).values()
        assert (found, type(found)) == (expected, type(expected))


def test_the_best_trial_of_a_sweep_gives_its_parameters_values_and_number(world: World) -> None:
    first = sweep(world)
    makes = {
        value: submit(world, {"lr": f"{first.id}.{value}"}, f"{first.id}:{condition}")
        for value, condition in (("best.lr", "ok"), ("report.loss", "any"), ("trial", "ok"))
    }
    add_trials(folder(world, first), [trial(1, loss=0.5), trial(2, loss=0.25)])
    end(world, first)
    found = {value: injected(world, made)["lr"] for value, made in makes.items()}
    assert found == {"best.lr": 0.01, "report.loss": 0.25, "trial": 2}


def test_the_best_trial_of_a_search_gives_the_values_that_were_chosen(world: World) -> None:
    space = {"search": {"lr": {"log": [0.001, 1.0]}}, "trials": 3}
    first = first_job(world, parameters={}, sweep=SweepIn(space=space, objective="loss"))
    with pytest.raises(InvalidInput, match="has no parameter depth"):
        submit(world, {"lr": f"{first.id}.best.depth"}, first.id)
    second = submit(world, {"lr": f"{first.id}.best.lr"}, f"{first.id}:any")
    tried = [(1, 0.125, 2.0), (2, 0.0625, 1.0)]
    records = [replace(trial(n, loss=loss), values={"lr": lr}) for n, lr, loss in tried]
    add_trials(folder(world, first), records)
    end(world, first)
    assert injected(world, second) == {"lr": 0.0625}


def test_a_retry_and_a_resumption_use_the_same_values(world: World) -> None:
    first = first_job(world)
    second = submit(world, {"lr": f"{first.id}.report.rate"}, first.id)
    report(world, first, rate=0.25)
    end(world, first)
    world.claim(second)
    report(world, first, rate=0.125)  # its files belong to its owner
    world.backend.end(world.lease(second))  # lost
    world.settle(2)
    assert world.lease(second) == f"{second.id}.2"
    assert injected(world, second) == {"lr": 0.25}
    world.claim(second)
    end(world, second, "cell_error")
    again = resumed(world, second)
    world.settle()
    assert injected(world, again) == {"lr": 0.25}
    assert world.see(again).results == world.see(second).results
    repeated = JobService(world.context).same_job(STUDENT1, second.id)
    assert (repeated.parameters, repeated.results) == ({"lr": 0.25}, {})


def test_a_waiting_job_that_runs_again_waits_for_the_same_values(world: World) -> None:
    first = first_job(world)
    second = submit(world, {"lr": f"{first.id}.report.rate"}, first.id)
    RequestTermination(world.context).cancel(STUDENT1, second.id)
    again = resumed(world, second)
    assert [each.source for each in world.see(again).results] == [""]
    report(world, first, rate=0.25)
    end(world, first)
    assert injected(world, again) == {"lr": 0.25}


def test_what_a_resumed_job_does_not_report_again_comes_from_the_one_before(world: World) -> None:
    first = first_job(world)
    results = {"lr": f"{first.id}.report.rate"}
    second, third = (submit(world, results, f"{first.id}:{each}") for each in ("ok", "ok"))
    report(world, first, rate=0.5, loss=1.0)
    end(world, first, "cell_error")
    again = resumed(world, first)
    world.claim(again)
    report(world, again, loss=0.5)
    RequestTermination(world.context).cancel(STUDENT1, third.id)
    world.settle()
    fourth = submit(world, {"lr": f"{first.id}.report.loss"}, first.id)
    end(world, again)
    sources = [world.see(made).results[0].source for made in (second, fourth)]
    assert sources == [first.id, again.id]
    assert [injected(world, made)["lr"] for made in (second, fourth)] == [0.5, 0.5]


def test_a_job_without_its_value_fails_and_says_what_was_reported(world: World) -> None:
    first = first_job(world)
    second = submit(world, {"lr": f"{first.id}.report.rate"}, first.id)
    report(world, first, loss=0.5, accuracy=0.75)
    end(world, first)
    assert failure(world, second) == (
        f"The parameter lr is to have report.rate of {first.id}, but {first.id} has reported "
        "accuracy, loss."
    )


@pytest.mark.parametrize("value", ["NaN", "Infinity"])
def test_a_value_that_is_no_finite_number_is_no_parameter(world: World, value: str) -> None:
    first = first_job(world)
    second = submit(world, {"lr": f"{first.id}.report.rate"}, f"{first.id}:any")
    report(world, first, rate=value)
    end(world, first, "cell_error")
    assert failure(world, second).endswith(f"the last value of {first.id} is {float(value)}.")


def test_a_sweep_without_a_best_trial_says_why(world: World) -> None:
    first = sweep(world)
    second = submit(world, {"lr": f"{first.id}.best.lr"}, f"{first.id}:any")
    add_trials(folder(world, first), [trial(1, accuracy=0.5)])
    end(world, first)
    assert failure(world, second).endswith(
        f"{first.id} has no best trial: 1 trial succeeded. No trial has reported loss: call "
        "carrel.report('loss', value) in the notebook."
    )


def test_deleted_files_give_no_value(world: World) -> None:
    first = first_job(world)
    report(world, first, rate=0.5)
    end(world, first)
    world.context.files.discard(first.id)
    with pytest.raises(InvalidInput, match=f"the files of {first.id} have been deleted"):
        submit(world, {"lr": f"{first.id}.report.rate"}, first.id)


def test_references_that_can_never_have_a_value_are_refused(world: World) -> None:
    plain, study = first_job(world), sweep(world)
    blind = sweep(world, objective="")
    done = first_job(world)
    end(world, done)
    for results, message in [
        ({"lr": "train"}, "'train.' names no value of a job"),
        ({"lr": f"{plain.id}.loss"}, "names no value of a job"),
        ({"lr": f"{plain.id}.report."}, "names no value of a job"),
        ({"lr": f"{plain.id}.id.x"}, "names no value of a job"),
        ({"lr": "j-other.id"}, f"which the job does not wait for. It waits for: {plain.id}, "),
        ({"depth": f"{plain.id}.id"}, "train.ipynb has no parameter depth"),
        ({"lr": f"{plain.id}.best.lr"}, f"but {plain.id} is no sweep."),
        ({"lr": f"{study.id}.best.depth"}, f"the sweep {study.id} has no parameter depth."),
        ({"lr": f"{blind.id}.report.loss"}, f"the sweep {blind.id} has no objective"),
        ({"lr": f"{done.id}.report.loss"}, f"but {done.id} has reported nothing."),
    ]:
        with pytest.raises(InvalidInput) as refused:
            submit(world, results, plain.id, study.id, blind.id, done.id)
        assert message in refused.value.message
    with pytest.raises(InvalidInput, match="both a value and a result of a job"):
        submit(world, {"lr": f"{plain.id}.id"}, plain.id, parameters={"lr": 0.5})
    swept = SweepIn(space=GRID)
    with pytest.raises(InvalidInput, match="both a value and a result of a job"):
        submit(world, {"lr": f"{plain.id}.id"}, plain.id, sweep=swept)
    with pytest.raises(InvalidInput, match="It waits for no job") as refused:
        submit(world, {"lr": f"{plain.id}.id"})
    assert refused.value.accepted == f"Add --after {plain.id}."
    with pytest.raises(InvalidInput, match="A command has no results"):
        JobService(world.context).submit(
            STUDENT1, command(after=[plain.id], results={"lr": f"{plain.id}.id"})
        )
