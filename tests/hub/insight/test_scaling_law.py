"""Scaling laws of programs: new parameters are predicted from other ones."""

from __future__ import annotations

import math
import random
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.insight import run_history
from carrel.hub.insight.boosted_trees import BoostedTrees
from carrel.hub.insight.predictor import RunTimePredictor
from carrel.hub.insight.run_history import Columns
from carrel.hub.insight.run_time_model import RunTimeModel
from carrel.hub.insight.scaling_law import ScalingLaw, ScalingRun, fit_law
from carrel.hub.interfaces.run_times import Basis

from .histories import past_run, plan_of


def square(n: float, threads: float) -> float:
    """Return 3 s for the start, and a quadratic part that threads divide."""
    return 3.0 + 1e-4 * n**2 / threads


SETTINGS = [(n, threads) for n in (100.0, 200.0, 400.0, 800.0) for threads in (1.0, 2.0)]


def test_new_parameters_follow_the_law_of_the_program() -> None:
    known = RunTimePredictor()
    for n, threads in SETTINGS:
        known.observe(past_run(square(n, threads), n=n, threads=threads))
    new = known.predict(plan_of(owner="cy", n=1600.0, threads=4.0)).forecast
    assert new.basis is Basis.PROGRAM
    assert new.seconds == pytest.approx(square(1600, 4), rel=0.1)
    # Known parameters are known better.
    known.observe(past_run(500.0, n=100.0, threads=1.0))
    known.observe(past_run(500.0, n=100.0, threads=1.0))
    assert known.predict(plan_of(n=100.0, threads=1.0)).forecast.seconds == 500.0


def test_with_a_model_the_mean_of_both_is_predicted() -> None:
    alone = RunTimePredictor()
    trees = {
        name: BoostedTrees(base=math.log(seconds), trees=())
        for name, seconds in (("low", 25.0), ("typical", 100.0), ("high", 400.0))
    }
    model = RunTimeModel(columns=Columns(), trained_until=0.0, runs=1, **trees)
    both = RunTimePredictor(model)
    for n, threads in SETTINGS:
        run = past_run(square(n, threads), n=n, threads=threads)
        alone.observe(run)
        both.observe(run)
    plan = plan_of(owner="cy", n=1600.0, threads=4.0)
    law, found = alone.predict(plan).forecast, both.predict(plan).forecast
    assert found.seconds == pytest.approx(math.sqrt(100.0 * law.seconds), rel=1e-3)
    assert found.low < found.seconds < found.high


def test_a_law_is_not_fitted_again_for_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[int] = []

    def fit(runs: Collection[ScalingRun]) -> ScalingLaw | None:
        fitted.append(len(runs))
        return fit_law(runs)

    monkeypatch.setattr(run_history, "fit_law", fit)
    known = RunTimePredictor()
    for n in range(1, 257):
        known.predict(plan_of(n=n + 0.5))
        known.observe(past_run(square(n, 1.0), n=float(n)))
    assert len(fitted) < 120
    assert fitted[-1] == 64


def test_stopped_runs_do_not_enter_the_law() -> None:
    known = RunTimePredictor()
    for n, threads in SETTINGS:
        known.observe(past_run(square(n, threads), n=n, threads=threads))
        known.observe(past_run(1.0, n=n * 1.1, threads=threads, censored=True))
    found = known.predict(plan_of(n=300.0, threads=1.0)).forecast.seconds
    assert found == pytest.approx(square(300, 1), rel=0.1)


def test_there_is_no_law_where_parameters_say_nothing() -> None:
    drawn = random.Random(3)  # noqa: S311
    runs = [ScalingRun({"seed": n}, drawn.uniform(1, 100)) for n in range(1, 40)]
    assert fit_law(runs) is None


FEW = {
    "no run": [],
    "no size": [ScalingRun({}, 1.0)] * 20,
    "one setting": [ScalingRun({"n": 5.0}, 1.0)] * 20,
    "two settings": [ScalingRun({"n": 1.0 + i % 2}, 1.0 + i % 2) for i in range(20)],
    "few runs": [ScalingRun({"n": float(i)}, float(i)) for i in (1, 2, 3, 4)],
}


@pytest.mark.parametrize("case", FEW)
def test_few_settings_make_no_law(case: str) -> None:
    assert fit_law(FEW[case]) is None


def test_sizes_that_always_change_together_are_no_obstacle() -> None:
    runs = [ScalingRun({"n": n, "m": 2 * n}, n) for n in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)]
    law = fit_law(runs)
    assert law is not None
    found = law.seconds(plan_of(n=64.0, m=128.0))
    assert found == pytest.approx(64.0, rel=0.05)
    assert law.seconds(plan_of(n=64.0)) is None
    # Far outside of what is known, a law says nothing.
    assert law.seconds(plan_of(n=200.0, m=400.0)) is None


_sizes = st.dictionaries(st.sampled_from("ab"), st.floats(5e-324, 1.7e308), min_size=2)


@given(st.lists(st.tuples(_sizes, st.floats(1e-9, 1e7)), min_size=6, max_size=12))
def test_odd_sizes_and_times_raise_nothing(found: list[tuple[dict[str, float], float]]) -> None:
    law = fit_law([ScalingRun(sizes, seconds) for sizes, seconds in found])
    seconds = None if law is None else law.seconds(plan_of(**found[0][0]))
    assert seconds is None or 0 < seconds < math.inf
