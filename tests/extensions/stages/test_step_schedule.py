"""Schedules are piecewise constant functions of the step, and all others are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import carrel
from carrel.extensions.stages.step_schedule import step_schedule


def test_the_parameters_change_together_at_the_steps_of_any_of_them() -> None:
    found = step_schedule({"lr": [(0, 0.1), (5, 0.01)], "batch": [(0, 8), (2, 16)], "n": 1}, 1, 10)
    assert [(piece.first, dict(piece.values)) for piece in found.pieces] == [
        (0, {"lr": 0.1, "batch": 8, "n": 1}),
        (2, {"lr": 0.1, "batch": 16, "n": 1}),
        (5, {"lr": 0.01, "batch": 16, "n": 1}),
    ]
    assert found.columns() == {"lr": "0.1, 0.01 from 5", "batch": "8, 16 from 2", "n": 1}


def test_a_change_to_the_same_value_is_none_but_one_of_the_type_is() -> None:
    def keys(*values: Any) -> int:
        return len(step_schedule({"x": list(enumerate(values))}, 1, 10).pieces)

    assert keys(1, 1, 1) == 1
    assert keys(0.5, np.float64(0.5)) == 1
    assert keys(1, 1.0, True, "1", None) == 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Schedule 3 has no parameters."),
        ([], "Schedule 3 is a dict of parameters"),
        ({1: 0.1}, "the name of a parameter is text, not 1"),
        ({"lr": []}, "Schedule 3, lr: the list of (step, value) pairs is empty."),
        ({"lr": [0.1, 0.2]}, "a list has (step, value) pairs, not 0.1"),
        ({"lr": [(0.5, 1)]}, "a step is a whole number, not 0.5"),
        ({"lr": [(5, 0.1)]}, "Schedule 3, lr: the first value begins at step 0, not at step 5."),
        ({"lr": [(0, 1), (5, 2), (5, 3)]}, "steps increase from pair to pair; 5 follows 5."),
        ({"lr": [(0, 1), (7, 2), (5, 3)]}, "steps increase from pair to pair; 5 follows 7."),
        ({"lr": [(0, 1), (10, 2)]}, "step 10 is beyond the last one; 10 steps have the numbers 0"),
        ({"lr": {"a": 1}}, "a value is a number, text, True, False or None, not {'a': 1}"),
        ({"lr": float("nan")}, "NaN is not a value of a parameter."),
    ],
)
def test_a_malformed_schedule_is_refused(given: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        step_schedule(given, 3, 10)
    assert message in str(refused.value)


def test_schedules_are_all_combinations_of_choices() -> None:
    decay = [(0, 0.1), (5, 0.01)]
    assert carrel.schedules(lr=[0.1, decay], batch=[32, 64]) == [
        {"lr": 0.1, "batch": 32},
        {"lr": 0.1, "batch": 64},
        {"lr": decay, "batch": 32},
        {"lr": decay, "batch": 64},
    ]
    for given in ({}, {"lr": []}):
        with pytest.raises(ValueError, match=r"at least one|is empty"):
            carrel.schedules(**given)
    with pytest.raises(TypeError, match=r"The choices of lr are a list, not 0\.1\."):
        carrel.schedules(lr=0.1)  # type: ignore[arg-type]  # what is refused
