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
    """Changes at one moment: devices held, and queued runs of a size.

    A gang that may start with fewer members waits for all it wants.
    """

    at: float
    held: float
    size: float
    waiting: int


def below_guarantee(runs: Iterable[Run], guaranteed: Mapping[str, int]) -> float:
    """Device-seconds of guaranteed quota that groups lacked while they had jobs that would have
    fitted."""
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


def _owed(room: float, waiting: Mapping[float, int]) -> float:
    """What queued runs could hold within the guaranteed quota, the smallest first.

    One that is larger than what is left of it is not counted.
    """
    owed = 0.0
    for size in sorted(size for size, count in waiting.items() if count):
        if size > room:
            break
        taken = size * min(waiting[size], room // size)
        owed += taken
        room -= taken
    return owed


def _changes(run: Run) -> Iterator[_Change]:
    size = run.job.size
    yield _Change(run.job.submitted_at, 0.0, size, 1)
    last = len(run.spans) - 1
    for number, ((began, ended), held) in enumerate(zip(run.spans, run.sizes, strict=True)):
        yield _Change(began, held, size, -1)
        yield _Change(ended, -held, size, 0 if number == last else 1)


SHORTEST = 10.0
"""Bound of the slowdown: shorter jobs count as if they ran so many seconds (Feitelson 1998)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Distribution of values; percentiles are values that occurred (nearest rank)."""

    mean: float
    median: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evenness:
    """How similar the mean slowdowns of users, or tenants, are.

    Attributes:
        jain: 1 where all are equal, 1/n where one has all (Jain, Chiu and Hawe 1984).
    """

    worst: float
    mean: float
    jain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishTime:
    """Mean completion time in the shared pool over that alone on the guaranteed devices.

    Below 1, sharing pays (Mahajan et al., Themis, NSDI 2020).
    """

    worst: float
    mean: float
    by_tenant: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayMetrics:
    """The metrics of one policy.

    Attributes:
        jct: from submission to end.
        jct_alone: the same with each tenant alone on its guaranteed devices; None without
            guaranteed quotas, and where a tenant could not be alone.
        wait: the part of that time in which it did not run, including waits after a stop.
        utilisation: device-seconds held, of all between first submission and last end.
        slowdown: mean of completion time over running time, bounded.
        wasted: device-seconds of work that was repeated after stops.
        below_guarantee: device-seconds of guaranteed quota that tenants lacked while they had jobs
            that would have fitted; None without guaranteed quotas.
        held_back: jobs that never ended; they count only in the utilization.
        below_alone: what tenants lacked each alone on their own devices. There too a job may need
            whole nodes while free devices lie on many.
        tenants, users: None where the trace has fewer than two.
        finish_time: None without guaranteed quotas.
        fragmentation: of the free device-seconds, those while jobs were queued: the next one could
            not use them.
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
    """The metrics of all pools together; there is at least one job."""
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
    """None unless every tenant was alone: some of the jobs would not be comparable."""
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
    if len(by_name) < 2:  # noqa: PLR2004  # nothing to compare with
        return None
    means = [fmean(values) for values in by_name.values()]
    return Evenness(worst=max(means), mean=fmean(means), jain=jain(means))


def jain(values: Sequence[float]) -> float:
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def finish_time(
    together: Sequence[ReplayOutcome], alone: Mapping[str, ReplayOutcome]
) -> FinishTime | None:
    """None where no tenant has devices of its own to compare with."""
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
    there = sum(outcome.devices for outcome in outcomes) * (ended - began)
    return sum(run.used for run in (*runs, *held_back)) / there if there else 0.0
