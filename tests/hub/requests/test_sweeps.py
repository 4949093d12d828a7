"""Submit sweeps, show their trials, and resume them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest

from carrel.hub.attempts.trials import (
    TRIALS,
    TrialRecord,
    TrialState,
    add_trials,
    read_stopped,
    reports_name,
    stop_trial,
)
from carrel.hub.errors import Conflict, Forbidden, InvalidInput, NotFound, TooLarge
from carrel.hub.files.trial_table import states_text, trials_csv
from carrel.hub.records.leases import Handle
from carrel.hub.records.requests import Cause, CauseCode, SweepOrder
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.resumption import Resumption
from carrel.hub.requests.sweep_analysis.process import AnalysingProcess
from carrel.hub.requests.sweeps import TrialService, earlier_trials
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas import JobIn
from carrel.hub.schemas.resume import ResumeIn
from carrel.hub.schemas.sweeps import SweepIn
from carrel.hub.transitions import lifecycle
from carrel.spawners.fake import FakeBackend

from ...stores import new_store
from ..doubles import STUDENT1, STUDENT2, Clock, FakeHub, build
from .samples import command, job, named

GRID: dict[str, Any] = {"grid": {"lr": [0.1, 0.01], "depth": [2, 4]}}


def book(*sources: str) -> str:
    cells = [
        nbformat.v4.new_code_cell(source, metadata={"tags": ["parameters"]} if not at else {})  # type: ignore[no-untyped-call]
        for at, source in enumerate(sources)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    made = nbformat.v4.new_notebook(cells=cells, metadata=kernel)  # type: ignore[no-untyped-call]
    text: str = nbformat.writes(made)  # type: ignore[no-untyped-call]
    return text


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return build(new_store(), FakeBackend(), FakeHub(), Clock(), tmp_path)


def sweep_body(**sweep: Any) -> JobIn:
    text = book("lr = 0.5\ndepth = 1", "print(lr, depth)")
    given = SweepIn(**{"space": GRID} | sweep)
    return job(notebook=named("train.ipynb", text), parameters={}, devices=0, sweep=given)


def submitted(context: Context, **sweep: Any) -> str:
    return JobService(context).submit(STUDENT1, sweep_body(**sweep)).id


def started(context: Context, request_id: str) -> Path:
    start = [Start(request_id=request_id, devices=())]
    store, now = context.store, context.clock()
    (lease,) = store.grant(start, now=now, lease_seconds=30.0)
    store.launch(lease.id, now=now)
    store.apply_to_lease(lease.id, lifecycle.start, Handle(pid=1, started_at=now), now=now)
    return context.files.attempt_folder(request_id, lease.epoch)


def trial(number: int, state: TrialState, **reported: float) -> TrialRecord:
    return TrialRecord(number=number, state=state, at=5.0, seconds=2.5, reported=reported)


def test_a_sweep_is_stored_with_the_number_of_its_trials(context: Context) -> None:
    made = submitted(context, parallel=2, objective="loss", trial_seconds=60)
    stored = context.store.request(made).job
    assert stored is not None
    assert stored.sweep == SweepOrder(
        space=GRID, trials=4, parallel=2, objective="loss", trial_seconds=60
    )
    again = JobService(context).same_job(STUDENT1, made)
    assert again.sweep is not None
    assert (again.sweep.space, again.sweep.parallel) == (GRID, 2)


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ({"space": {"grid": {"rate": [1]}}}, "train.ipynb has no parameter rate."),
        ({"space": {"grid": {"lr": []}}}, "lr has no values."),
        ({"space": {"grid": {"lr": ["x"]}}}, "The value x does not fit lr"),
        ({"space": {"grid": {"lr": list(range(5000)), "depth": [1, 2, 3]}}}, "15,000 trials"),
        ({"space": {"what": 1}}, "The space has the field 'what'."),
        (
            {"space": {"search": {"lr": [0.1]}, "trials": 3}},
            "A search needs an objective.",
        ),
        ({"space": GRID, "parallel": 5}, "5 trials cannot run at a time: the sweep has 4 trials."),
    ],
)
def test_a_sweep_that_cannot_run_is_refused(
    context: Context, sweep: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=r".*") as refused:
        submitted(context, **sweep)
    assert message in refused.value.message


def test_the_devices_are_divided_among_the_trials(context: Context) -> None:
    text = book("lr = 0.5", "print(lr)")
    sweep = SweepIn(space={"grid": {"lr": [1, 2]}}, parallel=2)
    body = job(notebook=named("a.ipynb", text), parameters={}, devices=1, sweep=sweep)
    with pytest.raises(InvalidInput) as refused:
        JobService(context).submit(STUDENT1, body)
    assert refused.value.message == "1 device cannot be divided among 2 trials."


def test_a_command_is_no_sweep(context: Context) -> None:
    with pytest.raises(InvalidInput) as refused:
        JobService(context).submit(STUDENT1, command(sweep=SweepIn(space=GRID)))
    assert refused.value.message == "A sweep runs a notebook, and this job is a command."


def test_a_parameter_is_given_once(context: Context) -> None:
    text = book("lr = 0.5\ndepth = 1", "print(lr)")
    body = job(notebook=named("a.ipynb", text), parameters={"lr": 1}, sweep=SweepIn(space=GRID))
    with pytest.raises(InvalidInput) as refused:
        JobService(context).submit(STUDENT1, body)
    assert refused.value.message == "lr is a parameter of the sweep and of the job."


def test_trials_are_shown_with_what_they_have_reported(context: Context) -> None:
    made = submitted(context, objective="loss")
    folder = started(context, made)
    add_trials(folder, [trial(1, TrialState.RUNNING), trial(2, TrialState.RUNNING)])
    add_trials(folder, [trial(1, TrialState.SUCCEEDED, loss=0.5, accuracy=0.9)])
    add_trials(folder, [trial(3, TrialState.SUCCEEDED, loss=0.25)])
    with (folder / TRIALS).open("a") as file:
        file.write('{"number": 4, "state": "odd"}\nnonsense\n[]\n')
    found = TrialService(context).trials(STUDENT1, made)
    assert [(one.number, one.state) for one in found.trials] == [
        (1, "succeeded"),
        (2, "running"),
        (3, "succeeded"),
        (4, "waiting"),
    ]
    assert found.trials[2].values == {"lr": 0.01, "depth": 2}
    assert (found.best, found.names) == (3, ["loss", "accuracy"])
    assert trials_csv(found).splitlines()[:2] == [
        "trial,lr,depth,state,seconds,loss,accuracy,message",
        "1,0.1,2,succeeded,2.5,0.5,0.9,",
    ]
    negative = found.model_copy(
        update={"trials": [found.trials[0].model_copy(update={"values": {"lr": -0.5}})]}
    )
    assert trials_csv(negative).splitlines()[1].startswith("1,-0.5,,succeeded")


def test_a_running_trial_is_shown_with_what_it_has_reported_so_far(context: Context) -> None:
    made = submitted(context, objective="loss")
    folder = started(context, made)
    add_trials(folder, [trial(1, TrialState.SUCCEEDED, loss=0.5), trial(2, TrialState.RUNNING)])
    values = [json.dumps({"name": "loss", "value": 1 / at, "step": at}) for at in range(1, 5001)]
    other = json.dumps({"name": "rate", "value": "nan", "step": None})
    (folder / "reports-0002.jsonl").write_text("\n".join([*values, other]) + "\n")
    found = TrialService(context).trials(STUDENT1, made)
    assert found.trials[1].reported == {"loss": 1 / 5000, "rate": None}
    assert (found.best, found.names) == (1, ["loss", "rate"])
    (folder / "reports-0002.jsonl").unlink()
    assert TrialService(context).trials(STUDENT1, made).trials[1].reported == {}


def test_a_stopped_trial_is_shown_as_such_before_its_turn(context: Context) -> None:
    made = submitted(context)
    folder = started(context, made)
    add_trials(folder, [trial(1, TrialState.SUCCEEDED)])
    stop_trial(folder, 3)
    found = TrialService(context).trials(STUDENT1, made).trials
    assert [one.state for one in found] == ["succeeded", "waiting", "stopped", "waiting"]


def test_trials_of_an_ended_sweep_that_have_not_run_say_so(context: Context) -> None:
    made = submitted(context)
    states = {one.state for one in TrialService(context).trials(STUDENT1, made).trials}
    assert states == {"waiting"}
    folder = started(context, made)
    add_trials(folder, [trial(1, TrialState.SUCCEEDED), trial(2, TrialState.RUNNING)])
    store, now = context.store, context.clock()
    cause = Cause(code=CauseCode.CANCELLED, message="Cancelled.")
    store.apply(made, lifecycle.stop, State.CANCELLED, cause, now=now)
    lease = store.request(made).lease
    assert lease is not None
    store.apply_to_lease(lease.id, lifecycle.finish, now=now, charge_until=now)
    found = TrialService(context).trials(STUDENT1, made).trials
    assert [one.state for one in found] == ["succeeded", "not_run", "not_run", "not_run"]


def test_an_objective_that_no_trial_reports_is_told(context: Context) -> None:
    made = submitted(context, objective="loss")
    folder = started(context, made)
    add_trials(folder, [trial(1, TrialState.SUCCEEDED)])
    told = TrialService(context).trials(STUDENT1, made)
    assert told.note == (
        "No trial has reported loss: call carrel.report('loss', value) in the notebook."
    )
    add_trials(folder, [trial(2, TrialState.SUCCEEDED, loss=float("nan"))])
    told = TrialService(context).trials(STUDENT1, made)
    assert told.note == "No trial has reported a number as loss."
    assert (told.best, told.trials[1].reported) == (None, {"loss": None})


SEARCH: dict[str, Any] = {
    "search": {"lr": {"uniform": [0.0, 1.0]}},
    "trials": 9,
    "seed": 0,
    "sampler": "tpe",
    "pruner": "asha",
}


def chosen(number: int, state: TrialState, lr: float, steps: int = 9, **reported: float) -> Any:
    return replace(trial(number, state, **reported), values={"lr": lr}, steps=steps)


def test_a_search_shows_the_trials_whose_values_have_been_chosen(context: Context) -> None:
    made = submitted(context, space=SEARCH, objective="loss")
    assert JobService(context).same_job(STUDENT1, made).sweep == SweepIn(
        space=SEARCH, objective="loss"
    )
    service = TrialService(context)
    assert states_text(service.trials(STUDENT1, made)) == "0 of 9 trials chosen."
    folder = started(context, made)
    add_trials(folder, [chosen(n, TrialState.WAITING, 0.5) for n in (1, 2, 3, 4)])
    add_trials(folder, [chosen(1, TrialState.SUCCEEDED, 0.25, loss=2.0)])
    add_trials(folder, [chosen(2, TrialState.PRUNED, 0.75, loss=1.0)])
    add_trials(folder, [chosen(3, TrialState.RUNNING, 0.5)])
    add_trials(folder, [chosen(12, TrialState.RUNNING, 0.5)])
    stop_trial(folder, 7)
    found = service.trials(STUDENT1, made)
    assert [(one.number, one.values, one.state) for one in found.trials] == [
        (1, {"lr": 0.25}, "succeeded"),
        (2, {"lr": 0.75}, "pruned"),
        (3, {"lr": 0.5}, "running"),
        (4, {"lr": 0.5}, "waiting"),
        (7, {}, "stopped"),
    ]
    assert (found.best, found.planned, found.parameters, found.note) == (1, 9, ["lr"], "")
    assert states_text(found) == (
        "5 of 9 trials chosen: 1 succeeded, 1 stopped early, 1 running, 1 waiting, 1 stopped."
    )


def test_values_that_the_search_cannot_have_chosen_are_not_shown(context: Context) -> None:
    made = submitted(context, space=SEARCH, objective="loss")
    folder = started(context, made)
    with (folder / TRIALS).open("a") as file:
        for number, values in enumerate(('{"lr": 2}', '{"lr": {}}', '{"lr": NaN}', "[]"), start=1):
            line = f'"number": {number}, "state": "running", "at": 1, "seconds": 0, "message": ""'
            file.write(f'{{{line}, "values": {values}}}\n')
    found = TrialService(context).trials(STUDENT1, made)
    assert [one.values for one in found.trials] == [{}] * 4


def test_a_search_tells_why_trials_cannot_be_compared(context: Context) -> None:
    made = submitted(context, space=SEARCH, objective="loss")
    folder = started(context, made)
    service = TrialService(context)
    add_trials(folder, [chosen(1, TrialState.SUCCEEDED, 0.5, 1, loss=1.0)])
    assert service.trials(STUDENT1, made).note == (
        "Trials cannot be stopped early, since they have reported loss only once: call "
        "carrel.report('loss', value, step) after each step."
    )
    add_trials(folder, [chosen(2, TrialState.SUCCEEDED, 0.5, loss=float("nan"))])
    assert service.trials(STUDENT1, made).note == (
        "The search leaves 1 trial out, without a number as loss."
    )


def test_a_trial_of_a_running_sweep_is_stopped(context: Context) -> None:
    made = submitted(context)
    service = TrialService(context)
    with pytest.raises(Conflict, match="only trials of a running sweep stop"):
        service.stop(STUDENT1, made, 1)
    folder = started(context, made)
    with pytest.raises(NotFound, match="has no trial 5"):
        service.stop(STUDENT1, made, 5)
    for number in (2, 3, 2):
        service.stop(STUDENT1, made, number)
    assert read_stopped(folder) == {2, 3}
    with pytest.raises((NotFound, Forbidden)):
        service.stop(STUDENT2, made, 1)


def test_what_trials_share_is_told_by_an_analysis_in_a_process_with_limits(
    context: Context,
) -> None:
    made = submitted(context)
    service = TrialService(context)
    found = service.sharing(STUDENT1, made)
    assert found.summary == "train.ipynb: 4 trials of 2 cells."
    assert found.tree[:2] == ["cell 1, once for 4 trials", "├── lr=0.1, depth=2: cell 2, trial 1"]
    assert [(cell.number, cell.runs) for cell in found.cells] == [(1, 1), (2, 4)]
    assert str(found).endswith("Cells run 5 times instead of 8.")
    assert service.sharing(STUDENT1, made) is found
    too_long = (sys.executable, "-c", "import time; time.sleep(60)")
    for program, seconds in ((too_long, 0.1), (("false",), 20.0)):
        slow = TrialService(context, process=AnalysingProcess(command=program, seconds=seconds))
        with pytest.raises(TooLarge, match="could not be analysed within the limits"):
            slow.sharing(STUDENT1, made)


def test_trials_of_a_sweep_without_sharing_share_nothing(context: Context) -> None:
    found = TrialService(context).sharing(STUDENT1, submitted(context, share=False))
    assert (found.summary, found.tree, found.cells) == ("train.ipynb: 4 trials of 2 cells.", [], [])
    assert found.notes == ["Sharing is off: each trial runs all cells, in a kernel of its own."]


def test_trials_of_other_people_and_of_plain_jobs_are_not_found(context: Context) -> None:
    with pytest.raises(NotFound):
        TrialService(context).trials(STUDENT2, submitted(context))
    plain = JobService(context).submit(STUDENT1, job(devices=0)).id
    with pytest.raises(NotFound, match="is no sweep"):
        TrialService(context).trials(STUDENT1, plain)


def test_a_resumed_sweep_finds_the_trials_that_have_succeeded(context: Context) -> None:
    made = submitted(context)
    folder = started(context, made)
    add_trials(folder, [trial(1, TrialState.SUCCEEDED), trial(2, TrialState.FAILED)])
    store, now = context.store, context.clock()
    cause = Cause(code=CauseCode.CELL_ERROR, message="1 of 4 trials failed.")
    store.apply(made, lifecycle.stop, State.FAILED, cause, now=now)
    lease = store.request(made).lease
    assert lease is not None
    store.apply_to_lease(lease.id, lifecycle.finish, now=now, charge_until=now)
    again = Resumption(context).resume(STUDENT1, made, ResumeIn()).request
    assert again is not None
    assert earlier_trials(context, store.request(again.id), before=1) == folder
    edited = ResumeIn(notebook=book("lr = 0.5\ndepth = 1", "print(lr + depth)"))
    other = Resumption(context).resume(STUDENT1, made, edited).request
    assert other is not None
    assert earlier_trials(context, store.request(other.id), before=1) is None
    with pytest.raises(InvalidInput, match="is a sweep"):
        Resumption(context).resume(STUDENT1, made, ResumeIn(from_cell=1))


def test_trials_that_are_trained_as_one_say_so(context: Context) -> None:
    made = submitted(context, together=True)
    stored = context.store.request(made).job
    assert stored is not None
    assert stored.sweep == SweepOrder(space=GRID, trials=4, together=True)
    again = JobService(context).same_job(STUDENT1, made)
    assert again.sweep == SweepIn(space=GRID, together=True)
    service = TrialService(context)
    assert list(service.sharing(STUDENT1, made).lines()) == [
        "train.ipynb: 4 trials trained as one, 2 cells.",
        "",
        "All cells run once: each parameter of the sweep is a list with one value a trial.",
        "No cell calls carrel.execution.fuse_train: the notebook has to train a model for each "
        "value of the lists by itself.",
    ]
    folder = started(context, made)
    running = [TrialRecord(number=n, state=TrialState.RUNNING, at=5.0) for n in (1, 2, 3, 4)]
    add_trials(folder, running)
    (folder / reports_name(4)).write_text('{"name": "loss", "value": 0.5, "step": 0}\n')
    found = service.trials(STUDENT1, made)
    assert found.together
    # Its notebook is written when the run ends.
    assert [(one.state, one.notebook) for one in found.trials] == [("running", "")] * 4
    assert found.trials[3].reported == {"loss": 0.5}
    assert states_text(found) == "4 trials trained as one: 4 running."


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        (
            {"space": {"search": {"lr": [0.1]}, "trials": 3}, "objective": "loss"},
            "A search cannot train its trials as one: it chooses values by the results of earlier "
            "trials.",
        ),
        (
            {"space": GRID, "parallel": 2},
            "Trials that are trained as one are one run of the notebook, not 2 at a time.",
        ),
        (
            {"space": {"list": [{"lr": 1}, {"lr": 2, "depth": 3}]}},
            "Trial 1 has no value for depth, which other trials have.",
        ),
        (
            {"space": {"grid": {"lr": list(range(257))}}},
            "257 trials cannot be trained as one.",
        ),
    ],
)
def test_trials_that_cannot_be_trained_as_one_are_refused(
    context: Context, sweep: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        submitted(context, together=True, **sweep)
    assert refused.value.message == message
    assert refused.value.accepted


@pytest.mark.parametrize(
    ("together", "sentence"),
    [
        (True, "Trained as one: 4 of 4 trials, by one run of the notebook."),
        (
            False,
            "Trained as one: 0 of 4 trials. With --together all could be, if the notebook takes "
            "lists of values.",
        ),
    ],
)
def test_a_dry_run_tells_how_many_trials_are_trained_as_one(
    context: Context, sentence: str, *, together: bool
) -> None:
    found = JobService(context).dry_run(STUDENT1, sweep_body(space=GRID, together=together))
    assert found.together == sentence
