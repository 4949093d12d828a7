"""Submitting into a long queue against an empty one: ``python -m tests.benchmarks.queue_depth``.

One process: the service's commands and SQLite store, and the scheduling loop beside them as the
service runs it, woken by every submission. Bursts alternate; the medians of all submissions
are compared.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from carrel.hub.controller.loop import Loop
from carrel.hub.records.requests import JobSpec
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.pagination import RequestQuery
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.runtime.context import Context
from carrel.hub.store import open_store
from carrel.spawners.fake import FakeBackend

from ..contracts.store_kit import job as stored_job
from ..hub.doubles import STUDENT1, STUDENT2, Clock, FakeHub, build, device
from ..hub.requests.samples import command
from . import report

PAGE_MS = 100.0
"""What nobody notices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Seconds of each submission into the empty and into the long queue, and of each page."""

    empty: list[float]
    full: list[float]
    pages: list[float]


def measure(depth: int, pairs: int, burst: int) -> Found:
    found = Found(empty=[], full=[], pages=[])
    with TemporaryDirectory() as folder:
        sides = [(found.empty, *_side(Path(folder), 0)), (found.full, *_side(Path(folder), depth))]
        for pair in range(pairs):
            for spent, context, loop in sides if pair % 2 else reversed(sides):
                spent.extend(_burst(context, loop, burst))
            began = time.perf_counter()
            sides[1][1].find_requests(STUDENT1, RequestQuery(mine=True))
            found.pages.append(time.perf_counter() - began)
        for _, context, loop in sides:
            loop.close()
            context.store.close()
    return found


def _burst(context: Context, loop: Loop, count: int) -> list[float]:
    """Submit one after the other; what they took. Nothing of it is left in the queue."""
    made, spent = [], []
    with _cycling(context, loop):
        for _ in range(count):
            began = time.perf_counter()
            made.append(JobService(context).submit(STUDENT1, command(devices=1)))
            spent.append(time.perf_counter() - began)
    for request in made:
        RequestTermination(context).cancel(STUDENT1, request.id)
    return spent


@contextmanager
def _cycling(context: Context, loop: Loop) -> Iterator[None]:
    """The loop in an event loop of its own, in its first cycle when this begins."""
    running, over = threading.Event(), asyncio.Event()
    events = asyncio.new_event_loop()

    async def run() -> None:
        context.notifier.bind()
        cycles = asyncio.create_task(loop.run())
        running.set()
        await over.wait()
        cycles.cancel()
        await asyncio.gather(cycles, return_exceptions=True)

    thread = threading.Thread(target=lambda: events.run_until_complete(run()))
    thread.start()
    running.wait()
    try:
        yield
    finally:
        events.call_soon_threadsafe(over.set)
        thread.join()
        events.run_until_complete(events.shutdown_default_executor())
        events.close()


def _side(folder: Path, depth: int) -> tuple[Context, Loop]:
    folder = folder / str(depth)
    folder.mkdir()
    clock = Clock()
    backend = FakeBackend(devices=(device(0),), clock=clock)
    context = build(open_store(folder / "c.db"), backend, FakeHub(), clock, folder, devices=1)
    JobService(context).submit(STUDENT2, command(devices=1))
    loop = Loop(context, node="local")
    loop.cycle()  # the one device is taken from here on
    spec = JobSpec(notebook_name="", command=("true",))
    for number in range(depth):
        new = replace(stored_job(str(number), owner="student1"), group="cs101", job=spec)
        context.store.submit(new, clock())
    clock.pass_(1.0)
    loop.cycle()
    return context, loop


def main() -> int:
    options = report.parser(__doc__ or "")
    options.add_argument("--depth", type=int, default=5000, help="queued jobs (5000)")
    options.add_argument("--pairs", type=int, default=15, help="bursts into each (15)")
    options.add_argument("--burst", type=int, default=10, help="submissions of a burst (10)")
    chosen = options.parse_args()
    found = measure(chosen.depth, chosen.pairs, chosen.burst)
    again = report.command_line(__spec__.name)
    rows = [
        report.Row(
            name=f"submission into {chosen.depth:,} queued jobs, {name}",
            ours=of(found.full) * 1000,
            unit="ms",
            goal=report.NotWorseThan(peer=of(found.empty) * 1000, times=1.2),
            command=again,
        )
        for name, of in (("median", statistics.median), ("mean", statistics.mean))
    ]
    rows.append(
        report.Row(
            name=f"first 200 of {chosen.depth:,} queued jobs, median",
            ours=statistics.median(found.pages) * 1000,
            unit="ms",
            goal=report.AtMost(limit=PAGE_MS),
            command=again,
        )
    )
    return report.finish(rows, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
