"""Forecasts of waits against outcomes on public traces: ``python -m tests.benchmarks.waits``.

A replay of Carrel's own policy. At the first decision after which a job is on the first page of the
queue its expected start is taken, as the service stores it, and compared with its first start. Run
times are expected from the last two similar jobs, as without a model. Peers predict the same waits
at the same moments: the mean of the last waits of the queue, and the delay of its head
(Ibrahim & Whitt, Real-time delay estimation based on delay history, M&SOM 11, 2009).
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.snapshot import Device
from carrel.hub.simulation.policies.carrel_policy import Carrel
from carrel.hub.simulation.policies.policy import SimulatedSite
from carrel.hub.simulation.replay.event_loop import simulate
from carrel.hub.simulation.replay.runtime_estimates import parse_estimates
from carrel.hub.simulation.workload.job_run import Run
from carrel.hub.simulation.workload.jobs import TraceJob
from carrel.hub.simulation.workload.nodes import parse_nodes
from carrel.hub.simulation.workload.quota_file import unlimited_group

from ..schedulers import ForwardingScheduler
from . import report
from .plays import HELIOS_NODES, HISTORY, KNOWN
from .traces import helios, week_of_philly, week_site

LAST_WAITS = 20
LEAST_SECONDS = 60.0
"""Waits are compared as ratios, and below this as equal."""
AGAIN = report.command_line("tests.benchmarks.waits")


@dataclass(frozen=True, slots=True)
class Forecast:
    """A wait in seconds from the forecast on, as each predictor expects it.

    Attributes:
        latest: the upper bound of ours.
    """

    at: float
    ours: float
    latest: float
    last_waits: float
    head: float


@dataclass
class Observed(ForwardingScheduler[Carrel]):
    """Carrel's scheduler, with a forecast of each wait."""

    found: dict[str, Forecast] = field(default_factory=dict)
    outcomes: list[tuple[Forecast, float]] = field(default_factory=list)
    _queued: dict[str, float] = field(default_factory=dict)
    _started: set[str] = field(default_factory=set)
    _last: deque[float] = field(default_factory=lambda: deque(maxlen=LAST_WAITS))

    def submit(self, run: Run, now: float) -> None:
        self._queued[run.job.id] = now
        super().submit(run, now)

    def decide(self, now: float) -> Sequence[Run]:
        started = super().decide(now)
        for run in started:
            self._note_start(run.job.id, now)
        if self._queued.keys() - self.found.keys():
            self._forecast(now)
        return started

    def _note_start(self, name: str, now: float) -> None:
        self._queued.pop(name, None)
        made = self.found.get(name)
        if made is not None and name not in self._started:
            self._started.add(name)
            self.outcomes.append((made, now - made.at))
            self._last.append(now - made.at)

    def _forecast(self, now: float) -> None:
        plan = decide(self.inner.snapshot(), now)
        head = now - min(self._queued.values())
        for wait in plan.waits:
            name, expected = wait.request_id, wait.estimate
            if expected is not None and name in self._queued and name not in self.found:
                self.found[name] = Forecast(
                    at=now,
                    ours=max(0.0, expected.at - now),
                    latest=max(0.0, expected.latest - now),
                    last_waits=fmean(self._last) if self._last else 0.0,
                    head=head,
                )


@dataclass(slots=True)
class ObservedPolicy:
    """Makes one scheduler, which is kept."""

    name: str = "carrel"
    source: str = "Carrel's policy, with a forecast of each wait."
    made: Observed | None = None

    def scheduler(self, site: SimulatedSite) -> Observed:
        self.made = Observed(Carrel(site))
        return self.made


def outcomes_of(jobs: Sequence[TraceJob], devices: Sequence[Device], estimates: str) -> Outcomes:
    """Return the forecasts of one replay with the seconds that each job has waited from then on."""
    policy = ObservedPolicy()
    tenants = dict.fromkeys(job.tenant for job in jobs if job.tenant)
    groups = tuple(unlimited_group(name, len(devices)) for name in tenants)
    site = SimulatedSite(devices=devices, groups=groups)
    estimator = parse_estimates(estimates, jobs, 0)()
    simulate(jobs, site=site, policy=policy, estimator=estimator)
    assert policy.made is not None
    return policy.made.outcomes


def relative_error(expected: float, seconds: float) -> float:
    """Return the difference as a share of the larger one, in percent."""
    longer = max(expected, seconds, LEAST_SECONDS)
    return 100 * abs(expected - seconds) / longer


Outcomes = list[tuple[Forecast, float]]

PREDICTORS: Mapping[str, Callable[[Forecast], float]] = {
    "ours": lambda made: made.ours,
    "mean of the last waits": lambda made: made.last_waits,
    "delay of the head": lambda made: made.head,
}


def rows(title: str, replay: Callable[[str], Outcomes]) -> list[report.Row]:
    """Return the figures of a trace; ``replay`` takes what run times are expected to be."""
    found, known = replay(HISTORY), replay(KNOWN)
    relative, absolute = {}, {}
    for name, predict in PREDICTORS.items():
        relative[name] = fmean(relative_error(predict(made), took) for made, took in found)
        absolute[name] = median(abs(predict(made) - took) / 60 for made, took in found)
    inside = fmean(made.ours <= took <= made.latest for made, took in found)
    early = fmean(took < made.ours for made, took in found)
    report.note(
        f"{title}: {len(found):,} waits, {median(took for _, took in found) / 60:,.1f} min at the "
        f"median; {inside:.1%} between the expected and the latest start, {early:.1%} before."
    )
    ideal = fmean(relative_error(made.ours, took) for made, took in known)
    return [
        report.Row(
            name=f"{title}: {figure}, beside {peer}",
            ours=values["ours"],
            unit=unit,
            goal=report.NotWorseThan(peer=values[peer], times=1.0),
            command=AGAIN,
        )
        for figure, unit, values in (
            ("mean relative error of waits", "%", relative),
            ("median absolute error of waits", "min", absolute),
        )
        for peer in list(PREDICTORS)[1:]
    ] + [
        report.Row(
            name=f"{title}: mean relative error with known run times, beside the last two",
            ours=ideal,
            unit="%",
            goal=report.Beside(peer=relative["ours"]),
            command=AGAIN,
        )
    ]


def main() -> int:
    options = report.parser(__doc__ or "")
    options.add_argument("--trace", choices=["philly", "helios"], action="append")
    given = options.parse_args()
    chosen = given.trace or ["philly", "helios"]
    made: list[report.Row] = []
    if "philly" in chosen:
        made += rows("a week of Philly", _of_philly)
    if "helios" in chosen:
        made += rows("Helios", _of_helios)
    return report.finish(made, as_json=given.json)


def _of_philly(estimates: str) -> Outcomes:
    return outcomes_of(week_of_philly().jobs, week_site().devices, estimates)


def _of_helios(estimates: str) -> Outcomes:
    """Return those of both virtual clusters, each of which has a pool of its own."""
    found: Outcomes = []
    for tenant, devices in parse_nodes(HELIOS_NODES).pools().items():
        jobs = tuple(job for job in helios().jobs if job.tenant == tenant)
        found += outcomes_of(jobs, devices, estimates)
    return found


if __name__ == "__main__":
    sys.exit(main())
