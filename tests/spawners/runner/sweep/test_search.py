"""Searches: real runners, kernels and Optuna, a fake service."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from carrel.hub.attempts.trials import TrialRecord, hand_over_trials, notebook_name, read_trials
from carrel.hub.interfaces.backend import LaunchOrder
from carrel.hub.records.requests import SweepOrder
from carrel.spawners.runner.attempt.outcome_messages import StartFailed
from carrel.spawners.runner.notebook.attempt import ChosenKernel
from carrel.spawners.runner.sweep import attempt
from carrel.spawners.runner.sweep.plan import sweep_plan

from ....fake_service import eventually
from ...attempts import wait_for_end
from ...conftest import Desk
from ...notebooks import notebook, printed, read

_BOWL = "import carrel\ncarrel.report('loss', (x - 3) ** 2)"


def search(desk: Desk, order: LaunchOrder, **options: Any) -> LaunchOrder:
    space = {"search": {"x": {"uniform": [-10.0, 10.0]}}, "trials": 5} | options.pop("space", {})
    sweep = SweepOrder(space=space, trials=space["trials"], objective="loss", **options)
    return replace(order, job=replace(order.job, sweep=sweep))


def records(order: LaunchOrder) -> list[TrialRecord]:
    return [one for _, one in sorted(read_trials(order.folder).items())]


def states(order: LaunchOrder) -> list[str]:
    return [str(one.state) for one in records(order)]


def again(desk: Desk, order: LaunchOrder) -> LaunchOrder:
    """Return a second attempt, after the first one."""
    second = replace(order, folder=order.folder.with_name("again"), lease_id="again.1")
    second.folder.mkdir()
    desk.leases.append(second.lease_id)
    hand_over_trials(order.folder, second.folder)
    return second


def test_shared_cells_run_once_and_values_are_recorded(desk: Desk) -> None:
    nb = notebook("with open('ran', 'a') as f: f.write('x')", _BOWL, parameters="x = 0.0")
    nb.cells[2].metadata["tags"] = ["carrel-share"]
    order = search(desk, desk.order(nb), parallel=2)
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    assert states(order) == ["succeeded"] * 5
    assert (order.home / "ran").read_text() == "x"
    for one in records(order):
        assert one.reported["loss"] == (one.values["x"] - 3) ** 2  # type: ignore[operator]  # a number
        executed = read(order.folder / "files" / notebook_name(one.number))
        assert executed.metadata.papermill.parameters == one.values
    assert len({one.values["x"] for one in records(order)}) == 5
    assert "optuna" not in (order.folder / "log.txt").read_text().lower()


def test_bad_trials_are_stopped_early_and_their_slot_goes_on(desk: Desk) -> None:
    cell = (
        "import carrel, os\n"
        "os.mkdir(f'ran-{trial}')\n"
        "print('begun')\n"
        "for step in range(8): carrel.report('loss', trial, step)\n"
        "if trial > 2: open('never').read()"
    )
    number = "trial = int(os.environ['CARREL_OUTPUT_DIR'].rpartition('-')[2])"
    nb = notebook(f"import os; {number}", cell, parameters="x = 0.0")
    order = search(desk, desk.order(nb), space={"trials": 5, "pruner": "asha"})
    os.mkfifo(order.home / "never")
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    assert states(order) == ["succeeded"] * 2 + ["pruned"] * 3
    third = records(order)[2]
    assert (third.message, third.reported) == ("It was stopped early, at step 7.", {"loss": 3})
    assert third.steps == 8
    assert printed(read(order.folder / "files" / notebook_name(3))) == "begun\n"
    assert desk.service.ended["message"] == "Ran 5 trials; 3 of them stopped early."


def test_after_a_crash_no_finished_trial_runs_again_and_values_stay(desk: Desk) -> None:
    cell = (
        "import carrel, os\n"
        "with open('ran', 'a') as f: f.write(f'{x}\\n')\n"
        "if len(open('ran').readlines()) == 4: open('wait').read()\n"
        "carrel.report('loss', (x - 3) ** 2)"
    )
    nb = notebook("shared = 1", cell, parameters="x = 0.0")
    order = search(desk, desk.order(nb), space={"trials": 6})
    os.mkfifo(order.home / "wait")
    handle = desk.backend.start(order)
    ran = order.home / "ran"
    eventually(lambda: ran.exists() and len(ran.read_text().splitlines()) == 4)
    os.kill(handle.pid, signal.SIGKILL)
    desk.backend.stop(order.lease_id, handle)
    assert states(order) == ["succeeded"] * 3 + ["running"]
    before = [one.values for one in records(order)]
    second = again(desk, order)
    assert wait_for_end(desk, second, desk.backend.start(second)) == 0
    assert states(second) == ["succeeded"] * 6
    assert [one.values for one in records(second)][:4] == before
    values = [one.values["x"] for one in records(second)]
    assert [float(line) for line in ran.read_text().splitlines()] == [*values[:4], *values[3:]]


def test_a_trial_without_a_finite_objective_counts_for_nothing_and_others_go_on(desk: Desk) -> None:
    cell = "import carrel\nif kind: carrel.report('loss', float(kind))"
    space = {"search": {"kind": ["", "nan", "1"]}, "trials": 4}
    order = search(desk, desk.order(notebook(cell, parameters="kind = ''")), space=space)
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    assert states(order) == ["succeeded"] * 4
    assert {str(one.values["kind"]) for one in records(order)} == {"", "nan", "1"}


def test_a_failed_shared_cell_ends_the_search_before_any_trial(desk: Desk) -> None:
    order = search(desk, desk.order(notebook("1 / 0", _BOWL, parameters="x = 0.0")))
    wait_for_end(desk, order, desk.backend.start(order))
    assert records(order) == []
    assert desk.service.ended["code"] == "cell_error"
    assert desk.service.ended["message"].startswith("5 of 5 trials failed. Trial 1: error in cell")


def test_a_kernel_that_cannot_be_forked_runs_all_cells_in_each_trial(desk: Desk) -> None:
    waits = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
    nb = notebook(waits, _BOWL, parameters="x = 0.0")
    nb.cells[2].metadata["tags"] = ["carrel-share"]
    order = search(desk, desk.order(nb), space={"trials": 2})
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    assert states(order) == ["succeeded"] * 2
    assert "each trial runs all cells" in (order.folder / "log.txt").read_text()


def test_a_search_without_optuna_says_what_to_install(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = search(desk, desk.order())
    assert order.job.sweep is not None
    kernel = ChosenKernel(name="python3", language="python")
    nb = notebook(_BOWL, parameters="x = 0.0")
    plan = sweep_plan(order.job.sweep, {}, nb, kernel, [])
    for name in ("search", "search_executor"):
        monkeypatch.delitem(sys.modules, f"{attempt.__package__}.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(StartFailed, match="a search needs Optuna, which the environment of the"):
        attempt.executor_of(Mock(), plan, 0, [])
