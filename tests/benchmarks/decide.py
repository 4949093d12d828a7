"""How long a decision takes: ``python -m tests.benchmarks.decide``.

The scenario is a full pool with a long queue (``scenario``). One event at a time goes through
``step``: a submission, or the end of running work; a victim ends half a minute
later and is queued again. All times are CPU time.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from random import Random

from carrel.hub.config import garbage_collection
from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.cycle.incremental import (
    AllocationEnded,
    Delta,
    Event,
    RequestQueued,
    SchedulerState,
    step,
)
from carrel.hub.scheduling.explanation.explanation import explain
from carrel.hub.scheduling.model.snapshot import PendingRequest, Snapshot

from . import report
from .scenario import NOW, Scenario, Size

STEP_MS = 10.0
DECIDE_MS = 150.0
EXPLAIN_MS = 50.0
GRACE = 30.0
PERCENTILE = 0.99


class Days:
    """What happens one after the other, from a seed; it hears what every step decided."""

    def __init__(self, scenario: Scenario, snapshot: Snapshot, seed: int) -> None:
        self._scenario = scenario
        self._random = Random(seed)  # noqa: S311 - repeatable, and nothing is secret
        self._known = {request.id: request for request in snapshot.pending}
        self._back: dict[str, PendingRequest] = {}
        self._now = NOW
        self._ends = [
            (NOW + self._random.uniform(0, max(1.0, allocation.until - NOW)), allocation.request_id)
            for allocation in snapshot.allocations
        ]
        heapify(self._ends)

    def next(self, number: int) -> tuple[list[Event], float]:
        """Submissions and ends in turn: the queue keeps its length."""
        if number % 2 or not self._ends:
            self._now += 1.0
            request = self._scenario.request(self._now)
            self._known[request.id] = request
            return [RequestQueued(request=request)], self._now
        at, name = heappop(self._ends)
        self._now = max(self._now, at)
        events: list[Event] = [AllocationEnded(request_id=name)]
        if name in self._back:
            events.append(RequestQueued(request=self._back.pop(name)))
        return events, self._now

    def hear(self, delta: Delta) -> None:
        for start in delta.starts:
            seconds = self._random.uniform(0, self._known[start.request_id].seconds)
            heappush(self._ends, (self._now + seconds, start.request_id))
        stopped = {stop.request_id for stop in delta.stops}
        if stopped:
            self._ends = [each for each in self._ends if each[1] not in stopped]
            self._ends += ((self._now + GRACE, name) for name in stopped)
            heapify(self._ends)
        self._back |= {name: self._known[name] for name in stopped & self._known.keys()}


@contextmanager
def _at_rest() -> Iterator[None]:
    """What was made before does not count: a service keeps it for long as well."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def steps(size: Size, seed: int, events: int) -> list[float]:
    """CPU milliseconds of each event."""
    scenario = Scenario(seed, size)
    snapshot = scenario.snapshot()
    days = Days(scenario, snapshot, seed)
    scheduler = SchedulerState(snapshot, NOW)
    spent = []
    with _at_rest():
        for number in range(events):
            happened, now = days.next(number)
            began = time.process_time()
            scheduler, delta = step(scheduler, happened, now)
            spent.append((time.process_time() - began) * 1000)
            days.hear(delta)
    return spent


def decisions(size: Size, seed: int, times: int) -> list[float]:
    """CPU milliseconds of each whole decision about the same snapshot."""
    snapshot = Scenario(seed, size).snapshot()
    spent = []
    with _at_rest():
        for _ in range(times):
            began = time.process_time()
            decide(snapshot, NOW)
            spent.append((time.process_time() - began) * 1000)
    return spent


def percentile(values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(PERCENTILE * len(values)))]


def explanations(size: Size, seed: int, times: int) -> list[float]:
    """CPU milliseconds of explaining requests from all over the queue: the median of three each,
    so that what else the machine does then is not in the longest."""
    snapshot = Scenario(seed, size).snapshot()
    waits = decide(snapshot, NOW).waits
    groups = tuple(group.name for group in snapshot.groups[-2:])
    spent = []
    with _at_rest():
        for wait in waits[:: max(1, len(waits) // times)]:
            tries = []
            for _ in range(3):
                began = time.process_time()
                explain(snapshot, wait.request_id, NOW, waits=waits, groups=groups)
                tries.append((time.process_time() - began) * 1000)
            spent.append(statistics.median(tries))
    return spent


def main() -> int:
    options = report.parser(__doc__ or "")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--events", type=int, default=3000, help="steps (3000)")
    options.add_argument("--times", type=int, default=15, help="whole decisions (15)")
    options.add_argument("--requests", type=int, default=100, help="explanations (100)")
    chosen = options.parse_args()
    garbage_collection.raise_thresholds()  # As in what is measured.
    again = report.command_line(__spec__.name, *sys.argv[1:])
    size = Size()
    found = steps(size, chosen.seed, chosen.events)
    report.note(f"step: median {statistics.median(found):.2f} ms, longest {max(found):.1f} ms")
    told = explanations(size, chosen.seed, chosen.requests)
    report.note(f"explain: median {statistics.median(told):.1f} ms")
    rows = [
        report.Row(
            name="one event through step, 99th percentile",
            ours=percentile(found),
            unit="ms",
            goal=report.AtMost(limit=STEP_MS),
            command=again,
        ),
        report.Row(
            name=f"decide, {size.pending:,} queued on {size.devices:,} devices, median",
            ours=statistics.median(decisions(size, chosen.seed, chosen.times)),
            unit="ms",
            goal=report.AtMost(limit=DECIDE_MS),
            command=again,
        ),
        report.Row(
            name=f"explain, longest of {len(told)}",
            ours=max(told),
            unit="ms",
            goal=report.AtMost(limit=EXPLAIN_MS),
            command=again,
        ),
    ]
    return report.finish(rows, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
