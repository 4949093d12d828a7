"""S1 (8,562 jobs of a week of Philly on 6 x 8) against independent simulators."""

from __future__ import annotations

from statistics import fmean

import pytest

from carrel.hub.simulation.policies.policy import BASELINES
from carrel.hub.simulation.replay.experiment import Experiment, run
from carrel.hub.simulation.replay.metrics import ReplayMetrics
from carrel.hub.simulation.replay.runtime_estimates import parse_estimates
from carrel.hub.simulation.workload.jobs import Trace
from carrel.hub.simulation.workload.nodes import ONE_POOL, one_pool

from ..kit import approx, week_of_philly

EXACT = 0.005


@pytest.fixture(scope="module")
def week() -> Trace:
    return week_of_philly()


def figures(week: Trace, policy: str, estimates: str = "oracle", seed: int = 0) -> ReplayMetrics:
    experiment = Experiment(
        trace=week,
        pools={ONE_POOL: one_pool(6, 8).pool(ONE_POOL)},
        estimator=parse_estimates(estimates, week.jobs, seed),
    )
    return run(experiment, BASELINES[policy]).figures


@pytest.mark.parametrize(
    ("policy", "jct", "wait"),
    [
        ("fifo", 113_909, 111_945),
        ("greedy", 46_929, 44_965),
        ("sjf", 26_165, 24_201),
    ],
)
def test_fifo_and_shortest_first_agree_with_other_simulators(
    week: Trace, policy: str, jct: float, wait: float
) -> None:
    found = figures(week, policy)
    assert (found.jct.mean, found.wait.mean) == (approx(jct, EXACT), approx(wait, EXACT))


def test_two_queues_agree_with_one_of_two_implementations(week: Trace) -> None:
    found = figures(week, "las").jct.mean
    assert found in (approx(56_353, 0.05), approx(58_989, 0.05))


def test_predicted_service_agrees_with_another_simulator_over_ten_seeds(week: Trace) -> None:
    found = fmean(figures(week, "qssf", "lognormal:1.0", seed).jct.mean for seed in range(10))
    assert found == approx((30_990 + 31_803) / 2, 0.1)


def test_the_same_seed_gives_the_same_metrics(week: Trace) -> None:
    assert figures(week, "qssf", "lognormal:1.0", 3) == figures(week, "qssf", "lognormal:1.0", 3)
