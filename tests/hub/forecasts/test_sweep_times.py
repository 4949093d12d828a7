"""Run times of sweeps: by single runs before, by their trials while they run."""

from __future__ import annotations

import pytest

from carrel.hub.forecasts.sweep_times import remaining_of_sweep, sweep_forecast
from carrel.hub.interfaces.run_times import Basis, RunTimeForecast
from carrel.hub.records.requests import SweepOrder
from carrel.hub.schemas import StepOut

TRIAL = RunTimeForecast(seconds=60.0, low=50.0, high=80.0, basis=Basis.OWN_PROGRAM, runs=3)
SWEEP = SweepOrder(space={}, trials=10, parallel=4)


def test_a_sweep_of_new_code_takes_as_many_rounds_as_its_slots_need() -> None:
    found = sweep_forecast(SWEEP, TRIAL, 3600.0)
    assert found is not None
    assert (found.seconds, found.low, found.high) == (180.0, 50.0, 240.0)
    limited = sweep_forecast(SWEEP, TRIAL, 100.0)
    assert limited is not None
    assert (limited.seconds, limited.high) == (100.0, 100.0)


def test_other_jobs_of_the_user_say_nothing_on_a_trial() -> None:
    other = RunTimeForecast(seconds=60.0, low=50.0, high=80.0, basis=Basis.OWNER, runs=3)
    assert sweep_forecast(SWEEP, other, 3600.0) is None


def test_the_remaining_time_of_a_sweep_narrows_with_its_trials() -> None:
    early = remaining_of_sweep(StepOut(done=1, of=10), 60.0)
    late = remaining_of_sweep(StepOut(done=9, of=10), 540.0)
    assert early is not None
    assert late is not None
    assert (early.seconds, late.seconds) == (540.0, 60.0)
    assert late.high / late.low < early.high / early.low


def test_a_clock_that_was_set_back_leaves_no_negative_time() -> None:
    found = remaining_of_sweep(StepOut(done=1, of=10), -60.0)
    assert found is not None
    assert (found.low, found.seconds, found.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "step", [None, StepOut(done=0, of=10), StepOut(done=3), StepOut(done=4, of=3)]
)
def test_before_the_first_trial_nothing_is_known(step: StepOut | None) -> None:
    assert remaining_of_sweep(step, 60.0) is None
