"""Small traces and their replay."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from carrel.hub.simulation.policies.policy import Schedules, SimulatedSite
from carrel.hub.simulation.replay.event_loop import ReplayOutcome, simulate
from carrel.hub.simulation.replay.experiment import Experiment
from carrel.hub.simulation.replay.runtime_estimates import Known, parse_estimates
from carrel.hub.simulation.workload.formats import FORMATS
from carrel.hub.simulation.workload.jobs import Trace, TraceJob
from carrel.hub.simulation.workload.nodes import ONE_POOL, one_pool, parse_nodes
from carrel.hub.simulation.workload.reader import read_trace

from ...benchmarks.traces import WEEK, shared_file
from ...requirements import need


def job(name: str, at: float, seconds: float, devices: int = 1, **more: object) -> TraceJob:
    given: dict[str, object] = {"user": "", "tenant": "", **more}
    return TraceJob(id=name, submitted_at=at, seconds=seconds, devices=devices, **given)  # type: ignore[arg-type]


def site(nodes: int = 1, devices: int = 2, *, restart_cost: float = 0.0) -> SimulatedSite:
    return SimulatedSite(devices=one_pool(nodes, devices).pool(ONE_POOL), restart_cost=restart_cost)


def played(
    policy: Schedules,
    jobs: Sequence[TraceJob],
    place: SimulatedSite | None = None,
    expected: dict[str, float] | None = None,
) -> ReplayOutcome:
    told = {each.id: each.seconds for each in jobs} | (expected or {})
    return simulate(jobs, site=place or site(), policy=policy, estimator=Known(told))


def spans(outcome: ReplayOutcome) -> dict[str, list[tuple[float, float]]]:
    """Return when each job ran."""
    return {run.job.id: run.spans for run in outcome.runs}


def shared(name: str) -> Path:
    """Return the path of a published trace, which is not part of this project."""
    path = shared_file(name)
    need("traces", path.exists(), f"CARREL_SHARED names no folder with data/{name}")
    return path


def week_of_philly() -> Trace:
    """Return S1: 8,562 jobs of one virtual cluster within a week of 2017."""
    return read_trace(shared("philly_82k_jobs.csv.gz"), FORMATS["philly"], WEEK)


def approx(value: float, share: float) -> object:
    return pytest.approx(value, rel=share)


def drawn_experiment(count: int = 120, seed: int = 1) -> Experiment:
    """Jobs of three users that fill two nodes, some of which are submitted together."""
    drawn = random.Random(seed)  # noqa: S311
    jobs = tuple(
        job(
            f"j{number}",
            float(200 * (number // 2)),
            float(drawn.choice((60, 600, 3600))),
            drawn.choice((1, 2, 4, 12)),
            user=f"user{drawn.randrange(3)}",
        )
        for number in range(count)
    )
    return Experiment(
        trace=Trace(name="drawn", jobs=jobs),
        pools=parse_nodes("2x8").pools(),
        estimator=parse_estimates("lognormal:1.0", jobs, seed),
    )
