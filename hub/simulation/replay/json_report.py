"""The metrics of an experiment as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from ...scheduling.model.text import plural
from .experiment import Experiment, ExperimentResult
from .metrics import Evenness, FinishTime, ReplayMetrics, Spread

Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentSetup:
    """The options of an experiment, needed to repeat it.

    Attributes:
        where: values that columns of the trace had to equal.
        since, until: times of submission as the user typed them; None for all.
    """

    nodes: str
    estimates: str
    seed: int
    version: str
    where: Mapping[str, str] = field(default_factory=dict)
    since: str | None = None
    until: str | None = None


def report(
    experiment: Experiment, results: Sequence[ExperimentResult], setup: ExperimentSetup
) -> Json:
    """Return the whole report; times are seconds."""
    trace = experiment.trace
    return {
        "policies": {each.policy.name: _figures(each.figures) for each in results},
        "trace": {
            "name": trace.name,
            "where": dict(setup.where),
            "from": setup.since,
            "to": setup.until,
            "jobs": len(trace.jobs),
            "left_out": dict(trace.left_out),
            "skipped": [{"line": bad.number, "why": bad.why} for bad in trace.bad],
        },
        "nodes": setup.nodes,
        "seed": setup.seed,
        "estimates": setup.estimates,
        "restart_cost": experiment.restart_cost,
        "version": setup.version,
    }


def _figures(figures: ReplayMetrics) -> Json:
    return {
        "jct": asdict(figures.jct),
        "wait": asdict(figures.wait),
        "utilisation": figures.utilisation,
        "slowdown": figures.slowdown,
        "preemptions": figures.preemptions,
        "wasted_device_seconds": figures.wasted,
        "fairness": {
            "finish_time": _known(figures.finish_time),
            "jct_alone": _known(figures.jct_alone),
            "slowdown_of_tenants": _known(figures.tenants),
            "slowdown_of_users": _known(figures.users),
            "below_guarantee_device_seconds": figures.below_guarantee,
            "below_guarantee_alone_device_seconds": figures.below_alone,
        },
        "fragmentation": figures.fragmentation,
        "held_back": figures.held_back,
    }


def _known(found: Evenness | FinishTime | Spread | None) -> Json | None:
    """Return a metric as JSON; None if it could not be measured."""
    return None if found is None else asdict(found)


def held_back_note(result: ExperimentResult) -> str:
    """Return a note about jobs that never ended; empty if all did."""
    count = result.figures.held_back
    if not count:
        return ""
    return (
        f"Under {result.policy.name}, {plural(count, 'job')} never ended: held by a budget "
        "without a later term, or by a reservation. All times are those of the other jobs."
    )
