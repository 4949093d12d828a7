"""What a session on a cluster measures of itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points

import psutil
import pytest

from carrel.hub.interfaces.devices import DriverDevice
from carrel.hub.interfaces.session_meter import GROUP
from carrel.hub.scheduling.model.idleness import ActivityLevel
from carrel.spawners.slurm.session_meter import VALID_SECONDS, ThreadedSessionMeter, device_use

from ...fake_service import eventually
from ...hub.doubles import Clock

BUSY = "sum(n * n for n in iter(int, 1))"


def device(*pids: int, utilization: int | None = 0) -> DriverDevice:
    return DriverDevice(id="GPU-1", index=0, model="H100", pids=pids, utilization=utilization)


@pytest.fixture
def kernel() -> Iterator[subprocess.Popen[bytes]]:
    """A child that computes without end."""
    child = subprocess.Popen([sys.executable, "-c", BUSY])
    yield child
    child.kill()
    child.wait()


def test_the_work_of_descendants_counts_and_that_of_the_server_does_not(
    kernel: subprocess.Popen[bytes],
) -> None:
    meter = ThreadedSessionMeter(psutil.Process(), devices=list)
    meter.measure()

    def worked() -> bool:
        sum(range(100_000))  # the server is busy as well
        meter.measure()
        found = meter.latest()
        return found is not None and found.cpu_seconds > 0.2

    eventually(worked)
    kernel.kill()
    kernel.wait()
    meter.measure()
    before = meter.latest()
    begin = sum(os.times()[:2])
    while sum(os.times()[:2]) - begin < 0.2:
        sum(range(100_000))
    meter.measure()
    after = meter.latest()
    assert before is not None
    assert after is not None
    assert after.cpu_seconds - before.cpu_seconds < 0.1


def test_a_measurement_becomes_old() -> None:
    clock = Clock()
    meter = ThreadedSessionMeter(psutil.Process(), devices=list, clock=clock)
    assert meter.latest() is None
    meter.measure()
    assert meter.latest() is not None
    clock.pass_(VALID_SECONDS + 1)
    assert meter.latest() is None


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ([], ActivityLevel.QUIET),
        ([device(7, utilization=0)], ActivityLevel.QUIET),
        ([device(7, utilization=3)], ActivityLevel.WORKED),
        ([device(7, utilization=None)], ActivityLevel.UNKNOWN),
        ([device(7, utilization=None), device(8, utilization=1)], ActivityLevel.WORKED),
        # Another job's, which a cluster without device isolation shows as well.
        ([device(99, utilization=80), device(99, utilization=None)], ActivityLevel.QUIET),
    ],
)
def test_devices_work_where_a_process_of_the_session_is(
    devices: list[DriverDevice], expected: ActivityLevel
) -> None:
    assert device_use(devices, [7, 8]) is expected


def test_the_meter_is_found_by_its_name_and_measures_by_itself() -> None:
    (entry,) = entry_points(group=GROUP, name="slurm")
    meter = entry.load()()
    eventually(lambda: meter.latest() is not None)
