"""Jobs that request shares of devices: a day of Alibaba's pods on one node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from carrel.hub.simulation.policies import registry
from carrel.hub.simulation.policies.policy import Scheduler, Schedules, SimulatedSite
from carrel.hub.simulation.replay.experiment import Experiment, run
from carrel.hub.simulation.replay.runtime_estimates import parse_estimates
from carrel.hub.simulation.workload.formats import FORMATS
from carrel.hub.simulation.workload.job_run import Run
from carrel.hub.simulation.workload.jobs import Trace
from carrel.hub.simulation.workload.nodes import ONE_POOL, one_pool
from carrel.hub.simulation.workload.reader import Selection, read_trace

from ....schedulers import ForwardingScheduler
from ..kit import shared

DAY = Selection(since=12_590_124, until=12_712_750)
WHOLE = 1.0 + 1e-9


@dataclass
class Watched(ForwardingScheduler[Scheduler]):
    """A scheduler that records the maximum use of a device and the number of shared devices."""

    runs: list[Run] = field(default_factory=list)
    most: float = 0.0
    together: int = 0

    def submit(self, run: Run, now: float) -> None:
        self.runs.append(run)
        super().submit(run, now)

    def decide(self, now: float) -> Sequence[Run]:
        started = super().decide(now)
        held, holders = Counter[str](), Counter[str]()
        for each in self.runs:
            for device in each.placement.devices if each.placement else ():
                held[device] += each.job.share.compute if each.job.share else 1.0
                holders[device] += 1
        self.most = max(self.most, *held.values(), 0.0)
        self.together = max(self.together, *holders.values(), 0)
        return started


@dataclass
class Watching:
    """A policy whose scheduler is watched."""

    policy: Schedules
    seen: list[Watched] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def source(self) -> str:
        return self.policy.source

    def scheduler(self, site: SimulatedSite) -> Watched:
        self.seen.append(Watched(self.policy.scheduler(site)))
        return self.seen[-1]


@pytest.fixture(scope="module")
def day() -> Trace:
    """300 pods: 121 with a part of a GPU, two with two and one with eight."""
    return read_trace(shared("alibaba_openb_2023_pods.csv.gz"), FORMATS["openb"], DAY)


@pytest.mark.parametrize("name", ["fifo", "carrel"])
def test_no_device_is_overcommitted_and_every_pod_ends(day: Trace, name: str) -> None:
    assert Counter(job.devices for job in day.jobs) == {1: 297, 2: 2, 8: 1}
    assert sum(job.share is not None for job in day.jobs) == 121
    watching = Watching(registry.policy(name))
    experiment = Experiment(
        trace=day,
        pools={ONE_POOL: one_pool(1, 8).pool(ONE_POOL)},
        estimator=parse_estimates("history", day.jobs, 0),
    )
    result = run(experiment, watching)
    (outcome,), (watched,) = result.outcomes, watching.seen
    assert {each.job.id for each in outcome.runs} == {job.id for job in day.jobs}
    for each in outcome.runs:
        assert sum(end - start for start, end in each.spans) == pytest.approx(each.job.seconds)
    assert watched.most <= WHOLE
    assert watched.together > 1, "parts of one device were lent to several"
    assert 0 < result.figures.fragmentation < 1
