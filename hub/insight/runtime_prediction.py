"""Predict the run time of a job from similar jobs that its owner ran before."""

from __future__ import annotations

from itertools import islice

from ..interfaces.store import Store
from ..records.requests import JobSpec, RequestFilter, RequestRecord
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import State
from ..scheduling.queue.running_set import COUNTED, likely_seconds

_CONSIDERED = 50
_SAME_WORDS = 2
"""Program and script; further arguments differ from run to run."""


def expected_seconds(store: Store, owner: str, job: JobSpec, limit: int) -> float | None:
    """Return the likely seconds from the newest successful jobs, at most ``limit``; or None."""
    ended = store.requests(
        RequestFilter(
            owner=owner, kind=Kind.JOB, states=frozenset({State.SUCCEEDED}), limit=_CONSIDERED
        )
    )
    alike = (request for request in ended if request.job and _alike(request.job, job))
    ran = [_seconds(request) for request in islice(alike, COUNTED)]
    return min(float(limit), likely_seconds(ran)) if ran else None


def _alike(one: JobSpec, other: JobSpec) -> bool:
    if one.notebook_name or other.notebook_name:
        return one.notebook_name == other.notebook_name
    return one.command[:_SAME_WORDS] == other.command[:_SAME_WORDS]


def _seconds(ended: RequestRecord) -> float:
    """Return the run time of the last attempt, which is the one that succeeded."""
    began = ended.lease.granted_at if ended.lease else ended.submitted_at
    return max(0.0, (ended.ended_at or began) - began)
