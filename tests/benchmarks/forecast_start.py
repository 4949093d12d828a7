"""Forecasts with a long history and many jobs: ``python -m tests.benchmarks.forecast_start``.

One process: the service's predictor over a filled SQLite store, and a thread that asks for
forecasts meanwhile, as pages do. Each answer that has to wait for the predictor is counted.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from carrel.hub.forecasts.service import JobRunTimes
from carrel.hub.interfaces.store import Store
from carrel.hub.records.events import NewEvent
from carrel.hub.records.json_value import Json
from carrel.hub.runtime.progress_cache import ProgressCache
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.store import open_store
from carrel.hub.transitions import lifecycle

from ..contracts.store_kit import PROCESS, device
from . import filled_store

ENDED, QUEUED, RUNNING = 5_000, 5_000, 2_500
PEOPLE = [f"user{number:03}" for number in range(100)]
CELLS = 20
HASHES: list[Json] = [f"cell{number}" for number in range(CELLS)]


def main() -> int:
    with TemporaryDirectory() as folder:
        state = Path(folder)
        _fill(state)
        store = open_store(state / "carrel.db")
        run_times = JobRunTimes(
            store, time.time, ProgressCache(store), state / "model.json", threading.Event()
        )
        with _questions(run_times) as waited:
            load = _seconds(run_times.load)
        refreshes = [_seconds(run_times.refresh) for _ in range(3)]
        store.close()
    print(f"{ENDED} ended, {QUEUED} queued and {RUNNING} running jobs:")
    print(f"load: {load:.1f} s; longest wait of a forecast meanwhile: {max(waited):.2f} s")
    print("refreshes:", ", ".join(f"{each:.1f} s" for each in refreshes))
    return 0


def _fill(state: Path) -> None:
    devices = [f"D{number}" for number in range(RUNNING)]
    store = open_store(state / "carrel.db")
    store.put_group(Group(name="cs101", max_devices=RUNNING, max_devices_per_user=RUNNING))
    store.sync_devices("n1", [device(name, number) for number, name in enumerate(devices)])
    store.close()
    filled_store.fill(state, PEOPLE, devices, ended=ENDED)
    with closing(sqlite3.connect(state / "carrel.db")) as database, database:
        # Copies have the parameters of the first jobs.
        database.execute(
            "UPDATE requests SET job = json_set(job, '$.parameters.rate', number + 1), "
            "ended_at = submitted_at + 80 + number % 97"
        )
    first = 10 * ENDED + 10_000
    running = range(first, first + RUNNING)
    filled_store.queue(state, PEOPLE, running)
    filled_store.each(state, range(1), lambda store, _: _start(store, running, devices))
    filled_store.queue(state, PEOPLE, range(running.stop, running.stop + QUEUED))


def _start(store: Store, numbers: range, devices: Sequence[str]) -> None:
    """Start these jobs, each of which has run some of its cells."""
    now = time.time()
    starts = [
        Start(request_id=f"j-bench{number}", devices=(name,))
        for number, name in zip(numbers, devices, strict=True)
    ]
    events = [NewEvent(seq=1, at=now, kind="cells", data={"cells": CELLS, "hashes": HASHES})]
    for cell in range(1, CELLS):
        data: dict[str, Json] = {"number": cell, "seconds": 1.0}
        events.append(NewEvent(seq=2 * cell, at=now, kind="cell_started", data={"number": cell}))
        events.append(NewEvent(seq=2 * cell + 1, at=now, kind="cell_finished", data=data))
    for lease in store.grant(starts, now=now, lease_seconds=3600):
        store.launch(lease.id, now=now)
        store.apply_to_lease(lease.id, lifecycle.start, PROCESS, now=now)
        store.add_events(lease.id, events)


@contextmanager
def _questions(run_times: JobRunTimes) -> Iterator[list[float]]:
    """Ask for forecasts until the end of the block; yield the seconds that each took."""
    waited, over = [0.0], threading.Event()
    request = filled_store.made(0, PEOPLE)

    def ask() -> None:
        while not over.wait(0.01):
            waited.append(_seconds(lambda: run_times.forecast(request, time.time())))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield waited
    finally:
        over.set()
        asking.join()


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
