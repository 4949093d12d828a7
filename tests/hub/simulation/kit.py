"""Small traces and their replay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from carrel.hub.simulation.policies.policy import Schedules, SimulatedSite
from carrel.hub.simulation.replay.event_loop import ReplayOutcome, simulate
from carrel.hub.simulation.replay.runtime_estimates import Known
from carrel.hub.simulation.workload.formats import FORMATS
from carrel.hub.simulation.workload.jobs import Trace, TraceJob
from carrel.hub.simulation.workload.nodes import ONE_POOL, one_pool
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
