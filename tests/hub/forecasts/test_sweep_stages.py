"""Sweeps whose trials share stages: the stages count once, in the order in which they run."""

from __future__ import annotations

import pytest

from carrel.hub.forecasts.sweep_stages import critical_text, sweep_course
from carrel.hub.forecasts.sweep_times import sweep_forecast
from carrel.hub.interfaces.run_times import Basis, RunTimeForecast
from carrel.hub.records.requests import SweepOrder, SweepStages

TREE = SweepStages(
    stages=((-1, 0, 2, 1), (0, 2, 3, 2), (1, 3, 4, 2)),
    hashes=("a", "b", "c", "d"),
)
"""Cells 1 and 2 once for 4 trials, cell 3 once for 2, cell 4 in each."""
SECONDS = (10.0, 290.0, 60.0, 40.0)
ALONE = RunTimeForecast(seconds=400.0, low=380.0, high=440.0, basis=Basis.OWN_PROGRAM, runs=3)


@pytest.mark.parametrize(
    ("parallel", "seconds", "critical"),
    [
        (1, 580.0, "cells 1 to 2 → cell 3 → cell 4 (2 times) → cell 3 → cell 4 (2 times)"),
        (2, 440.0, "cells 1 to 2 → cell 3 → cell 4 (2 times)"),
        (4, 400.0, "cells 1 to 2 → cell 3 → cell 4"),
    ],
)
def test_stages_run_in_the_order_of_the_runner(
    parallel: int, seconds: float, critical: str
) -> None:
    found = sweep_course(TREE, SECONDS, parallel)
    assert found is not None
    assert (found.seconds, found.work) == (seconds, 580.0)
    assert critical_text(found.critical) == critical


def test_stages_that_earlier_versions_have_stored_run_in_the_same_order() -> None:
    stored = [[-1, 0, 2], [0, 2, 3], [1, 3, 4], [1, 3, 4], [0, 2, 3], [4, 3, 4], [4, 3, 4]]
    found = SweepStages.from_json({"stages": stored, "hashes": [*"abcd"], "recorded": []})
    for parallel in (1, 2, 4):
        assert sweep_course(found, SECONDS, parallel) == sweep_course(TREE, SECONDS, parallel)


def test_a_sweep_counts_shared_stages_once_and_none_at_its_upper_bound() -> None:
    sweep = SweepOrder(space={}, trials=4, parallel=2, stages=TREE)
    found = sweep_forecast(sweep, ALONE, 3600.0, SECONDS)
    assert found is not None
    assert (found.seconds, found.low, found.high) == pytest.approx((440.0, 418.0, 880.0))
    assert found.saved == pytest.approx(4 * 400.0 - 580.0)
    unknown = sweep_forecast(sweep, ALONE, 3600.0)
    assert unknown is not None
    assert (unknown.seconds, unknown.low) == (800.0, 380.0)


@pytest.mark.parametrize("seconds", [(1.0,), (0.0,) * 4])
def test_times_that_do_not_fit_the_cells_tell_nothing(seconds: tuple[float, ...]) -> None:
    found = sweep_forecast(SweepOrder(space={}, trials=4, stages=TREE), ALONE, 3600.0, seconds)
    assert found is not None
    assert (found.seconds, found.critical) == (1600.0, ())


def test_trials_of_a_sweep_without_sharing_run_all_cells_at_the_lower_bound_too() -> None:
    found = sweep_forecast(SweepOrder(space={}, trials=4, share=False), ALONE, 3600.0)
    assert found is not None
    assert found.low == 4 * 380.0
