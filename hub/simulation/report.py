"""The figures as JSON, for whoever compares simulations by program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from .experiment import Experiment, Result
from .figures import Figures

Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How a comparison was asked for; whoever wants to see it again needs that.

    Attributes:
        where: texts that columns of the trace had to hold.
        since, until: moments of submission as they were typed; None where all were taken.
    """

    nodes: str
    estimates: str
    seed: int
    version: str
    where: Mapping[str, str] = field(default_factory=dict)
    since: str | None = None
    until: str | None = None


def report(experiment: Experiment, results: Sequence[Result], asked: Asked) -> Json:
    """All of it; times are seconds."""
    trace = experiment.trace
    return {
        "policies": {each.policy.name: _figures(each.figures) for each in results},
        "trace": {
            "name": trace.name,
            "where": dict(asked.where),
            "from": asked.since,
            "to": asked.until,
            "jobs": len(trace.jobs),
            "left_out": dict(trace.left_out),
            "skipped": [{"line": bad.number, "why": bad.why} for bad in trace.bad],
        },
        "nodes": asked.nodes,
        "seed": asked.seed,
        "estimates": asked.estimates,
        "restart_cost": experiment.restart_cost,
        "version": asked.version,
    }


def _figures(figures: Figures) -> Json:
    return {
        "jct": asdict(figures.jct),
        "wait": asdict(figures.wait),
        "utilisation": figures.utilisation,
        "slowdown": figures.slowdown,
        "preemptions": figures.preemptions,
        "wasted_device_seconds": figures.wasted,
        "fairness": {
            "finish_time": None if figures.finish_time is None else _finish_time(figures),
            "slowdown_of_tenants": None if figures.tenants is None else asdict(figures.tenants),
            "slowdown_of_users": None if figures.users is None else asdict(figures.users),
            "below_guarantee_device_seconds": figures.below_guarantee,
        },
        "fragmentation": figures.fragmentation,
    }


def _finish_time(figures: Figures) -> Json:
    found = figures.finish_time
    assert found is not None, "asked for only where it was measured"
    return {"worst": found.worst, "mean": found.mean, "by_tenant": dict(found.by_tenant)}
