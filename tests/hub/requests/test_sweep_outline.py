"""The stages that are stored with a sweep: few, however many trials it has, or a reason."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from carrel.hub.forecasts.sweep_stages import sweep_course
from carrel.hub.records.requests import JobSpec, SweepOrder
from carrel.hub.requests.sweep_analysis.outline import sweep_outline
from carrel.hub.requests.sweep_analysis.process import SweepOutline
from carrel.hub.sweeps.notebook_cells import read_sweep_notebook
from carrel.hub.sweeps.space_syntax import space_from_json
from carrel.hub.sweeps.stage_description import analysed_sweep

from ..notebooks import notebook

CELLS = ("data = list(range(9))", "trees = [x * depth for x in data]", "loss = lr + seed")


def outline(cells: tuple[str, ...], depths: int, rates: int, seeds: int) -> SweepOutline:
    parameters = "depth = 1\nlr = 0.1\nseed = 0"
    found = read_sweep_notebook("train.ipynb", notebook(*cells, parameters=parameters))
    grid = {
        "depth": list(range(depths)),
        "lr": [0.01 * each for each in range(1, rates + 1)],
        "seed": list(range(seeds)),
    }
    trials = space_from_json({"grid": grid}).check(found).trials()
    return sweep_outline(found, analysed_sweep(found, trials))


def test_equal_stages_are_stored_once() -> None:
    found = outline(CELLS, 5, 8, 5)
    assert found.stages is not None
    assert found.stages.stages == ((-1, 0, 2, 1), (0, 2, 3, 5), (1, 3, 4, 40))
    course = sweep_course(found.stages, (1.0, 0.0, 2.0, 3.0), 1)
    assert course is not None
    assert course.work == 1.0 + 5 * 2.0 + 200 * 3.0
    assert SweepOutline.from_json(json.loads(json.dumps(found.as_json()))) == found
    order = SweepOrder(space={}, trials=200)
    sizes = [
        len(json.dumps(JobSpec(notebook_name="a.ipynb", sweep=sweep).as_json()))
        for sweep in (order, replace(order, stages=found.stages))
    ]
    assert sizes[1] - sizes[0] < 300


@pytest.mark.parametrize(
    ("cells", "trials", "reason"),
    [
        (CELLS[:1] * 200, 1, "its notebook has more than 200 code cells."),
        (CELLS, 2_000, "it has more than 2,000 stages."),
    ],
)
def test_a_sweep_that_is_too_large_has_a_reason(
    cells: tuple[str, ...], trials: int, reason: str
) -> None:
    assert outline(cells, 1, 1, trials) == SweepOutline(None, reason)
