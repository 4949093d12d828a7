"""Remaining times by the steps that a job reports."""

from __future__ import annotations

import math

import pytest

from carrel.hub.forecasts.step_times import remaining_of_steps
from carrel.hub.runtime.reported_loops import ReportedLoop


def loop(
    done: float, seconds: float, *, before: float = 0.0, of: float = 100.0, gains: int = 20
) -> ReportedLoop:
    return ReportedLoop(of=of, first=(1000.0, before), newest=(1000.0 + seconds, done), gains=gains)


def test_the_steps_that_are_left_take_as_long_as_those_that_are_done() -> None:
    early, late = (remaining_of_steps(loop(done, done), 1000 + done) for done in (20.0, 80.0))
    assert early is not None
    assert late is not None
    assert (early.seconds, late.seconds) == (pytest.approx(80), pytest.approx(20))
    assert early.low < 80 < early.high
    assert late.high / late.low < early.high / early.low
    assert late.by_steps


def test_steps_before_the_first_report_are_not_timed() -> None:
    found = remaining_of_steps(loop(60, 10, before=50), 1010)
    assert found is not None
    assert found.seconds == pytest.approx(40)


@pytest.mark.parametrize(("now", "left"), [(1090, 20), (1090 + 3, 17), (1e6, 15), (0, 20)])
def test_time_passes_until_the_next_report_is_due(now: float, left: float) -> None:
    found = remaining_of_steps(loop(90, 180, gains=36), now + 90)
    assert found is not None
    assert found.seconds == pytest.approx(left)


@pytest.mark.parametrize(
    "found",
    [
        None,
        loop(30, 60, gains=0),
        loop(100, 60),
        loop(1, 60, of=10_000),
        loop(30, 1),
        loop(30, math.nan),
    ],
)
def test_too_little_or_impossible_progress_says_nothing(found: ReportedLoop | None) -> None:
    assert remaining_of_steps(found, 1060) is None
