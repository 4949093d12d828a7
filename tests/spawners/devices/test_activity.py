"""Activity of leases and devices: CPU time of changing sets of processes, driver data."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from carrel.hub.interfaces.backend_settings import BackendSettings
from carrel.hub.records.leases import Handle
from carrel.hub.scheduling.model.idleness import ActivityLevel, DeviceActivity
from carrel.hub.scheduling.model.snapshot import Device
from carrel.spawners.devices.activity import (
    CpuTimes,
    ProcessCpuMeter,
    RunDelayMeter,
    cpu_seconds_between,
    device_activity,
)
from carrel.spawners.devices.inventory import DetectedDevice
from carrel.spawners.local.backend import LocalBackend
from carrel.spawners.processes.lease_processes import LEASE_VARIABLE, handle_of

from ...fake_service import eventually

A, B = Handle(pid=1, started_at=1.0), Handle(pid=2, started_at=2.0)


def spent(own: float, children: float = 0.0) -> CpuTimes:
    return CpuTimes(own=own, children=children)


@pytest.mark.parametrize(
    ("before", "now", "used"),
    [
        ({A: spent(5)}, {A: spent(7)}, 2.0),
        ({A: spent(5)}, {A: spent(5), B: spent(3)}, 3.0),
        # B ended, and its parent A has reaped it: only its new CPU time counts.
        ({A: spent(5), B: spent(10)}, {A: spent(5, 12)}, 2.0),
        ({A: spent(5), B: spent(10, 4)}, {A: spent(5, 14)}, 0.0),
        # B ended as an orphan.
        ({A: spent(5), B: spent(10)}, {A: spent(6)}, 1.0),
        # It started and ended between two samples.
        ({A: spent(5)}, {A: spent(5, 3)}, 3.0),
        ({}, {}, 0.0),
    ],
)
def test_cpu_time_between_two_samples(
    before: dict[Handle, CpuTimes], now: dict[Handle, CpuTimes], used: float
) -> None:
    assert cpu_seconds_between(before, now) == pytest.approx(used)


BURN = """
import sys, time
print(0, flush=True)
for line in sys.stdin:
    while time.process_time() < float(line): pass
    print(0, flush=True)
"""


@pytest.fixture
def burner() -> Iterator[subprocess.Popen[str]]:
    """A process that uses CPU until it reaches the given CPU seconds."""
    child = subprocess.Popen(
        [sys.executable, "-c", BURN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={LEASE_VARIABLE: "s-burns.1"},
    )
    assert child.stdout is not None
    child.stdout.readline()
    yield child
    child.kill()
    child.wait()


def burn(child: subprocess.Popen[str], until: float) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"{until}\n")
    child.stdin.flush()
    child.stdout.readline()


def test_the_cpu_time_of_a_lease_is_measured_until_its_end(
    burner: subprocess.Popen[str],
) -> None:
    backend = LocalBackend(BackendSettings(state=Path(), service_url="", simulated_devices=1))
    lease: dict[str, Handle | None] = {"s-burns.1": None}
    assert backend.activity(lease).cpu_seconds == {"s-burns.1": 0.0}
    burn(burner, 1.2)
    used = backend.activity(lease).cpu_seconds["s-burns.1"]
    assert 0.6 < used <= 1.3, "without what Python's own start took"
    assert backend.activity(lease).cpu_seconds["s-burns.1"] == pytest.approx(used, abs=0.1)
    assert backend.activity({}).cpu_seconds == {}
    assert backend.activity(lease).cpu_seconds == {"s-burns.1": 0.0}
    assert backend.activity({"s-nobody.1": None}).cpu_seconds == {}


def test_the_server_of_a_session_does_not_count(burner: subprocess.Popen[str]) -> None:
    process, meter = psutil.Process(burner.pid), ProcessCpuMeter()
    server = handle_of(process)
    assert meter.read("s-1", [process], server) == 0.0
    burn(burner, 0.5)
    assert meter.read("s-1", [process], server) == 0.0


def test_processes_that_share_a_core_wait_for_it() -> None:
    core = str(min(os.sched_getaffinity(0)))
    spin = [sys.executable, "-c", "while True: pass"]
    pair = [subprocess.Popen(["taskset", "-c", core, *spin]) for _ in range(2)]
    meter, members = RunDelayMeter(), [psutil.Process(each.pid) for each in pair]
    try:
        assert meter.read("j-1", members) == 0.0
        eventually(lambda: (meter.read("j-1", members) or 0.0) > 0.1)
        meter.forget_others(())
        assert meter.read("j-1", members) == 0.0
    finally:
        for each in pair:
            each.kill()
            each.wait()
    assert meter.read("j-1", members) is None


def test_simulated_devices_report_no_utilization() -> None:
    backend = LocalBackend(BackendSettings(state=Path(), service_url="", simulated_devices=1))
    (device,) = backend.inventory()
    assert backend.activity({}).devices == {
        device.id: DeviceActivity(
            name="Simulated GPU 0 (simulated)", use=ActivityLevel.NOT_MEASURED
        )
    }


@pytest.mark.parametrize(
    ("utilization", "pids", "use", "detail"),
    [
        (0, (), ActivityLevel.QUIET, ""),
        (1, (7,), ActivityLevel.WORKED, "1 process on it, 3 GiB of its memory in use"),
        # A kernel holds memory long after its last cell: memory is not activity.
        (0, (7, 8), ActivityLevel.QUIET, "2 processes on it, 3 GiB of its memory in use"),
        # The driver does not measure it (MIG): without processes it is idle.
        (None, (), ActivityLevel.QUIET, ""),
        (None, (7,), ActivityLevel.UNKNOWN, "1 process on it, 3 GiB of its memory in use"),
    ],
)
def test_the_activity_of_a_device_from_driver_data(
    utilization: int | None, pids: tuple[int, ...], use: ActivityLevel, detail: str
) -> None:
    device = Device(id="GPU-1", node="n", index=0, model="NVIDIA H200", memory_bytes=1 << 37)
    found = DetectedDevice(device=device, pids=pids, utilization=utilization, used_bytes=3 << 30)
    assert device_activity(found) == DeviceActivity(name="NVIDIA H200 #0", use=use, detail=detail)
