"""Sweeps whose trials are trained as one: real runners and kernels, a fake service."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from carrel.hub.attempts.reports import read_reports
from carrel.hub.attempts.trials import (
    hand_over_trials,
    notebook_name,
    read_trials,
    reports_name,
    stop_trial,
)
from carrel.hub.interfaces.backend import LaunchOrder
from carrel.hub.records.requests import SweepOrder
from carrel.hub.sweeps.space_syntax import space_from_json

from ....fake_service import eventually
from ...attempts import wait_for_end
from ...conftest import Desk
from ...notebooks import notebook, printed, read, statuses

GRID = {"grid": {"lr": [0.1, 0.2], "depth": [3, 4]}}
PARAMETERS = "lr = [0.5]\ndepth = [1]\nname = 'x'"
TRAINS = (
    "import carrel\n"
    "for step in range(3):\n"
    "    carrel.report('loss', [rate * at + step for rate, at in zip(lr, depth)], step)\n"
    "carrel.report('size', 7)\n"
    "print(lr, depth, name)"
)
WAITS = "import pathlib, time\nwhile not pathlib.Path('flag').exists(): time.sleep(0.02)"


def together(desk: Desk, nb: Any, space: dict[str, Any] = GRID, **options: Any) -> LaunchOrder:
    order = desk.order(nb)
    trials = len(space_from_json(space).trials())
    sweep = SweepOrder(space=space, trials=trials, together=True, **options)
    return replace(order, job=replace(order.job, sweep=sweep, parameters={"name": "net"}))


def states(order: LaunchOrder) -> dict[int, str]:
    found = read_trials(order.folder)
    return {number: str(found[number].state) for number in sorted(found)}


def trial(order: LaunchOrder, number: int) -> Any:
    return read(order.folder / "files" / notebook_name(number))


def losses(order: LaunchOrder, number: int) -> list[float]:
    return list(read_reports(order.folder, reports_name(number))["loss"].values)


def test_the_notebook_runs_once_with_the_values_of_all_trials(desk: Desk) -> None:
    counts = "with open('ran', 'a') as f: f.write('x')"
    order = together(desk, notebook(counts, TRAINS, parameters=PARAMETERS))
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    assert desk.service.ended["message"] == "Ran 4 trials."
    assert (order.home / "ran").read_text() == "x"
    assert states(order) == dict.fromkeys((1, 2, 3, 4), "succeeded")
    last = [pytest.approx(2 + rate * at) for rate in (0.1, 0.2) for at in (3, 4)]
    found = read_trials(order.folder)
    assert [found[number].reported for number in (1, 2, 3, 4)] == [
        {"loss": value, "size": 7.0} for value in last
    ]
    assert [len(losses(order, number)) for number in (1, 2, 3, 4)] == [3] * 4
    shown = "[0.1, 0.1, 0.2, 0.2] [3, 4, 3, 4] net\n"
    for number, values in enumerate([(0.1, 3), (0.1, 4), (0.2, 3), (0.2, 4)], start=1):
        executed = trial(order, number)
        assert printed(executed) == shown
        assert "lr = [0.1, 0.1, 0.2, 0.2]" in executed.cells[2].source
        assert executed.metadata.papermill.parameters == {
            "name": "net",
            "lr": values[0],
            "depth": values[1],
        }
        assert executed.metadata.carrel.trial == number
    job = read(order.folder / "output.ipynb")
    assert printed(job) == shown
    assert "trial" not in job.metadata.carrel


def test_an_error_fails_all_trials_and_is_told_once(desk: Desk) -> None:
    nb = notebook(
        "import carrel\ncarrel.report('loss', [1, 2, 3, 4])\n1 / 0", parameters=PARAMETERS
    )
    order = together(desk, nb)
    wait_for_end(desk, order, desk.backend.start(order))
    assert states(order) == dict.fromkeys((1, 2, 3, 4), "failed")
    assert desk.service.ended["code"] == "cell_error"
    assert desk.service.ended["message"] == (
        "4 trials trained as one failed: error in cell 2: ZeroDivisionError: division by zero. "
        "Each parameter that differs is a list, with one value a trial"
    )
    assert [read_trials(order.folder)[n].reported["loss"] for n in (1, 2, 3, 4)] == [1, 2, 3, 4]
    assert statuses(trial(order, 4))[-1] == "failed"


def test_a_vector_of_another_length_fails_with_a_sentence(desk: Desk) -> None:
    nb = notebook("import carrel\ncarrel.report('loss', [1, 2, 3])", parameters=PARAMETERS)
    order = together(desk, nb)
    wait_for_end(desk, order, desk.backend.start(order))
    assert "one number, or 4 of them, one a trial, not 3" in desk.service.ended["message"]


def test_a_stopped_trial_ends_at_once_and_the_others_go_on(desk: Desk) -> None:
    after = "carrel.report('loss', [5, 6, 7, 8])"
    nb = notebook(
        "import carrel\ncarrel.report('loss', [1, 2, 3, 4])", WAITS, after, parameters=PARAMETERS
    )
    order = together(desk, nb)
    handle = desk.backend.start(order)
    eventually(lambda: (order.folder / reports_name(4)).exists() and losses(order, 4) == [4])
    stop_trial(order.folder, 2)
    eventually(lambda: states(order)[2] == "stopped")
    assert states(order) == {1: "running", 2: "stopped", 3: "running", 4: "running"}
    assert statuses(trial(order, 2))[-1] == "pending"
    (order.home / "flag").touch()
    assert wait_for_end(desk, order, handle) == 0
    assert states(order) == {1: "succeeded", 2: "stopped", 3: "succeeded", 4: "succeeded"}
    assert [read_trials(order.folder)[n].reported["loss"] for n in (1, 2, 3, 4)] == [5, 2, 7, 8]
    assert desk.service.ended["message"] == "Ran 4 trials; 1 of them stopped."


def test_a_run_whose_trials_are_all_stopped_ends(desk: Desk) -> None:
    order = together(desk, notebook(WAITS, parameters=PARAMETERS))
    handle = desk.backend.start(order)
    eventually(lambda: len(states(order)) == 4)
    for number in (1, 2, 3, 4):
        stop_trial(order.folder, number)
    assert wait_for_end(desk, order, handle) == 0
    assert states(order) == dict.fromkeys((1, 2, 3, 4), "stopped")


def test_after_a_loss_the_run_begins_again_without_the_stopped_trials(desk: Desk) -> None:
    nb = notebook(
        "import carrel\ncarrel.report('loss', [1] * len(lr))",
        WAITS,
        "print(lr, depth)",
        parameters=PARAMETERS,
    )
    order = together(desk, nb)
    handle = desk.backend.start(order)
    eventually(lambda: (order.folder / reports_name(4)).exists() and losses(order, 4) == [1])
    stop_trial(order.folder, 2)
    eventually(lambda: states(order)[2] == "stopped")
    desk.backend.stop(order.lease_id, handle)
    again = replace(order, folder=order.folder.with_name("again"), lease_id="again.1")
    again.folder.mkdir()
    desk.leases.append(again.lease_id)
    hand_over_trials(order.folder, again.folder)
    (order.home / "flag").touch()
    assert wait_for_end(desk, again, desk.backend.start(again)) == 0
    assert states(again) == {1: "succeeded", 2: "stopped", 3: "succeeded", 4: "succeeded"}
    assert printed(trial(again, 4)) == "[0.1, 0.2, 0.2] [3, 3, 4]\n"
    assert losses(again, 2) == [1]
