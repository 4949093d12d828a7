"""What it costs to measure the use of running leases, with real processes and a database on disk.

Each lease has a process with two children. The readings follow each other without a pause, while
the clock of the service advances by the interval that the sampler asks for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import psutil

from carrel.hub.controller.utilization import UtilizationSampler
from carrel.hub.interfaces.backend_settings import BackendSettings
from carrel.hub.records.leases import Handle
from carrel.hub.records.requests import NewRequest, RequestFilter
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Kind
from carrel.hub.store import open_store
from carrel.hub.transitions import lifecycle
from carrel.spawners.local.backend import LocalBackend

from ..hub.doubles import Clock, FakeHub, build
from . import report
from .report import AtMost, Row

LEASES, READINGS = (1, 8), 60
LIMIT_MILLICORES = 5.0
_PROGRAM = ["sh", "-c", "sleep 3600 & sleep 3600 & wait"]


def rows(found: dict[int, float], command: str) -> list[Row]:
    return [
        Row(
            name=f"readings of {number} running lease{'s' if number > 1 else ''}, for each lease",
            ours=found.get(number),
            goal=AtMost(limit=LIMIT_MILLICORES),
            unit="millicores",
            command=command,
        )
        for number in LEASES
    ]


def millicores(leases: int, folder: Path) -> float:
    """Return the processor time of the readings for each lease, in thousandths of a core."""
    with ExitStack() as stack:
        store = open_store(folder / "carrel.db")
        stack.callback(store.close)
        backend = LocalBackend(
            BackendSettings(state=folder, service_url="http://127.0.0.1:1", simulated_devices=2)
        )
        clock = Clock()
        context = build(store, backend, FakeHub(), clock, folder)
        for number in range(leases):
            stack.callback(_end, _start(context, clock, number, folder))
        sampler = UtilizationSampler(context)
        sampler.reconcile()
        spent = passed = 0.0
        for _ in range(READINGS):
            clock.pass_(sampler.every)
            passed += sampler.every
            before = time.thread_time()
            sampler.reconcile()
            spent += time.thread_time() - before
        (first, *_) = store.requests(RequestFilter())
        assert store.utilization(first.id)[0].series.summary.peak_memory_bytes
    return 1000 * spent / passed / leases


def main(words: Sequence[str]) -> int:
    options = report.parser("What it costs to measure running leases.").parse_args(words)
    command = report.command_line("tests.benchmarks.utilization", *words)
    found: dict[int, float] = {}
    for number in LEASES:
        with tempfile.TemporaryDirectory(prefix="carrel-utilization-") as folder:
            found[number] = millicores(number, Path(folder))
        report.note(f"{number} leases among {len(psutil.pids())} processes")
    return report.finish(rows(found, command), as_json=options.json)


def _start(context: Context, clock: Clock, number: int, folder: Path) -> subprocess.Popen[bytes]:
    store, now = context.store, clock()
    new = NewRequest(
        id=f"j-{number}",
        kind=Kind.JOB,
        owner="student1",
        group="cs101",
        devices=0,
        seconds=3600,
        idempotency_key=str(number),
    )
    store.submit(new, now)
    (lease,) = store.grant([Start(request_id=new.id, devices=())], now=now, lease_seconds=60)
    environment = {**os.environ, "CARREL_LEASE": lease.id, "CARREL_STATE": str(folder)}
    child = subprocess.Popen(_PROGRAM, env=environment, start_new_session=True)
    handle = Handle(pid=child.pid, started_at=psutil.Process(child.pid).create_time())
    store.launch(lease.id, now=now)
    store.apply_to_lease(lease.id, lifecycle.start, handle, now=now)
    return child


def _end(child: subprocess.Popen[bytes]) -> None:
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
