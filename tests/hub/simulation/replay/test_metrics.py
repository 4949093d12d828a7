"""Metrics of a simulation, for a few jobs."""

from __future__ import annotations

import pytest

from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.simulation.policies.policy import BASELINES
from carrel.hub.simulation.replay.experiment import Experiment, ExperimentResult, run
from carrel.hub.simulation.replay.metrics import Spread, below_guarantee, evenness, jain, spread
from carrel.hub.simulation.replay.runtime_estimates import parse_estimates
from carrel.hub.simulation.workload.jobs import Trace, TraceJob
from carrel.hub.simulation.workload.nodes import parse_nodes

from ..kit import job, played, site


def result(jobs: tuple[TraceJob, ...], nodes: str, policy: str, *groups: Group) -> ExperimentResult:
    layout = parse_nodes(nodes)
    experiment = Experiment(
        trace=Trace(name="t", jobs=jobs),
        pools=layout.pools(),
        estimator=parse_estimates("oracle", jobs, 0),
        groups=groups,
        restart_cost=60.0,
    )
    return run(experiment, BASELINES[policy])


def test_percentiles_are_values_that_occurred() -> None:
    found = spread([float(number) for number in range(100, 0, -1)])
    assert found == Spread(mean=50.5, median=50.0, p95=95.0, p99=99.0)
    assert spread([7.0]) == Spread(mean=7.0, median=7.0, p95=7.0, p99=7.0)


def test_completion_wait_use_and_slowdown() -> None:
    found = result((job("a", 0, 100, 2), job("b", 50, 100)), "1x2", "fifo").figures
    assert (found.jct.mean, found.wait.mean) == (125.0, 25.0)
    assert found.utilisation == 300 / 400
    assert found.slowdown == (1.0 + 1.5) / 2
    assert (found.preemptions, found.wasted) == (0, 0.0)


def test_repeated_work_does_not_count_as_wait() -> None:
    found = result((job("a", 0, 100, 2), job("b", 10, 20, 2)), "1x2", "srtf").figures
    # a: 10 s, 20 s of wait, then 90 s and the 60 s that were lost.
    assert (found.jct.mean, found.wait.mean) == ((180 + 20) / 2, 10.0)
    assert (found.preemptions, found.wasted) == (1, 120.0)


def test_short_jobs_do_not_make_the_slowdown_explode() -> None:
    found = result((job("a", 0, 100), job("b", 0, 0)), "1x1", "fifo").figures
    assert found.slowdown == (1.0 + 10.0) / 2


def test_evenness_of_slowdowns() -> None:
    assert jain([2.0, 2.0, 2.0]) == 1.0
    assert jain([3.0, 0.0, 0.0]) == pytest.approx(1 / 3)
    assert evenness([("ada", 1.0), ("ada", 3.0)]) is None
    found = evenness([("ada", 1.0), ("ada", 3.0), ("bob", 6.0)])
    assert found is not None
    assert (found.worst, found.mean) == (6.0, 4.0)


def test_separate_pools_are_added_up() -> None:
    jobs = (job("a", 0, 100, tenant="x"), job("b", 0, 100, tenant="y"), job("c", 0, 10, tenant="y"))
    found = result(jobs, "x=1x1,y=1x1", "fifo").figures
    assert found.jct.mean == (100 + 100 + 110) / 3
    assert found.utilisation == pytest.approx(210 / 220)


def test_completion_together_over_completion_alone() -> None:
    jobs = (job("a", 0, 100, 2, tenant="x"), job("b", 1, 100, tenant="y"))
    groups = (Group(name="x", guaranteed=0), Group(name="y", guaranteed=1))
    found = result(jobs, "1x2", "fifo", *groups).figures
    assert found.finish_time is not None
    assert found.finish_time.by_tenant == {"y": 1.99}
    assert found.below_guarantee == 99.0


def test_a_tenant_alone_on_its_guaranteed_devices_has_its_own_nodes() -> None:
    jobs = (
        job("a", 0, 100, 2, tenant="x"),
        job("b", 1, 100, tenant="y"),
        job("c", 2, 50, tenant="y"),
        job("d", 3, 7, tenant="x"),
    )
    groups = (Group(name="x", guaranteed=2), Group(name="y", guaranteed=1))
    for policy in BASELINES:
        apart = result(jobs, "x=1x2,y=1x1", policy).figures
        assert result(jobs, "1x3", policy, *groups).figures.jct_alone == apart.jct
        assert apart.jct_alone is None


def test_without_a_value_for_one_tenant_there_is_no_total() -> None:
    jobs = (job("a", 0, 100, 2, tenant="x"), job("b", 1, 100, tenant="y"))
    groups = (Group(name="x", guaranteed=1), Group(name="y", guaranteed=1))
    found = result(jobs, "1x2", "fifo", *groups).figures
    assert found.finish_time is not None
    assert found.jct_alone is None


def test_whole_nodes_may_lack_alone_as_well() -> None:
    left = [job(f"left{n}", 0, 100 if n % 2 else 10, tenant="x") for n in range(4)]
    jobs = (*left, job("wide", 20, 10, 2, tenant="x"))
    found = result(jobs, "2x2", "fifo", Group(name="x", guaranteed=4)).figures
    assert found.below_guarantee == found.below_alone == 2 * 80


def test_without_guaranteed_quotas_there_is_no_comparison() -> None:
    found = result((job("a", 0, 100, tenant="x"),), "1x2", "fifo").figures
    assert (found.finish_time, found.tenants) == (None, None)
    assert (found.below_guarantee, found.below_alone, found.jct_alone) == (None, None, None)


def test_a_job_larger_than_the_guaranteed_quota_is_not_compared() -> None:
    jobs = (job("a", 0, 100, 2, tenant="x"), job("wide", 0, 10, 2, tenant="y"))
    runs = played(BASELINES["fifo"], jobs, site()).runs
    assert below_guarantee(runs, {"y": 1}) == 0.0
    assert below_guarantee(runs, {"y": 2}) == 200.0
