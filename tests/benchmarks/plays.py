"""Runs of a comparison: one trace under one policy that is told one thing, two at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from statistics import fmean
from types import MappingProxyType

from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.simulation.policies.policy import Policy, Schedules, by_predicted_service
from carrel.hub.simulation.policies.registry import policy
from carrel.hub.simulation.replay.experiment import Experiment, Pools, run
from carrel.hub.simulation.replay.metrics import ReplayMetrics
from carrel.hub.simulation.replay.runtime_estimates import parse_estimates
from carrel.hub.simulation.workload.jobs import Trace
from carrel.hub.simulation.workload.nodes import ONE_POOL, parse_nodes

from . import report
from .traces import RESTART_COST, helios, philly, philly_site, week_of_philly, week_site

PROCESSES = 2
KNOWN = "oracle"
DRAWN = "lognormal:1.0"
HISTORY = "history"
HELIOS_NODES = "vcvGl=20x8,vcvlY=2x8"

UNGUARANTEED = "philly, nothing guaranteed"
"""The same jobs in the same pool: all virtual clusters have equal shares of all of it."""
UNPROMISED = "philly, no quotas"
"""The same jobs in the same pool, all of one group: nothing is guaranteed, no share is used."""

QSSF_PASSING = Policy(name="qssf, greedy backfill", order=by_predicted_service, passes=True)
"""The order of `qssf`, without a reservation for the head of the queue."""
TOLD = frozenset({"qssf", "carrel", QSSF_PASSING.name})
"""The policies that look at estimates; for all others one run is enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """One run.

    Attributes:
        trace: `s1`, `philly`, `helios`, `UNGUARANTEED` or `UNPROMISED`.
        seed: of the errors that are drawn.
    """

    trace: str
    policy: str
    estimates: str = KNOWN
    seed: int = 0
    restart_cost: float = RESTART_COST


Found = Mapping[Play, ReplayMetrics]
Take = Callable[[ReplayMetrics], float]
"""One figure of a run."""


def plays_of(trace: str, name: str, estimates: str, seeds: range) -> tuple[Play, ...]:
    """All runs of which the mean is taken: one for each draw."""
    if name not in TOLD:
        return (Play(trace=trace, policy=name),)
    numbers = seeds if estimates == DRAWN else range(1)
    return tuple(Play(trace=trace, policy=name, estimates=estimates, seed=n) for n in numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What was found on one trace.

    Attributes:
        title: how the trace is called where figures are shown.
        seeds: of the draws whose mean is taken.
        again: the command that shows them again.
    """

    trace: str
    title: str
    found: Found
    seeds: range
    again: str

    def of(self, take: Take, name: str, estimates: str, trace: str = "") -> float:
        """The mean of all draws, on another trace where one is named."""
        plays = plays_of(trace or self.trace, name, estimates, self.seeds)
        return fmean(take(self.found[play]) for play in plays)

    def row(self, name: str, ours: float, unit: str, goal: report.Goal) -> report.Row:
        return report.Row(
            name=f"{self.title}, {name}", ours=ours, unit=unit, goal=goal, command=self.again
        )


def play_all(plays: Iterable[Play]) -> Found:
    """Each of them once."""
    found: dict[Play, ReplayMetrics] = {}
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        coming = {pool.submit(figures_of, play): play for play in dict.fromkeys(plays)}
        for done in as_completed(coming):
            play = coming[done]
            found[play] = done.result()
            report.note(f"{play.trace}: {play.policy}, {play.estimates}, seed {play.seed}")
    return found


def figures_of(play: Play) -> ReplayMetrics:
    trace, pools, groups = _SITES[play.trace]()
    experiment = Experiment(
        trace=trace,
        pools=pools,
        groups=groups,
        estimator=parse_estimates(play.estimates, trace.jobs, play.seed),
        restart_cost=play.restart_cost,
    )
    return run(experiment, _policy(play.policy)).figures


def _policy(name: str) -> Schedules:
    return QSSF_PASSING if name == QSSF_PASSING.name else policy(name)


Place = tuple[Trace, Pools, Sequence[Group]]


def _week() -> Place:
    return week_of_philly(), {ONE_POOL: week_site().devices}, ()


def _philly() -> Place:
    trace = philly()
    site = philly_site(trace)
    return trace, {ONE_POOL: site.devices}, site.groups


def _unguaranteed() -> Place:
    trace = philly()
    return trace, {ONE_POOL: philly_site(trace).devices}, ()


def _unpromised() -> Place:
    trace = philly()
    jobs = tuple(replace(job, tenant="") for job in trace.jobs)
    return replace(trace, jobs=jobs), {ONE_POOL: philly_site(trace).devices}, ()


def _helios() -> Place:
    layout = parse_nodes(HELIOS_NODES)
    return helios(), layout.pools(), ()


_SITES: Mapping[str, Callable[[], Place]] = MappingProxyType(
    {
        "s1": _week,
        "philly": _philly,
        UNGUARANTEED: _unguaranteed,
        UNPROMISED: _unpromised,
        "helios": _helios,
    }
)
