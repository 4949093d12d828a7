"""Plots of trials: axes, lines, what is left out, and the same as text."""

from __future__ import annotations

import re
from typing import Any

import pytest

from carrel.hub.schemas.sweeps import TrialOut, TrialsOut
from carrel.hub.sweeps.plots.svg_layout import parallel_drawing
from carrel.hub.sweeps.plots.trial_plots import (
    MOST_AXES,
    MOST_LINES,
    AxisScale,
    AxisTick,
    ParallelCoordinates,
    best_so_far,
    logarithmic_parameters,
    parallel_coordinates,
)
from carrel.hub.sweeps.space_syntax import space_from_json


def trials(*values: dict[str, Any], losses: list[float | None] | None = None) -> TrialsOut:
    given = losses if losses is not None else [float(at) for at in range(len(values))]
    return TrialsOut(
        trials=[
            TrialOut(
                number=at, values=each, state="succeeded", at=float(at), reported={"loss": loss}
            )
            for at, (each, loss) in enumerate(zip(values, given, strict=True), start=1)
        ],
        parameters=list(dict.fromkeys(name for each in values for name in each)),
        logarithmic=["lr"],
        names=["loss"],
        objective="loss",
    )


def plotted(found: TrialsOut) -> ParallelCoordinates:
    plot = parallel_coordinates(found)
    assert plot is not None
    return plot


def test_numbers_have_a_scale_and_texts_have_steps() -> None:
    plot = plotted(
        trials(
            {"lr": 0.001, "depth": 2, "name": "sgd", "same": 1},
            {"lr": 0.01, "depth": 8, "name": "adam", "same": 1},
            {"lr": 0.1, "depth": 4, "name": "sgd", "same": 1},
            losses=[3.0, 1.0, 2.0],
        )
    )
    assert [(axis.name, axis.scale) for axis in plot.axes] == [
        ("lr", AxisScale.LOGARITHMIC),
        ("depth", AxisScale.LINEAR),
        ("name", AxisScale.STEPS),
        ("loss", AxisScale.LINEAR),
    ]
    assert plot.axes[2].ticks == [AxisTick(at=0.0, text="adam"), AxisTick(at=1.0, text="sgd")]
    assert (plot.best.number, plot.best.points) == (2, (0.5, 1.0, 0.0, 0.0))
    assert [line.points for line in plot.lines] == [(1.0, 0.3333, 1.0, 0.5), (0.0, 0.0, 1.0, 1.0)]
    assert plot.about == (
        "Parallel coordinates of 3 trials over lr (0.001 to 0.1, logarithmic), depth (2 to 8), "
        "name (adam, sgd), and loss (1 to 3). "
        "The best one, trial 2, has lr = 0.01, depth = 8, name = adam, loss = 1."
    )


def test_a_trial_that_keeps_a_default_has_a_gap_there() -> None:
    plot = plotted(trials({"lr": 0.1}, {"lr": 0.2, "flag": True}, {"flag": False}))
    assert [line.points for line in (plot.best, *plot.lines)] == [
        (0.0, None, 0.0),
        (1.0, 1.0, 0.5),
        (None, 0.0, 1.0),
    ]


@pytest.mark.parametrize(
    "found",
    [
        trials({"lr": 1}),
        trials({"lr": 1}, {"lr": 1}),
        trials({"lr": 1}, {"lr": 2}, losses=[1.0, None]),
    ],
)
def test_what_cannot_be_compared_is_not_drawn(found: TrialsOut) -> None:
    assert parallel_coordinates(found) is None


def test_a_large_sweep_is_drawn_in_part_from_the_best_to_the_worst() -> None:
    many = [{f"p{name}": at + name for name in range(12)} for at in range(10_000)]
    found = trials(*many, losses=[abs(at - 5000.25) for at in range(10_000)])
    plot = plotted(found)
    assert 1 + len(plot.lines) == MOST_LINES
    assert len(plot.axes) == MOST_AXES + 1
    assert plot.best.number == 5001
    assert plot.note == (
        "Drawn are 200 of 10,000 trials, evenly chosen from the best to the worst. "
        "Without an axis: p9, p10, p11."
    )
    drawing = parallel_drawing(found)
    assert drawing is not None
    assert len(drawing.lines) < 30_000


def test_extreme_numbers_stay_on_the_axis() -> None:
    plot = plotted(trials({"lr": -1e308}, {"lr": 1e308}, {"lr": 0}))
    assert plot.axes[0].scale is AxisScale.LINEAR
    assert [line.points[0] for line in (plot.best, *plot.lines)] == [0.0, 1.0, 0.5]


def test_the_drawing_has_a_path_for_the_trials_and_one_for_the_best() -> None:
    found = trials({"lr": 0.1, "n": 1}, {"lr": 0.2, "n": 3}, {"lr": 0.4, "n": 2})
    drawing = parallel_drawing(found)
    assert drawing is not None
    assert (drawing.number, drawing.best) == (1, "M70 236L330 236L590 236")
    assert len(re.findall("M", drawing.lines)) == 2
    assert [(axis.name, axis.told) for axis in drawing.axes] == [
        ("lr", "log scale"),
        ("n", ""),
        ("loss", "smallest is best"),
    ]


def test_the_best_so_far_follows_the_order_of_the_ends() -> None:
    found = trials({"lr": 1}, {"lr": 2}, {"lr": 3}, losses=[3.0, None, 1.0])
    late = found.trials[0].model_copy(update={"at": 9.0})
    found = found.model_copy(update={"trials": [late, *found.trials[1:]]})
    assert best_so_far(found) == [1.0, 1.0]
    assert best_so_far(found.model_copy(update={"maximize": True})) == [1.0, 3.0]


def test_a_logarithmic_axis_is_for_what_the_space_says() -> None:
    sampled = {"random": {"lr": {"log": [1e-4, 1]}, "x": {"uniform": [1e-4, 1]}}, "trials": 3}
    assert logarithmic_parameters(space_from_json(sampled)) == ["lr"]
    grid = {"grid": {"lr": [0.1, 0.001], "depth": [2, 4], "zero": [0, 100], "name": ["a", "b"]}}
    assert logarithmic_parameters(space_from_json(grid)) == ["lr"]
    listed = {"list": [{"lr": 0.1}, {"lr": 0.0001, "flag": True}]}
    assert logarithmic_parameters(space_from_json(listed)) == ["lr"]
