"""How long a decision takes: ``python -m tests.benchmarks.decide``.

The scenario is a full pool with a long queue (``scenario``). One event at a time goes through
``step``: a submission, or the end of something that runs; what is asked back goes half a minute
later and is queued again. ``--growth`` prints the cost against the length of the queue and the
size of the pool instead.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from math import log
from random import Random

from carrel.hub.scheduling.cycle import decide
from carrel.hub.scheduling.model import Snapshot, Waiting
from carrel.hub.scheduling.standing import Delta, Event, Freed, Standing, Submitted, step

from . import report
from .scenario import NOW, Scenario, Size

STEP_MS = 10.0
DECIDE_MS = 150.0
GRACE = 30.0
PERCENTILE = 0.99
QUEUES = (100, 1_000, 10_000, 100_000)
POOLS = (10, 100, 1_000, 10_000)


class Days:
    """What happens one after the other, from a seed; it hears what every step decided."""

    def __init__(self, scenario: Scenario, snapshot: Snapshot, seed: int) -> None:
        self._scenario = scenario
        self._random = Random(seed)  # noqa: S311 - repeatable, and nothing is secret
        self._known = {request.id: request for request in snapshot.waiting}
        self._back: dict[str, Waiting] = {}
        self._now = NOW
        self._ends = [
            (NOW + self._random.uniform(0, max(1.0, holding.until - NOW)), holding.request_id)
            for holding in snapshot.holdings
        ]
        heapify(self._ends)

    def next(self, number: int) -> tuple[list[Event], float]:
        """Submissions and ends in turn: the queue keeps its length."""
        if number % 2 or not self._ends:
            self._now += 1.0
            request = self._scenario.request(self._now)
            self._known[request.id] = request
            return [Submitted(request=request)], self._now
        at, name = heappop(self._ends)
        self._now = max(self._now, at)
        events: list[Event] = [Freed(request_id=name)]
        if name in self._back:
            events.append(Submitted(request=self._back.pop(name)))
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
    """Milliseconds of each event."""
    scenario = Scenario(seed, size)
    snapshot = scenario.snapshot()
    days = Days(scenario, snapshot, seed)
    standing = Standing(snapshot, NOW)
    spent = []
    with _at_rest():
        for number in range(events):
            happened, now = days.next(number)
            began = time.perf_counter()
            standing, delta = step(standing, happened, now)
            spent.append((time.perf_counter() - began) * 1000)
            days.hear(delta)
    return spent


def decisions(size: Size, seed: int, times: int) -> list[float]:
    """Milliseconds of each whole decision about the same snapshot."""
    snapshot = Scenario(seed, size).snapshot()
    spent = []
    with _at_rest():
        for _ in range(times):
            began = time.perf_counter()
            decide(snapshot, NOW)
            spent.append((time.perf_counter() - began) * 1000)
    return spent


def percentile(values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(PERCENTILE * len(values)))]


def growth(sizes: Iterable[Size], of: str, seed: int) -> str:
    """Median milliseconds of ``decide``, and over n log n as much as at the smallest size."""
    lines = [f"| {of} | decide | over n log n |", "| ---: | ---: | ---: |"]
    first = 0.0
    for size in sizes:
        number = getattr(size, of)
        spent = statistics.median(decisions(size, seed, 3))
        each = spent / (number * log(number))
        first = first or each
        lines.append(f"| {number:,} | {spent:,.0f} ms | {each / first:.2f} |")
        report.note(lines[-1])
    return "\n".join(lines)


def main() -> int:
    options = report.parser(__doc__ or "")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--events", type=int, default=3000, help="steps (3000)")
    options.add_argument("--times", type=int, default=15, help="whole decisions (15)")
    options.add_argument("--growth", action="store_true", help="cost against size")
    chosen = options.parse_args()
    if chosen.growth:
        print(growth((Size(waiting=number) for number in QUEUES), "waiting", chosen.seed))
        print(growth((Size(devices=number) for number in POOLS), "devices", chosen.seed))
        return 0
    again = report.command_line(__spec__.name)
    size = Size()
    found = steps(size, chosen.seed, chosen.events)
    report.note(f"step: median {statistics.median(found):.2f} ms, longest {max(found):.1f} ms")
    rows = [
        report.Row(
            name="one event through step, 99th percentile",
            ours=percentile(found),
            unit="ms",
            goal=report.AtMost(limit=STEP_MS),
            command=again,
        ),
        report.Row(
            name=f"decide, {size.waiting:,} waiting on {size.devices:,} devices, median",
            ours=statistics.median(decisions(size, chosen.seed, chosen.times)),
            unit="ms",
            goal=report.AtMost(limit=DECIDE_MS),
            command=again,
        ),
    ]
    return report.finish(rows, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
