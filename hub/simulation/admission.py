"""What the quotas would have refused at once: it is left out of a replay, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ..errors import InvalidInput
from ..scheduling.model import Group
from ..scheduling.quota import Tree
from .jobs import Job, Trace
from .runs import group_of


def admitted(trace: Trace, groups: Iterable[Group]) -> Trace:
    """The trace without what admission would refuse for its time.

    What asks for more devices than anybody may have is none of this: that a quota fits none of
    the work that there was is an error of the quota.

    Raises:
        InvalidInput: nothing is left.
    """
    tree = Tree(groups)
    refused = Counter[str]()
    jobs: list[Job] = []
    for job in trace.jobs:
        why = _refusal(job, tree)
        if why is None:
            jobs.append(job)
        else:
            refused[why] += 1
    if not refused:
        return trace
    if not jobs:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in refused.items())
        raise InvalidInput(
            f"All of {trace.name} would be refused: {reasons}.",
            accepted="Quotas are accepted under which something may run.",
            field="quota",
        )
    return replace(trace, jobs=tuple(jobs), left_out={**trace.left_out, **refused})


def _refusal(job: Job, tree: Tree) -> str | None:
    """Rules 3 and 6 of ``scheduling.quota.admit``, for jobs that may be gangs or shares.

    Where a trace knows no time limits, that a job ran so long says that it needed as much.
    """
    seconds = job.seconds if job.limit is None else job.limit
    chain = tree.chain(group_of(job))
    for group in chain:
        if seconds > group.max_seconds:
            return f"asked for more time than {group.name} allows"
    for group in chain:
        if group.budget is not None and seconds * job.size > group.budget.device_seconds:
            return f"asked for more than the whole budget of {group.name}"
    return None
