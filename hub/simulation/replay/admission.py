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

WORDS: Mapping[Rule, str] = MappingProxyType(
    {
        Rule.UNKNOWN_GROUP: "asked in {group}, which has no way up to a group without a parent",
        Rule.DEVICES: "asked for no whole number of devices",
        Rule.SECONDS: "asked for no time",
        Rule.SECONDS_MAXIMUM: "asked for more time than {group} allows",
        Rule.GROUP_MAXIMUM: "asked for more devices than {group} may hold",
        Rule.USER_MAXIMUM: "asked for more devices than one member of {group} may hold",
        Rule.UNKNOWN_MODEL: "asked for a model that these nodes do not have",
        Rule.FORBIDDEN_MODEL: "asked for a model that {group} may not use",
        Rule.NEEDLESS_MODEL: "asked for a model and no device",
        Rule.NODE_MAXIMUM: "asked for more devices{of_model} than {nodes}{for_group}",
        Rule.BUDGET: "asked for more than the whole budget of {group}",
        Rule.PROMISED: "asked for more devices than {group} can have beside what others are "
        "promised",
        Rule.SESSIONS: "asked for a session with devices, and {group} allows none",
    }
)
"""What is said of the jobs that a rule rejects; every rule has an entry."""
_OF_SIZE = frozenset({Rule.GROUP_MAXIMUM, Rule.USER_MAXIMUM, Rule.NODE_MAXIMUM})
_TOO_FEW = "asked for more devices than these nodes have"
_LEAST_SECONDS = 1.0
"""Durations are cut to whole seconds: shorter jobs asked for some time too."""


def admitted(trace: Trace, pools: Pools, groups: Sequence[Group], *, gangs: bool) -> Trace:
    """The trace without jobs that the quotas and nodes would never let run.

    Where a trace has no time limits, the duration of a job counts as its limit.

    Args:
        groups: empty if nothing is limited; tenants that they do not name have no limits.
        gangs: a job larger than a node gets several, as in a trace; live it is rejected.

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
            f"All of {trace.name} would be refused: {reasons}.",
            accepted="Quotas and nodes are accepted under which something may run.",
            field="quota",
        )
    return replace(trace, jobs=left, left_out={**trace.left_out, **counted})


def _by_pool(jobs: Iterable[TraceJob], pools: Pools) -> dict[str, list[TraceJob]]:
    """The jobs of each pool, without tenants that have no nodes: those raise an error later."""
    found: dict[str, list[TraceJob]] = {}
    for job in jobs:
        pool = ONE_POOL if ONE_POOL in pools else job.tenant
        if pool in pools:
            found.setdefault(pool, []).append(job)
    return found


class _Admission:
    """Reasons for rejections on some devices, worded alike for many jobs."""

    def __init__(self, groups: Sequence[Group], devices: Sequence[Device], *, gangs: bool) -> None:
        self._nodes = "these nodes have" if gangs else "one node has"
        self._devices = len(devices)
        # Members of a gang may be on several nodes: treat all as one node.
        self._rules = AdmissionRules(
            groups, (replace(each, node="") for each in devices) if gangs else devices
        )

    def reason(self, job: TraceJob) -> str:
        """Empty where the job is admitted."""
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
        return WORDS[refusal.rule].format(
            group=refusal.group,
            of_model=" of a model" if job.model else "",
            nodes=self._nodes,
            for_group=for_group,
        )


def _refused(jobs: Iterable[TraceJob], admission: _Admission) -> Iterator[tuple[str, str]]:
    """Ids of rejected jobs, with the reason.

    Jobs that differ in time alone are decided together: one with a longer limit is rejected for the
    same rule or a later one.
    """
    alike: dict[Hashable, list[TraceJob]] = {}
    for job in jobs:
        alike.setdefault(_but_for_time(job), []).append(job)
    for each in alike.values():
        each.sort(key=_seconds)
        while each and (why := admission.reason(each[-1])):
            same = partial(_has_reason, admission, why)
            first = bisect_left(each, True, key=same)
            yield from ((job.id, why) for job in each[first:])
            del each[first:]


def _has_reason(admission: _Admission, why: str, job: TraceJob) -> bool:
    return admission.reason(job) == why


def _but_for_time(job: TraceJob) -> Hashable:
    return (group_of(job), job.devices, job.model, job.share, job.kind, job.preemptible)


def _seconds(job: TraceJob) -> float:
    return max(_LEAST_SECONDS, job.seconds if job.limit is None else job.limit)
