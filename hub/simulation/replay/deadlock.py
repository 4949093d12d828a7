"""Detection of jobs that never end: held by budgets or reservations, or an error otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...errors import InvalidInput
from ...scheduling.explanation.admission_rules import AdmissionRules
from ...scheduling.model.snapshot import Arrangement, Snapshot
from ...scheduling.model.text import plural
from ...scheduling.queue.cycle_state import CycleState
from ..policies.policy import Schedules, SimulatedSite
from ..workload.job_run import Run
from ..workload.jobs import TraceJob
from ..workload.usage import SimulatedBudgets

_SHORTEST_SECONDS = 1.0


def held_back_runs(
    runs: Sequence[Run], policy: Schedules, site: SimulatedSite, now: float
) -> tuple[Run, ...]:
    """Return the runs that budgets and reservations hold forever.

    Raises:
        InvalidInput: a run could not start even alone, no rule holds it, or no run ended.
    """
    waiting = [run for run in runs if run.ended_at is None]
    if not waiting:
        return ()
    alone = _EmptySite(site, now)
    for run in waiting:
        if why := alone.why_not(run):
            raise InvalidInput(
                f"{_never_started(policy, waiting)} {_named(run)} could not start even alone. "
                f"{why}",
                accepted="Set quotas under which every job could start alone.",
                field="quota",
            )
    budgets = SimulatedBudgets(site.groups, site.calendar.terms)
    for run in waiting:
        if not (site.calendar.reservations or budgets.never_again(run, now)):
            raise InvalidInput(
                f"{_never_started(policy, waiting)} {_named(run)} could start alone, and the "
                "policy does not start it.",
                accepted="Use a policy that starts every job that could start.",
                field="policy",
            )
    if len(waiting) == len(runs):
        raise InvalidInput(
            f"With {policy.name}, no job ended: budgets or reservations hold them all, and no "
            "term is known in which they could run.",
            accepted="Add the term with carrel term add, or set a budget by week.",
            field="quota",
        )
    return tuple(waiting)


def layout_rule(job: TraceJob) -> str:
    """Return how the devices of a gang, or of a job larger than a node, are placed on nodes."""
    if job.gang is None:
        return (
            "a job that is larger than a node gets whole nodes as large as the largest one, and "
            "the rest on one more"
        )
    if job.gang.arrangement is Arrangement.SPREAD:
        return "each member has a node of its own, with all of its devices"
    if job.gang.arrangement is Arrangement.NODE:
        return "all members are on one node"
    return "each member has all of its devices on one node"


def _never_started(policy: Schedules, waiting: Sequence[Run]) -> str:
    return f"With {policy.name}, {plural(len(waiting), 'job')} never started."


def _named(run: Run) -> str:
    return f"{run.request.id} of {run.request.group}"


class _EmptySite:
    """A site without running jobs."""

    def __init__(self, site: SimulatedSite, now: float) -> None:
        self._rules = AdmissionRules(site.groups, site.devices)
        # Members of a gang may be on several nodes: treat all as one node.
        self._gang_rules = AdmissionRules(
            site.groups, [replace(each, node="") for each in site.devices]
        )
        self._state = CycleState(
            Snapshot(devices=tuple(site.devices), groups=tuple(site.groups)), now
        )

    def why_not(self, run: Run) -> str:
        """Return why a run could not start, as a sentence; empty if it could.

        1. The admission rules reject it, with a time limit of a second: whether an admitted job
           starts does not depend on its time limit.
        2. Its devices are not on the nodes as it needs them.
        """
        request = run.request
        rules = self._gang_rules if request.gang else self._rules
        refusal = rules.refusal(
            group=request.group,
            devices=request.devices,
            seconds=_SHORTEST_SECONDS,
            kind=request.kind,
            preemptible=request.preemptible,
            model=request.model,
            share=request.share,
        )
        if refusal is not None:
            return refusal.message
        if any(self._state.pool.could_fit(each) for each in self._state.variants(request)):
            return ""
        how = layout_rule(run.job) if request.gang else "none of them has a share of that size"
        return f"The devices that it may use cannot hold it: {how}."
