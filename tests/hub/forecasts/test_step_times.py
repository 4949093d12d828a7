"""Remaining times by the steps that a job reports."""

from __future__ import annotations

import math

import pytest

from carrel.hub.forecasts.step_times import remaining_of_steps
from carrel.hub.schemas import StepOut


def test_the_steps_that_are_left_take_as_long_as_those_that_are_done() -> None:
    early, late = (remaining_of_steps(StepOut(done=done, of=100), done) for done in (20.0, 80.0))
    assert early is not None
    assert late is not None
    assert (early.seconds, late.seconds) == (pytest.approx(80), pytest.approx(20))
    assert early.low < 80 < early.high
    assert late.high / late.low < early.high / early.low
    assert late.by_steps


@pytest.mark.parametrize(
    ("step", "elapsed"),
    [
        (None, 60.0),
        (StepOut(done=0, of=10), 60.0),
        (StepOut(done=3), 60.0),
        (StepOut(done=3, of=0), 60.0),
        (StepOut(done=3, of=3), 60.0),
        (StepOut(done=4, of=3), 60.0),
        (StepOut(done=-1, of=3), 60.0),
        (StepOut(done=1, of=10_000), 60.0),
        (StepOut(done=3, of=10), 1.0),
        (StepOut(done=3, of=10), -60.0),
        (StepOut(done=3, of=10), math.nan),
    ],
)
def test_too_little_or_impossible_progress_says_nothing(
    step: StepOut | None, elapsed: float
) -> None:
    assert remaining_of_steps(step, elapsed) is None
