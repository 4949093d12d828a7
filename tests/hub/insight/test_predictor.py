"""Predicted run times: what they rest on, their intervals, and odd histories."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from carrel.hub.insight.conformal import AdaptiveConformal
from carrel.hub.insight.past_runs import PastRun, usable
from carrel.hub.insight.predictor import RunTimePredictor, replay
from carrel.hub.insight.survival import imputed_seconds, survival_quantile
from carrel.hub.interfaces.run_times import Basis

from .histories import NOW, odd_histories, past_run, plan_of, steps_history


def predictor(*runs: PastRun) -> RunTimePredictor:
    made = RunTimePredictor()
    for run in runs:
        made.observe(run)
    return made


def test_runs_of_strangers_in_other_courses_say_nothing() -> None:
    known = predictor(past_run(10.0))
    stranger = plan_of(owner="cy", program="other", group="art", limit=60.0)
    assert known.predict(stranger).forecast.basis is None


def test_without_history_the_time_limit_is_used_and_nothing_is_claimed_to_be_known() -> None:
    forecast = predictor().predict(plan_of(limit=600.0)).forecast
    assert (forecast.seconds, forecast.low, forecast.high) == (600.0, 0.0, 600.0)
    assert forecast.basis is None


ALIKE = {
    "own runs with these parameters": (plan_of(steps=1.0), 10.0, Basis.OWN_PARAMETERS),
    "those of others": (plan_of(owner="cy", steps=1.0), 20.0, Basis.PARAMETERS),
    "own runs of the program": (plan_of(steps=9.0), 10.0, Basis.OWN_PROGRAM),
    "any runs of the program": (plan_of(owner="cy", steps=9.0), 20.0, Basis.PROGRAM),
    "the user": (plan_of(program="other"), 10.0, Basis.OWNER),
    "the course": (plan_of(owner="cy", program="other"), 20.0, Basis.GROUP),
}


@pytest.mark.parametrize("case", ALIKE)
def test_the_most_alike_runs_are_used(case: str) -> None:
    plan, seconds, basis = ALIKE[case]
    known = predictor(
        past_run(10.0, steps=1.0),
        past_run(10.0, steps=1.0),
        past_run(20.0, owner="ben", steps=1.0),
        past_run(20.0, owner="ben", steps=1.0),
    )
    forecast = known.predict(plan).forecast
    assert forecast.seconds == pytest.approx(seconds)
    assert forecast.basis is basis


def test_a_forecast_is_at_most_the_time_limit() -> None:
    forecast = predictor(past_run(1000.0)).predict(plan_of(limit=60.0)).forecast
    assert (forecast.seconds, forecast.high) == (60.0, 60.0)


def test_a_stopped_run_is_a_lower_bound() -> None:
    # As a duration it would make the mean of the last two 50 s.
    stopped = predictor(
        past_run(100.0), past_run(100.0), past_run(100.0), past_run(1.0, censored=True)
    )
    assert stopped.predict(plan_of()).forecast.seconds == pytest.approx(100.0)
    only_stopped = predictor(past_run(50.0, censored=True), past_run(50.0, censored=True))
    assert only_stopped.predict(plan_of()).forecast.seconds == pytest.approx(100.0)


def test_the_product_limit_estimator_counts_stopped_runs_among_those_at_risk() -> None:
    observed = [(6.0, False), (6.0, False), (6.0, True), (7.0, False), (9.0, True), (10.0, True)]
    # After 6 s 4 of 6 are left, after 7 s 2/3 of 2/3 of them.
    assert survival_quantile(observed, 0.3) == 6.0
    assert survival_quantile(observed, 0.5) == 7.0
    assert survival_quantile(observed, 0.9) == math.inf
    assert survival_quantile([], 0.5) == math.inf
    assert imputed_seconds(5.0, observed) == 7.0
    assert imputed_seconds(20.0, observed) == 40.0


def test_intervals_adapt_when_the_workload_changes() -> None:
    runs = steps_history(1200)
    changed = [
        past_run(
            run.seconds * (1.0 if number < 600 else 1 + number % 7),
            at=run.plan.at,
            owner=run.plan.owner,
            **run.plan.parameters,  # type: ignore[arg-type]
        )
        for number, run in enumerate(runs)
    ]
    found = [
        prediction.forecast.low <= run.seconds <= prediction.forecast.high
        for run, prediction in replay(RunTimePredictor(), changed)
    ]
    assert 0.88 <= sum(found[200:]) / len(found[200:]) <= 0.94
    assert sum(found[-400:]) / 400 >= 0.88


def test_a_misleading_past_does_not_widen_intervals_without_end() -> None:
    conformal = AdaptiveConformal()
    for _ in range(5000):
        conformal.observe(50.0, missed=True)
    assert conformal.widening <= 60.0
    for _ in range(5000):
        conformal.observe(0.01, missed=False)
    assert conformal.widening == pytest.approx(0.01)


def test_no_forecast_uses_runs_that_end_later() -> None:
    long = past_run(1000.0, at=NOW)
    during = past_run(5.0, at=NOW + 10)
    later = past_run(5.0, at=NOW + 2000)
    bases = [each[1].forecast.runs for each in replay(RunTimePredictor(), [long, during, later])]
    assert bases == [0, 0, 2]


@given(odd_histories)
def test_no_history_breaks_a_forecast(runs: list[PastRun]) -> None:
    known = RunTimePredictor()
    kept = list(usable(runs))
    for run, prediction in replay(known, kept):
        forecast = prediction.forecast
        assert 0 <= forecast.low <= forecast.seconds <= forecast.high <= run.plan.limit
    for plan in (plan_of(limit=60.0), plan_of(program="", owner="", group="", limit=60.0)):
        forecast = known.predict(plan).forecast
        assert 0 <= forecast.low <= forecast.seconds <= forecast.high <= 60.0


def test_a_run_without_a_positive_duration_is_left_out() -> None:
    odd = (0.0, -5.0, math.nan, math.inf, 1e12)
    assert not list(usable(past_run(seconds) for seconds in odd))
