"""Submitting into a long queue against an empty one: ``python -m tests.benchmarks.queue_depth``.

One process: the service's commands and SQLite store, and a loop that decides after every
submission in a thread beside them, with its rests. Pairs alternate; medians are compared.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from carrel.hub.commands import Commands
from carrel.hub.listing import Wanted
from carrel.hub.loop import Loop, rest_after
from carrel.hub.store import open_store
from carrel.spawners.fake import FakeBackend

from ..contracts.store_kit import job as stored_job
from ..hub.doubles import STUDENT1, STUDENT2, Clock, FakeHub, build, device
from ..hub.test_command_jobs import command
from . import report


def measure(depth: int, pairs: int) -> dict[str, float]:
    with TemporaryDirectory() as folder:
        sides = [_side(Path(folder) / str(n), n) for n in (0, depth)]
        times: list[list[float]] = [[], []]
        for _ in range(pairs):
            for side, spent in zip(sides, times, strict=True):
                commands, loop = side
                done = threading.Event()
                cycling = threading.Thread(target=_cycle, args=(loop, done))
                cycling.start()
                began = time.perf_counter()
                made = commands.submit_job(STUDENT1, command(devices=1))
                spent.append(time.perf_counter() - began)
                done.set()
                cycling.join()
                commands.cancel(STUDENT1, made.id)
        began = time.perf_counter()
        sides[1][0].find_requests(STUDENT1, Wanted(mine=True))
        page = time.perf_counter() - began
        for commands, loop in sides:
            loop.close()
            commands.store.close()
    empty, full = (statistics.median(spent) for spent in times)
    return {"depth": depth, "empty_s": empty, "full_s": full, "ratio": full / empty, "page_s": page}


def _side(folder: Path, depth: int) -> tuple[Commands, Loop]:
    folder.mkdir()
    clock = Clock()
    backend = FakeBackend(devices=(device(0),), clock=clock)
    commands = build(open_store(folder / "c.db"), backend, FakeHub(), clock, folder, devices=1)
    commands.submit_job(STUDENT2, command(devices=1))
    for number in range(depth):
        new = replace(stored_job(str(number), owner="student1"), group="cs101")
        commands.store.submit(new, clock())
    return commands, Loop(commands, node="local")


def _cycle(loop: Loop, done: threading.Event) -> None:
    while not done.is_set():
        loop.cycle()
        done.wait(max(0.01, rest_after(loop._deciding)))


def main() -> int:
    options = report.parser(__doc__ or "")
    options.add_argument("--depth", type=int, default=5000, help="queued jobs (5000)")
    options.add_argument("--pairs", type=int, default=30, help="submissions into each (30)")
    chosen = options.parse_args()
    found = measure(chosen.depth, chosen.pairs)
    command = report.command_line(__spec__.name)
    rows = [
        report.Row(
            name=f"submission into {chosen.depth} queued jobs, median",
            ours=found["full_s"] * 1000,
            unit="ms",
            goal=report.NotWorseThan(peer=found["empty_s"] * 1000, times=1.2),
            command=command,
        )
    ]
    return report.finish(rows, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
