"""The model of run times: what it learns, its file, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.insight.model_fit import FEWEST, train
from carrel.hub.insight.predictor import RunTimePredictor
from carrel.hub.insight.run_time_model import RunTimeModel

from .histories import past_run, plan_of, steps_history

pytest.importorskip("sklearn", reason="the extra insight is not installed")


@cache
def model() -> RunTimeModel:
    runs = [*steps_history(FEWEST + 50), past_run(3.0, censored=True), past_run(-1.0)]
    made = train(runs)
    assert made is not None
    return made


def test_it_learns_the_effect_of_a_parameter() -> None:
    known = RunTimePredictor(RunTimeModel.from_json(model().as_json()))
    for run in steps_history(FEWEST):
        known.observe(run)
    short = known.predict(plan_of(steps=2.0)).forecast
    long = known.predict(plan_of(steps=16.0)).forecast
    assert short.seconds == pytest.approx(20, rel=0.3)
    assert long.seconds == pytest.approx(160, rel=0.3)
    assert long.low < long.seconds < long.high


def test_few_runs_give_no_model() -> None:
    assert train(steps_history(3)) is None
    assert train([]) is None
    assert train([past_run(-1.0)] * FEWEST) is None


def test_a_model_file_says_the_same_as_the_model() -> None:
    again = RunTimeModel.from_json(model().as_json())
    assert again.as_json() == model().as_json()
    assert again.columns.parameters == ("steps",)


def _pointing(tree: dict[str, Any]) -> None:
    tree["left"][0] = 0


def _foreign(tree: dict[str, Any]) -> None:
    tree["feature"][0] = 10_000


def _text(tree: dict[str, Any]) -> None:
    tree["value"][-1] = "1"


def _short(tree: dict[str, Any]) -> None:
    tree["right"].pop()


def _empty(tree: dict[str, Any]) -> None:
    for values in tree.values():
        values.clear()


@pytest.mark.parametrize("damage", [_pointing, _foreign, _text, _short, _empty])
def test_a_damaged_tree_is_refused(damage: Callable[[dict[str, Any]], None]) -> None:
    values = json.loads(model().as_json())
    damage(values["high"]["trees"][1])
    with pytest.raises(InvalidInput, match="damaged"):
        RunTimeModel.from_json(json.dumps(values))


@pytest.mark.parametrize("content", ["", "null", "[]", "{}", '{"format": 99}', "\0", "[" * 100_000])
def test_another_file_is_refused(content: str) -> None:
    with pytest.raises(InvalidInput, match="no model"):
        RunTimeModel.from_json(content)


@pytest.mark.parametrize("name", ["parameters", "sizes", "trained_until", "runs", "typical"])
def test_a_file_without_a_part_is_refused(name: str) -> None:
    values = json.loads(model().as_json())
    del values[name]
    with pytest.raises(InvalidInput):
        RunTimeModel.from_json(json.dumps(values))
