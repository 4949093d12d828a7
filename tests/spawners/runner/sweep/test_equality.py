"""Trials that share cells show the same as trials that run all cells: real runners and kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from nbformat import NotebookNode

from carrel.hub.attempts.trials import notebook_name, read_trials
from carrel.hub.interfaces.backend import LaunchOrder
from carrel.hub.records.json_value import Json
from carrel.hub.records.requests import SweepOrder
from carrel.hub.sweeps.space_syntax import space_from_json
from carrel.spawners.runner.sweep.plan import code_indexes

from ....hub.sweeps.random_notebooks import BEGIN, RandomSweep, sweeps
from ...attempts import wait_for_end
from ...conftest import Desk
from ...notebooks import notebook, read

SAME_WORLD = """
import random, time
def _seed(value=None, of=random.seed):
    of(1 if value is None else value)
random.seed = _seed
random.seed(1)
time.time = lambda: 5.0
"""
"""The same random numbers and the same clock in each kernel, whether or not it is forked."""
SHARED = {"tags": ["carrel-share"]}
PARAMETERS = {"tags": ["parameters"]}

Shown = Mapping[int, tuple[object, ...]]
"""By trial: how it ended, and what its cells have shown; None without a notebook."""


def run(desk: Desk, nb: NotebookNode, space: Mapping[str, Json], *, share: bool) -> LaunchOrder:
    order = desk.order(nb)
    trials = len(space_from_json(space).trials())
    job = replace(order.job, sweep=SweepOrder(space=space, trials=trials, share=share))
    order = replace(order, job=job)
    (order.home / "x").write_text("")  # some notebooks read it, others write it
    wait_for_end(desk, order, desk.backend.start(order))
    assert len(read_trials(order.folder)) == trials, (order.folder / "log.txt").read_text()
    return order


def shown(order: LaunchOrder) -> Shown:
    found: dict[int, tuple[object, ...]] = {}
    for number, record in sorted(read_trials(order.folder).items()):
        path = order.folder / "files" / notebook_name(number)
        cells = outputs(read(path)) if path.exists() else None
        found[number] = record.state, plain(record.message), record.reported, cells
    return found


def outputs(executed: NotebookNode) -> Sequence[object]:
    cells = [executed.cells[index] for index in code_indexes(executed)]
    return [(cell.source, [plain(each) for each in cell.outputs]) for cell in cells]


def plain(output: object) -> str:
    """Return a text without addresses, and without the times of ``%time``."""
    text = re.sub("0x[0-9a-f]+", "0x", str(output))
    return re.sub(r"(CPU times|Wall time): [^\\]*", "", text)


def check_equal(desk: Desk, nb: NotebookNode, space: Mapping[str, Json]) -> LaunchOrder:
    order = run(desk, nb, space, share=True)
    shared, alone = shown(order), shown(run(desk, nb, space, share=False))
    for number, (*ended, cells) in shared.items():
        *expected, shows = alone[number]
        # A cell that fails for several trials leaves only the notebook of the first one.
        assert (ended, shows if cells is None else cells) == (expected, shows), number
        assert cells is not None or ended[0] == "failed"
    assert shared.keys() == alone.keys()
    return order


def random_notebook(sweep: RandomSweep) -> NotebookNode:
    """Return the notebook of a random sweep, in a world that is the same for all kernels."""
    nb = notebook(*(SAME_WORLD + each if each == BEGIN else each for each in sweep.cells))
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    code[sweep.parameters_at].metadata.update(PARAMETERS)
    next(cell for cell in code if cell.source.endswith(BEGIN)).metadata.update(SHARED)
    return nb


def test_trials_show_the_same_with_and_without_sharing(desk: Desk) -> None:
    nb = notebook(
        "import random, numpy as np\nrandom.seed(3); np.random.seed(4)",
        "open('ran', 'a').write('x')",
        "data = {'a': [random.random(), np.random.rand()]}\ndata",
        "def scaled():\n    return [lr * q for q in data['a']]\ndata['b'] = data['a']",
        "data['b'].append(lr); print(scaled(), np.random.rand())",
        "print(random.random() / depth)",
        parameters="lr = 0\ndepth = 1",
    )
    nb.cells[3].metadata.update(SHARED)
    trials: Json = [{"lr": 1, "depth": 0}, {"lr": 1, "depth": 1}, {"lr": 2, "depth": 1}]
    order = check_equal(desk, nb, {"list": trials})
    ended = {number: str(each.state) for number, each in read_trials(order.folder).items()}
    assert ended == {1: "failed", 2: "succeeded", 3: "succeeded"}
    assert (order.home / "ran").read_text() == "x" * (1 + 3)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@given(sweep=sweeps())
@settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # each further example costs seconds
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_trials_of_random_notebooks_show_the_same(desk: Desk, sweep: RandomSweep) -> None:
    note("\n-- cell\n".join(sweep.cells))
    space: Any = sweep.space.as_json()
    check_equal(desk, random_notebook(sweep), space)
