"""When the jobs of a pipeline will have ended, on the present queue."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..records.requests import RequestRecord
from ..runtime.context import Context
from ..runtime.snapshots import SnapshotReader
from ..scheduling.cycle.graph_estimates import GraphJob, graph_ends
from ..scheduling.model.states import TERMINAL, State
from ..schemas import PipelineLinkOut
from ..schemas.requests import ExpectedEndOut

KEPT_SECONDS = 30.0
"""Seconds for which an expected end is shown again: it takes three simulations of the queue."""
_MOST_KEPT = 200

_Key = tuple[frozenset[tuple[str, State]], frozenset[tuple[str, str, str]]]


class ExpectedEnds:
    """Expected ends of pipelines, each kept until one of its jobs changes state or for a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, tuple[float, ExpectedEndOut | None]] = OrderedDict()

    def of(
        self,
        context: Context,
        found: Mapping[str, RequestRecord],
        links: Collection[PipelineLinkOut],
    ) -> ExpectedEndOut | None:
        """Return what ``expected_end`` says, or has said up to ``KEPT_SECONDS`` ago."""
        key = (
            frozenset((each.id, each.state) for each in found.values()),
            frozenset((each.first, each.then, each.kind) for each in links),
        )
        now = context.clock()
        with self._lock:
            at, kept = self._kept.get(key, (None, None))
        if at is not None and 0.0 <= now - at < KEPT_SECONDS:
            return kept
        end = expected_end(context, found, links)
        with self._lock:
            self._kept[key] = (now, end)
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return end


@dataclass(frozen=True, slots=True)
class _RunTime:
    """Seconds that a job will run, or will still run."""

    low: float
    typical: float
    high: float
    known: bool


def expected_end(
    context: Context, found: Mapping[str, RequestRecord], links: Collection[PipelineLinkOut]
) -> ExpectedEndOut | None:
    """Return the expected end of the jobs that have not ended; None where there is none.

    The interval extends from all jobs being short, while others end when they are expected to, to
    all jobs being long, while others use their whole time limits.
    """
    live = {name: each for name, each in found.items() if each.state not in TERMINAL}
    after: dict[str, set[str]] = {name: set() for name in live}
    for link in links:
        if link.then not in live or link.kind == "resumes":
            continue
        if link.first in live:
            after[link.then].add(link.first)
        elif link.kind == "ok" and found[link.first].state is not State.SUCCEEDED:
            return None
    now = context.clock()
    times = {name: _run_time(context, each, now) for name, each in live.items()}
    if not live:
        return None
    snapshot = SnapshotReader.of(context).snapshot(now)
    bounds = (
        {name: each.low for name, each in times.items()},
        {name: each.typical for name, each in times.items()},
        {name: each.high for name, each in times.items()},
    )
    ends = [
        graph_ends(
            snapshot,
            {name: GraphJob(after=frozenset(after[name]), seconds=seconds[name]) for name in live},
            now,
            others_to_limits=seconds is bounds[-1],
        )
        for seconds in bounds
    ]
    if any(each.keys() != live.keys() for each in ends):
        return None
    earliest, at, latest = (max(each.values()) for each in ends)
    return ExpectedEndOut(
        at=at,
        # A shorter job may let another request start first.
        earliest=min(earliest, at),
        latest=max(latest, at),
        unknown=sum(not each.known for each in times.values()),
    )


def _run_time(context: Context, record: RequestRecord, now: float) -> _RunTime:
    left = context.run_times.remaining(record, now)
    if left is not None:
        return _RunTime(left.low, left.seconds, left.high, known=left.runs > 0 or left.by_cells)
    found = context.run_times.forecast(record, now)
    if found is None or found.basis is None:
        return _RunTime(0.0, float(record.seconds), float(record.seconds), known=False)
    return _RunTime(found.low, found.seconds, found.high, known=True)
