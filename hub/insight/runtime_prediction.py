"""How long a job is expected to run: as long as those like it that its owner ran before."""

from __future__ import annotations

from itertools import islice

from ..interfaces.store import Store
from ..records.requests import JobSpec, RequestFilter, RequestRecord
from ..scheduling.model.snapshot import Kind
from ..scheduling.model.states import State
from ..scheduling.queue.running_set import COUNTED, likely_seconds

_LOOKED_AT = 50
_SAME_WORDS = 2
"""Program and script; what follows differs from run to run."""


def expected_seconds(store: Store, owner: str, job: JobSpec, limit: int) -> float | None:
    """As the newest that succeeded ran, at most its own time limit; None without any."""
    ended = store.requests(
        RequestFilter(
            owner=owner, kind=Kind.JOB, states=frozenset({State.SUCCEEDED}), limit=_LOOKED_AT
        )
    )
    alike = (each for each in ended if each.job is not None and _alike(each.job, job))
    ran = [_seconds(each) for each in islice(alike, COUNTED)]
    return min(float(limit), likely_seconds(ran)) if ran else None


def _alike(one: JobSpec, other: JobSpec) -> bool:
    if one.notebook_name or other.notebook_name:
        return one.notebook_name == other.notebook_name
    return one.command[:_SAME_WORDS] == other.command[:_SAME_WORDS]


def _seconds(ended: RequestRecord) -> float:
    """Of its last attempt, which is the one that came to the end."""
    began = ended.lease.granted_at if ended.lease else ended.submitted_at
    return max(0.0, (ended.ended_at or began) - began)
