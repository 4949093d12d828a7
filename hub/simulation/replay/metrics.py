"""Metrics of a replay; all times are seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from statistics import fmean

from ..workload.job_run import Run, group_of
from .event_loop import ReplayOutcome


@dataclass(frozen=True, slots=True, order=True)
class _Change:
    """Changes at one moment: devices held, and number of queued runs of a size.

    A gang that may start with fewer members counts with all wanted members while it is queued.
    """

    at: float
    held: float
    size: float
    waiting: int


def below_guarantee(runs: Iterable[Run], guaranteed: Mapping[str, int]) -> float:
    """Return the device-seconds of guaranteed quota that groups lacked for queued jobs."""
    by_group: dict[str, list[Run]] = {}
    for run in runs:
        by_group.setdefault(group_of(run.job), []).append(run)
    return sum(
        _lacked(by_group[group], most)
        for group, most in guaranteed.items()
        if most and group in by_group
    )


def _lacked(runs: list[Run], guaranteed: int) -> float:
    held = lacked = 0.0
    waiting = Counter[float]()
    changes = sorted(change for run in runs for change in _changes(run))
    for change, after in pairwise(changes):
        held += change.held
        waiting[change.size] += change.waiting
        if after.at > change.at:
            lacked += _owed(guaranteed - held, waiting) * (after.at - change.at)
    return lacked


def _owed(headroom: float, waiting: Mapping[float, int]) -> float:
    """Return the devices that queued runs could hold within the headroom, the smallest runs first.

    Runs that are larger than the remaining headroom are not counted.
    """
    owed = 0.0
    for size in sorted(size for size, count in waiting.items() if count):
        if size > headroom:
            break
        taken = size * min(waiting[size], headroom // size)
        owed += taken
        headroom -= taken
    return owed


def _changes(run: Run) -> Iterator[_Change]:
    size = run.job.size
    yield _Change(run.job.submitted_at, 0.0, size, 1)
    last = len(run.spans) - 1
    for number, ((began, ended), held) in enumerate(zip(run.spans, run.sizes, strict=True)):
        yield _Change(began, held, size, -1)
        yield _Change(ended, -held, size, 0 if number == last else 1)


SHORTEST = 10.0
"""Bound of the slowdown: shorter jobs count as if they ran this many seconds (Feitelson 1998)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Distribution of values; percentiles are values that occurred (nearest rank)."""

    mean: float
    median: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evenness:
    """Fairness of the mean slowdowns of users or tenants.

    Attributes:
        jain: Jain's index: 1 if all are equal, 1/n if one has all (Jain, Chiu and Hawe 1984).
    """

    worst: float
    mean: float
    jain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishTime:
    """Mean completion time in the shared pool over that alone on the guaranteed devices.

    Below 1, a tenant gains from sharing (Mahajan et al., Themis, NSDI 2020).
    """

    worst: float
    mean: float
    by_tenant: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayMetrics:
    """The metrics of one policy.

    Attributes:
        jct: job completion time, from submission to end.
        jct_alone: completion time with each tenant alone on its guaranteed devices; None without
            guaranteed quotas, or if a tenant could not be simulated alone.
        wait: the part of the completion time in which the job did not run, including waits after a
            stop.
        utilisation: fraction of all device-seconds between first submission and last end that were
            held.
        slowdown: mean of completion time over running time, bounded.
        wasted: device-seconds of work that was repeated after stops.
        below_guarantee: device-seconds of guaranteed quota that tenants lacked while they had
            queued jobs that would have fitted; None without guaranteed quotas.
        held_back: jobs that never ended; they count only in the utilization.
        below_alone: ``below_guarantee`` with each tenant alone on its own devices. There too a job
            may need whole nodes while the free devices are spread over many.
        tenants, users: None if the trace has fewer than two.
        finish_time: None without guaranteed quotas.
        fragmentation: fraction of the free device-seconds while jobs were queued: the next job
            could not use them.
    """

    jobs: int
    jct: Spread
    wait: Spread
    utilisation: float
    slowdown: float
    preemptions: int
    wasted: float
    fragmentation: float
    tenants: Evenness | None
    users: Evenness | None
    finish_time: FinishTime | None
    below_guarantee: float | None
    below_alone: float | None
    jct_alone: Spread | None = None
    held_back: int = 0


def figures(
    outcomes: Sequence[ReplayOutcome],
    *,
    finish_time: FinishTime | None = None,
    below_guarantee: float | None = None,
    below_alone: float | None = None,
    jct_alone: Spread | None = None,
) -> ReplayMetrics:
    """Return the metrics of all pools together; there is at least one job."""
    runs = [run for outcome in outcomes for run in outcome.runs]
    free = sum(outcome.free for outcome in outcomes)
    return ReplayMetrics(
        jobs=len(runs),
        jct=spread([completion(run) for run in runs]),
        wait=spread([completion(run) - run.job.seconds - run.again for run in runs]),
        utilisation=_utilisation(outcomes, runs),
        slowdown=fmean(slowdown(run) for run in runs),
        preemptions=sum(run.preemptions for run in runs),
        wasted=sum(run.lost for run in runs),
        fragmentation=sum(outcome.stranded for outcome in outcomes) / free if free else 0.0,
        tenants=evenness((run.job.tenant, slowdown(run)) for run in runs),
        users=evenness((run.job.user, slowdown(run)) for run in runs if run.job.user),
        finish_time=finish_time,
        below_guarantee=below_guarantee,
        below_alone=below_alone,
        jct_alone=jct_alone,
        held_back=sum(len(outcome.held_back) for outcome in outcomes),
    )


def completion_alone(alone: Mapping[str, ReplayOutcome], tenants: Set[str]) -> Spread | None:
    """Return the completion times of tenants alone; None unless every tenant could be simulated."""
    if not tenants <= alone.keys():
        return None
    return spread([completion(run) for outcome in alone.values() for run in outcome.runs])


def completion(run: Run) -> float:
    assert run.ended_at is not None, f"{run.job.id} has not ended"
    return run.ended_at - run.job.submitted_at


def slowdown(run: Run) -> float:
    return max(1.0, completion(run) / max(run.job.seconds, SHORTEST))


def spread(values: Sequence[float]) -> Spread:
    ordered = sorted(values)
    return Spread(
        mean=fmean(ordered),
        median=_rank(ordered, 0.5),
        p95=_rank(ordered, 0.95),
        p99=_rank(ordered, 0.99),
    )


def _rank(ordered: Sequence[float], share: float) -> float:
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def evenness(slowdowns: Iterable[tuple[str, float]]) -> Evenness | None:
    by_name: dict[str, list[float]] = {}
    for name, value in slowdowns:
        by_name.setdefault(name, []).append(value)
    if len(by_name) < 2:  # noqa: PLR2004  # a comparison needs two
        return None
    means = [fmean(values) for values in by_name.values()]
    return Evenness(worst=max(means), mean=fmean(means), jain=jain(means))


def jain(values: Sequence[float]) -> float:
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def finish_time(
    together: Sequence[ReplayOutcome], alone: Mapping[str, ReplayOutcome]
) -> FinishTime | None:
    """Return the finish time ratios; None if no tenant has guaranteed devices to compare with."""
    shared = _mean_completion(run for outcome in together for run in outcome.runs)
    ratios = {
        tenant: shared[tenant] / mean
        for tenant, outcome in alone.items()
        for mean in _mean_completion(outcome.runs).values()
        if mean and tenant in shared
    }
    if not ratios:
        return None
    return FinishTime(worst=max(ratios.values()), mean=fmean(ratios.values()), by_tenant=ratios)


def _mean_completion(runs: Iterable[Run]) -> dict[str, float]:
    by_tenant: dict[str, list[float]] = {}
    for run in runs:
        by_tenant.setdefault(run.job.tenant, []).append(completion(run))
    return {tenant: fmean(values) for tenant, values in by_tenant.items()}


def _utilisation(outcomes: Sequence[ReplayOutcome], runs: Sequence[Run]) -> float:
    began = min(run.job.submitted_at for run in runs)
    ended = max(run.job.submitted_at + completion(run) for run in runs)
    held_back = [run for outcome in outcomes for run in outcome.held_back if run.spans]
    if held_back:
        began = min(began, *(run.job.submitted_at for run in held_back))
        ended = max(ended, *(run.spans[-1][1] for run in held_back))
    capacity = sum(outcome.devices for outcome in outcomes) * (ended - began)
    return sum(run.used for run in (*runs, *held_back)) / capacity if capacity else 0.0
