"""An experiment: the same trace on the same nodes under several policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import InvalidInput
from ...scheduling.model.snapshot import Device, Group
from ..policies.policy import Schedules, SimulatedSite
from ..workload.calendar import NO_DATES, Calendar
from ..workload.job_run import EVERYBODY, Run, group_of
from ..workload.jobs import Trace, TraceJob
from ..workload.nodes import ONE_POOL
from ..workload.quota_file import unlimited_group, with_gang_headroom, with_tenants
from .event_loop import ReplayOutcome, simulate, too_large
from .metrics import ReplayMetrics, below_guarantee, completion_alone, figures, finish_time
from .runtime_estimates import MakeEstimator

Pools = Mapping[str, Sequence[Device]]
"""The devices of tenants with their own nodes, or of all tenants under ``ONE_POOL``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """The inputs that are the same for all policies.

    Attributes:
        groups: the quota tree; tenants that it does not name have no limits.
        estimator: creates an estimator for every pool, so that none learns from another's future.
        calendar: terms and reservations of the site.
    """

    trace: Trace
    pools: Pools
    estimator: MakeEstimator
    groups: Sequence[Group] = ()
    restart_cost: float = 0.0
    calendar: Calendar = NO_DATES


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentResult:
    """The result of one policy."""

    policy: Schedules
    figures: ReplayMetrics
    outcomes: tuple[ReplayOutcome, ...]


def run(experiment: Experiment, policy: Schedules) -> ExperimentResult:
    """Simulate one policy in every pool.

    Raises:
        InvalidInput: there are no jobs, a tenant has no nodes, or a job can never start.
    """
    outcomes = replayed(experiment, policy)
    guaranteed = {group.name: group.guaranteed for group in experiment.groups}
    if ONE_POOL not in experiment.pools or not any(guaranteed.values()):
        return ExperimentResult(policy=policy, outcomes=outcomes, figures=figures(outcomes))
    alone = _alone(experiment, policy)
    return ExperimentResult(
        policy=policy,
        outcomes=outcomes,
        figures=figures(
            outcomes,
            finish_time=finish_time(outcomes, alone),
            below_guarantee=below_guarantee(_runs(outcomes), guaranteed),
            below_alone=below_guarantee(_runs(alone.values()), guaranteed),
            jct_alone=completion_alone(alone, {job.tenant for job in experiment.trace.jobs}),
        ),
    )


def replayed(experiment: Experiment, policy: Schedules) -> tuple[ReplayOutcome, ...]:
    """Simulate one policy in every pool, without its metrics.

    Raises:
        InvalidInput: as in ``run``.
    """
    return tuple(
        simulate(
            jobs,
            site=site_of(experiment, pool, jobs),
            policy=policy,
            estimator=experiment.estimator(),
        )
        for pool, jobs in _streams(experiment).items()
    )


def _runs(outcomes: Iterable[ReplayOutcome]) -> list[Run]:
    return [run for outcome in outcomes for run in outcome.runs]


def _streams(experiment: Experiment) -> dict[str, list[TraceJob]]:
    """Return the jobs of every pool, in the order of submission."""
    jobs = experiment.trace.jobs
    if not jobs:
        raise InvalidInput(
            f"No job of {experiment.trace.name} is left to simulate.",
            accepted="At least one job is needed: check --where, --from and --to.",
        )
    if ONE_POOL in experiment.pools:
        return {ONE_POOL: list(jobs)}
    streams: dict[str, list[TraceJob]] = {tenant: [] for tenant in experiment.pools}
    for job in jobs:
        if job.tenant not in streams:
            raise InvalidInput(
                f"The tenant {job.tenant!r} of {job.id} has no nodes.",
                accepted=f"Nodes were given to {', '.join(streams)}.",
                field="nodes",
            )
        streams[job.tenant].append(job)
    return streams


def site_of(experiment: Experiment, pool: str, jobs: Sequence[TraceJob]) -> SimulatedSite:
    """Return the site of one pool, with the quotas of its tenants."""
    devices = experiment.pools[pool]
    groups = groups_of_pool(experiment.groups, pool, devices, jobs)
    return SimulatedSite(
        devices=devices,
        groups=with_gang_headroom(groups, len(devices)) if _has_gangs(jobs) else groups,
        restart_cost=experiment.restart_cost,
        calendar=experiment.calendar,
    )


def groups_of_pool(
    groups: Iterable[Group], pool: str, devices: Sequence[Device], jobs: Iterable[TraceJob]
) -> tuple[Group, ...]:
    """Return the quota tree for one pool, with a group for every tenant."""
    found = with_tenants(groups, {group_of(job) for job in jobs}, len(devices))
    if pool == ONE_POOL:
        return found
    # A tenant with its own nodes is guaranteed all of them.
    return tuple(
        replace(group, guaranteed=len(devices)) if group.name == pool else group for group in found
    )


def _alone(experiment: Experiment, policy: Schedules) -> dict[str, ReplayOutcome]:
    """Simulate every tenant alone on the devices of its guaranteed quota, under the same policy.

    A tenant with a job larger than its guaranteed quota is left out.
    """
    guaranteed = {group.name: group.guaranteed for group in experiment.groups}
    by_tenant: dict[str, list[TraceJob]] = {}
    for job in experiment.trace.jobs:
        by_tenant.setdefault(job.tenant, []).append(job)
    found: dict[str, ReplayOutcome] = {}
    for tenant, jobs in by_tenant.items():
        name = tenant or EVERYBODY
        devices = experiment.pools[ONE_POOL][: guaranteed.get(name, 0)]
        if not devices or too_large(jobs, devices) is not None:
            continue
        groups = (replace(unlimited_group(name, len(devices)), guaranteed=len(devices)),)
        found[tenant] = simulate(
            jobs,
            site=SimulatedSite(
                devices=devices,
                groups=with_gang_headroom(groups, len(devices)) if _has_gangs(jobs) else groups,
                restart_cost=experiment.restart_cost,
            ),
            policy=policy,
            estimator=experiment.estimator(),
        )
    return found


def _has_gangs(jobs: Iterable[TraceJob]) -> bool:
    return any(job.gang is not None for job in jobs)
