"""Jobs of the store as the runs from which run times are predicted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from ..insight.past_runs import PastRun, PlannedRun, Value
from ..records.json_value import Json
from ..records.requests import CauseCode, JobSpec, NewRequest, RequestRecord

TRIALS = "carrel.trials"
"""The number of trials of a sweep, among the parameters."""
_SAME_WORDS = 2
"""Program and script of a command; further arguments differ from run to run."""


def plan_of(request: NewRequest | RequestRecord, at: float) -> PlannedRun | None:
    """Return what is known of a job before it runs, at this time; None for what is no job.

    A job that resumes another does only a part of the work, and is no job of this kind.
    """
    job = request.job
    if job is None or job.resumes or job.continuation or job.gang is not None:
        return None
    return PlannedRun(
        at=at,
        owner=request.owner,
        group=request.group,
        program=_program(job),
        parameters=_parameters(job),
        model=request.model or "",
        devices=request.devices,
        image=request.image,
        limit=float(request.seconds),
    )


def plan_of_trial(request: NewRequest | RequestRecord, at: float) -> PlannedRun | None:
    """Return what is known of one trial of a sweep, as if it were a job; None for other jobs."""
    job = request.job
    if job is None or job.sweep is None:
        return None
    devices = request.devices // max(1, job.sweep.parallel)
    return plan_of(replace(request, devices=devices, job=replace(job, sweep=None)), at)


def past_run(ended: RequestRecord) -> PastRun | None:
    """Return the last attempt of a job that has ended; None if it has never run.

    Only a job that succeeded shows how long its work takes. Any other was stopped before, by its
    code, its owner, its time limit or the pool: what it ran is a lower bound.
    """
    lease = ended.lease
    if lease is None or ended.ended_at is None or ended.cause is None:
        return None
    plan = plan_of(ended, ended.submitted_at)
    if plan is None:
        return None
    return PastRun(
        plan=plan,
        ended_at=ended.ended_at,
        seconds=ended.ended_at - lease.granted_at,
        censored=ended.cause.code is not CauseCode.SUCCEEDED,
    )


def as_json(run: PastRun) -> dict[str, Json]:
    """Return a run as JSON, for the process that fits a model."""
    return asdict(run)


def from_json(values: Mapping[str, Any]) -> PastRun:
    """Load that form."""
    return PastRun(**{**values, "plan": PlannedRun(**values["plan"])})


def _program(job: JobSpec) -> str:
    if job.sweep is not None:
        return f"sweep {job.source_hash or job.notebook_name}"
    if job.source_hash or job.notebook_name:
        return job.source_hash or f"notebook {job.notebook_name}"
    return " ".join(["command", *job.command[:_SAME_WORDS]])


def _parameters(job: JobSpec) -> Mapping[str, Value]:
    found = {name: _value(value) for name, value in job.parameters.items()}
    if job.sweep is not None:
        found[TRIALS] = float(job.sweep.trials)
    return found


def _value(value: Json) -> Value:
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            return str(value)
        return number if math.isfinite(number) else str(value)
    return value if isinstance(value, str) else repr(value)
