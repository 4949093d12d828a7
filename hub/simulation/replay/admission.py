"""Leave out and count the jobs of a trace that live admission would reject.

It uses the same admission rules as the live service, with the quotas and nodes of the replay,
before any policy runs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from ...errors import InvalidInput
from ...scheduling.explanation.admission_rules import AdmissionRules, Rule
from ...scheduling.model.snapshot import Device, Group
from ..workload.job_run import group_of
from ..workload.jobs import Trace, TraceJob
from ..workload.nodes import ONE_POOL
from .experiment import Pools, groups_of_pool

REASONS: Mapping[Rule, str] = MappingProxyType(
    {
        Rule.UNKNOWN_GROUP: "asked in {group}, whose parent groups are missing or form a circle",
        Rule.DEVICES: "asked for an invalid number of devices",
        Rule.SECONDS: "asked for an invalid time limit",
        Rule.SECONDS_MAXIMUM: "asked for more time than {group} allows",
        Rule.GROUP_MAXIMUM: "asked for more devices than {group} may hold",
        Rule.USER_MAXIMUM: "asked for more devices than one member of {group} may hold",
        Rule.UNKNOWN_MODEL: "asked for a model that these nodes do not have",
        Rule.FORBIDDEN_MODEL: "asked for a model that {group} may not use",
        Rule.NEEDLESS_MODEL: "asked for a model and no device",
        Rule.NODE_MAXIMUM: "asked for more devices{of_model} than {nodes}{for_group}",
        Rule.BUDGET: "asked for more than the whole budget of {group}",
        Rule.GUARANTEED_TO_OTHERS: "asked for more devices than {group} can have beside the "
        "guaranteed quotas of others",
        Rule.SESSIONS: "asked for a session with devices, and {group} allows none",
    }
)
"""Why jobs are left out, by the rule that rejects them; every rule has an entry."""
_OF_SIZE = frozenset({Rule.GROUP_MAXIMUM, Rule.USER_MAXIMUM, Rule.NODE_MAXIMUM})
_TOO_FEW = "asked for more devices than these nodes have"
_LEAST_SECONDS = 1.0
"""Shortest time limit: durations are cut to whole seconds, so that they may be 0."""


def admitted(trace: Trace, pools: Pools, groups: Sequence[Group], *, gangs: bool) -> Trace:
    """Return the trace without the jobs that the quotas and nodes would never allow to run.

    If the trace has no time limits, the duration of a job counts as its limit.

    Args:
        groups: empty if nothing is limited; tenants that they do not name have no limits.
        gangs: a job larger than a node gets several, as in a trace; the live service rejects it.

    Raises:
        InvalidInput: no job is left.
    """
    if gangs and not groups:
        return trace
    refused: dict[str, str] = {}
    for pool, jobs in _by_pool(trace.jobs, pools).items():
        devices = pools[pool]
        known = groups_of_pool(groups, pool, devices, jobs)
        refused.update(_refused(jobs, _Admission(known, devices, gangs=gangs)))
    if not refused:
        return trace
    counted = Counter(refused.values())
    left = tuple(job for job in trace.jobs if job.id not in refused)
    if not left:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in counted.items())
        raise InvalidInput(
            f"Admission would reject all jobs of {trace.name}: {reasons}.",
            accepted="Set quotas and nodes under which at least one job may run.",
            field="quota",
        )
    return replace(trace, jobs=left, left_out={**trace.left_out, **counted})


def _by_pool(jobs: Iterable[TraceJob], pools: Pools) -> dict[str, list[TraceJob]]:
    """Return the jobs of every pool, without tenants that have no nodes: those raise an error
    later."""
    found: dict[str, list[TraceJob]] = {}
    for job in jobs:
        pool = ONE_POOL if ONE_POOL in pools else job.tenant
        if pool in pools:
            found.setdefault(pool, []).append(job)
    return found


class _Admission:
    """Reasons for rejections on some devices, with the same text for similar jobs."""

    def __init__(self, groups: Sequence[Group], devices: Sequence[Device], *, gangs: bool) -> None:
        self._nodes = "these nodes have" if gangs else "one node has"
        self._devices = len(devices)
        # Members of a gang may be on several nodes: treat all as one node.
        self._rules = AdmissionRules(
            groups, (replace(each, node="") for each in devices) if gangs else devices
        )

    def reason(self, job: TraceJob) -> str:
        """Return why a job is rejected; empty if it is admitted."""
        refusal = self._rules.refusal(
            group=group_of(job),
            devices=job.devices,
            seconds=_seconds(job),
            kind=job.kind,
            preemptible=job.preemptible,
            model=job.model,
            share=job.share,
        )
        if refusal is None:
            return ""
        if refusal.rule in _OF_SIZE and job.devices > self._devices:
            # An unlimited group has the limits of the pool.
            return _TOO_FEW
        for_group = f" that {refusal.group} may use" if refusal.group else ""
        return REASONS[refusal.rule].format(
            group=refusal.group,
            of_model=" of a model" if job.model else "",
            nodes=self._nodes,
            for_group=for_group,
        )


def _refused(jobs: Iterable[TraceJob], admission: _Admission) -> Iterator[tuple[str, str]]:
    """Yield the ids of rejected jobs, with the reason.

    Jobs that differ only in time are decided together: a job with a longer limit is rejected by the
    same rule or a later one.
    """
    by_shape: dict[Hashable, list[TraceJob]] = {}
    for job in jobs:
        by_shape.setdefault(_without_time(job), []).append(job)
    for similar in by_shape.values():
        similar.sort(key=_seconds)
        while similar and (why := admission.reason(similar[-1])):
            same = partial(_has_reason, admission, why)
            first = bisect_left(similar, True, key=same)
            yield from ((job.id, why) for job in similar[first:])
            del similar[first:]


def _has_reason(admission: _Admission, why: str, job: TraceJob) -> bool:
    return admission.reason(job) == why


def _without_time(job: TraceJob) -> Hashable:
    return (group_of(job), job.devices, job.model, job.share, job.kind, job.preemptible)


def _seconds(job: TraceJob) -> float:
    return max(_LEAST_SECONDS, job.seconds if job.limit is None else job.limit)
