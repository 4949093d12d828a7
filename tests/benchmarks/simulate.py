"""How fast the simulator is: ``python -m tests.benchmarks.simulate``.

`fifo` beside a bare event loop: the same week of a real trace in a few dozen lines of Python that
know nothing but first come, first served. All times are CPU seconds of one core.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush

from carrel.hub.config import garbage_collection
from carrel.hub.simulation.policies.policy import Schedules, SimulatedSite
from carrel.hub.simulation.policies.registry import policy
from carrel.hub.simulation.replay.event_loop import simulate
from carrel.hub.simulation.replay.metrics import completion
from carrel.hub.simulation.replay.runtime_estimates import parse_estimates
from carrel.hub.simulation.workload.jobs import Trace

from . import report
from .traces import NODE, WEEK_NODES, philly, philly_site, week_of_philly, week_site

GOLDEN = 113_909.0
"""Mean completion time of the week, strictly first come, by independent simulators."""
EXACT = 0.005
TIMES_BARE = 25.0
JOBS_A_SECOND = 20_000
CARREL_JOBS_A_SECOND = 2_000
_MICRO = 1e6


Plain = tuple[float, float, int]
"""When a job comes, how long it runs, and on how many devices."""


def bare(jobs: Sequence[Plain], nodes: int) -> float:
    """The mean completion time by an event loop without policy: the floor of what it costs."""
    free = [NODE] * nodes
    ends: list[tuple[float, int, list[tuple[int, int]]]] = []
    pending: deque[int] = deque()
    coming, total = 0, 0.0
    while coming < len(jobs) or ends:
        if ends and (coming == len(jobs) or ends[0][0] <= jobs[coming][0]):
            now, _, taken = heappop(ends)
            for node, count in taken:
                free[node] += count
        else:
            now = jobs[coming][0]
            pending.append(coming)
            coming += 1
        while pending:
            submitted_at, seconds, devices = jobs[pending[0]]
            found = _fit(devices, free)
            if found is None:
                break
            for node, count in found:
                free[node] -= count
            heappush(ends, (now + seconds, pending.popleft(), found))
            total += now + seconds - submitted_at
    return total / len(jobs)


def _fit(devices: int, free: list[int]) -> list[tuple[int, int]] | None:
    """Best fit on one node, or whole nodes and a rest on one more."""
    whole, rest = divmod(devices, NODE) if devices > NODE else (0, devices)
    found = []
    if whole:
        empty = [node for node, count in enumerate(free) if count == NODE]
        if len(empty) < whole:
            return None
        found = [(node, NODE) for node in empty[:whole]]
    if rest:
        used = {node for node, _ in found}
        fitting = [
            (count, node) for node, count in enumerate(free) if count >= rest and node not in used
        ]
        if not fitting:
            return None
        found.append((min(fitting)[1], rest))
    return found


def play(trace: Trace, chosen: Schedules, site: SimulatedSite) -> tuple[float, float]:
    """CPU seconds, and the mean completion time."""
    estimator = parse_estimates("lognormal:1.0", trace.jobs, 0)()
    began = time.process_time()
    outcome = simulate(trace.jobs, site=site, policy=chosen, estimator=estimator)
    spent = time.process_time() - began
    return spent, statistics.fmean(completion(run) for run in outcome.runs)


def fifo_rows(rounds: int, again: str) -> list[report.Row]:
    week = week_of_philly()
    plain = [(job.submitted_at, job.seconds, job.devices) for job in week.jobs]
    fifo, floor = list[float](), list[float]()
    for _ in range(rounds):
        began = time.process_time()
        mean = bare(plain, WEEK_NODES)
        floor.append(time.process_time() - began)
        spent, ours = play(week, policy("fifo"), week_site())
        fifo.append(spent)
        for name, found in (("bare loop", mean), ("fifo", ours)):
            if abs(found / GOLDEN - 1) > EXACT:
                sys.exit(f"The {name} has a mean completion time of {found:,.0f} s, not {GOLDEN}.")
    ours, peer = statistics.median(fifo), statistics.median(floor)
    return [
        report.Row(
            name=f"fifo, {len(week.jobs):,} jobs, median",
            ours=ours * 1000,
            unit="ms",
            goal=report.NotWorseThan(peer=peer * 1000, times=TIMES_BARE),
            command=again,
        ),
        report.Row(
            name=f"fifo, a job ({len(week.jobs) / ours:,.0f} jobs a second)",
            ours=ours / len(week.jobs) * _MICRO,
            unit="µs",
            goal=report.AtMost(limit=_MICRO / JOBS_A_SECOND),
            command=again,
        ),
    ]


def carrel_row(most: int | None, again: str) -> report.Row:
    trace = philly()
    site = philly_site(trace)
    trace = replace(trace, jobs=trace.jobs[:most])
    spent, _ = play(trace, policy("carrel"), site)
    jobs = len(trace.jobs)
    return report.Row(
        name=f"carrel, {jobs:,} jobs of Philly, a job ({jobs / spent:,.0f} jobs a second)",
        ours=spent / jobs * _MICRO,
        unit="µs",
        goal=report.AtMost(limit=_MICRO / CARREL_JOBS_A_SECOND),
        command=again,
    )


def main() -> int:
    options = report.parser(__doc__ or "")
    options.add_argument("--rounds", type=int, default=7, help="runs of fifo and bare loop (7)")
    options.add_argument("--most", type=int, help="only the first jobs of Philly (all)")
    chosen = options.parse_args()
    garbage_collection.raise_thresholds()  # As in what is measured.
    again = report.command_line(__spec__.name, *sys.argv[1:])
    rows = [*fifo_rows(chosen.rounds, again), carrel_row(chosen.most, again)]
    return report.finish(rows, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
