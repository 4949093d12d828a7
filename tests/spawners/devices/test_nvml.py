"""The inventory through pynvml, against a fake library."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from carrel.hub.interfaces.devices import NO_SIGNALS, DeviceSignals, DriverProblem
from carrel.hub.scheduling.model.snapshot import Device, Health
from carrel.spawners.devices.activity import device_signals
from carrel.spawners.devices.inventory import DetectedDevice, DeviceInventory, NodeInventory
from carrel.spawners.devices.plugins import installed_plugins
from carrel.spawners.devices.signals import parse_signals

from ...promises import in_time
from ..conftest import Driver

GIB = 1024**3


def read(timeout: float = 10.0) -> NodeInventory:
    """What NVIDIA's plug-in lists, on the node ``here``."""
    own = tuple(plugin for plugin in installed_plugins() if plugin.name == "nvidia")
    return DeviceInventory("here", timeout=timeout, plugins=lambda: own).read()


def gpu(number: int, **changes: object) -> Device:
    values: dict[str, object] = {
        "id": f"GPU-00000000-0000-0000-0000-{number:012}",
        "node": "here",
        "index": number,
        "model": "NVIDIA Fake",
        "memory_bytes": 80 * GIB,
        **changes,
    }
    return Device(**values)  # type: ignore[arg-type]  # names and types are those above


def test_whole_gpus_are_listed_with_uuid_model_and_memory(driver: Driver) -> None:
    driver(GPUS=2)
    assert read() == NodeInventory(
        found=(DetectedDevice(device=gpu(0)), DetectedDevice(device=gpu(1)))
    )


def test_a_gpu_in_mig_mode_is_listed_as_its_instances(driver: Driver) -> None:
    driver(GPUS=2, MIG="0:2")
    assert [found.device for found in read().found] == [
        gpu(
            slot,
            id=f"MIG-00000000-0000-0000-{slot:04}-000000000000",
            model="NVIDIA Fake MIG 1g.10gb",
            memory_bytes=10 * GIB,
        )
        for slot in range(2)
    ] + [gpu(1, index=2)]


def test_mig_mode_without_instances_is_reported(driver: Driver) -> None:
    driver(GPUS=1, MIG="0:0")
    assert read() == NodeInventory(reason="NVIDIA GPU 0 is in MIG mode and has no instances.")


def test_processes_are_those_of_each_unit(driver: Driver) -> None:
    driver(GPUS=2, MIG="0:2", PIDS="1:4711,100:4712")
    assert [found.pids for found in read().found] == [(4712,), (), (4711,)]


@pytest.mark.parametrize(
    ("behaviour", "health", "words"),
    [
        ({"RETIRED": "0"}, Health.SICK, "Retirement of memory pages"),
        ({"REMAP": "0:pending"}, Health.SICK, "needs a reset"),
        ({"REMAP": "0:failed"}, Health.SICK, "defective memory rows"),
        ({"ECC": "0:3"}, Health.SICK, "3 uncorrected memory errors"),
        ({"LOST": "0"}, Health.GONE, "fallen off the bus"),
    ],
)
def test_an_unhealthy_gpu_has_a_message_and_affects_no_other(
    driver: Driver, behaviour: dict[str, str], health: Health, words: str
) -> None:
    driver(GPUS=2, **behaviour)
    first, second = (found.device for found in read().found)
    assert (first.id, first.health) == (gpu(0).id, health)
    assert words in first.why
    assert second == gpu(1)


def failed(why: str) -> NodeInventory:
    return NodeInventory(problems=(DriverProblem(node="here", driver="nvidia", why=why),))


@pytest.mark.parametrize("code", [3, 4, 13], ids=["unsupported", "no permission", "unknown call"])
@pytest.mark.parametrize(
    ("reading", "changes"),
    [("memory", {"memory_bytes": 0}), ("name", {"model": "NVIDIA GPU"}), ("pids", {})],
)
def test_a_gpu_without_an_optional_reading_is_healthy(
    driver: Driver, reading: str, changes: dict[str, object], code: int
) -> None:
    driver(GPUS=2, MISSING=f"0:{reading}={code}")
    assert read() == NodeInventory(
        found=(DetectedDevice(device=gpu(0, **changes)), DetectedDevice(device=gpu(1)))
    )


def test_a_mig_instance_without_memory_readings_is_healthy(driver: Driver) -> None:
    driver(GPUS=1, MIG="0:1", MISSING="0:memory=4")
    (found,) = read().found
    assert (found.device.memory_bytes, found.device.health) == (0, Health.OK)


def test_a_gpu_without_uuid_is_reported_and_hides_no_other(driver: Driver) -> None:
    driver(GPUS=2, MISSING="0:uuid=4")
    inventory = read()
    assert [found.device for found in inventory.found] == [gpu(1)]
    assert inventory.reason.startswith("NVIDIA GPU 0 has no UUID that can be read: ")


@pytest.mark.parametrize(
    ("behaviour", "expected", "mean"),
    [
        ({}, None, None),
        ({"USE": "0:0"}, 0, 0.0),
        ({"USE": "0:37"}, 37, 37.0),
        ({"USE": "0:0", "SAMPLES": "0:12"}, 12, 4.0),
    ],
)
def test_utilization_is_the_maximum_and_the_mean_of_now_and_the_last_seconds(
    driver: Driver, behaviour: dict[str, str], expected: int | None, mean: float | None
) -> None:
    driver(**behaviour)
    (found,) = read().found
    assert (found.utilization, found.device.health) == (expected, Health.OK)
    assert found.mean_utilization == mean


def test_a_gpu_that_cannot_be_opened_is_left_out_and_reported(driver: Driver) -> None:
    driver(GPUS=2, NO_HANDLE="0")
    inventory = read()
    assert [found.device for found in inventory.found] == [gpu(1)]
    assert inventory.reason == "NVIDIA GPU 0 cannot be opened: GPU is lost."


def test_case_8_a_driver_that_hangs_times_out(driver: Driver) -> None:
    driver(HANG=1)

    def hangs() -> dict[str, float]:
        begin = time.monotonic()
        assert read(timeout=1) == failed("The NVIDIA driver did not answer within 1 s.")
        return {"given up": time.monotonic() - begin}

    in_time(hangs, {"given up": 5})


def test_case_8_a_machine_without_a_driver_has_no_devices_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", os.devnull)
    inventory = read()
    if inventory.found:
        pytest.skip("this machine has a driver")
    assert inventory.reason == "The NVIDIA driver is not installed."


def test_a_driver_that_is_not_loaded_is_not_an_error(driver: Driver) -> None:
    driver(INIT=9)
    assert read() == NodeInventory(reason="The NVIDIA driver is not loaded.")


def test_a_driver_that_fails_is_not_taken_for_a_machine_without_devices(driver: Driver) -> None:
    driver(INIT=18)
    (problem,) = read().problems
    assert problem.driver == "nvidia"
    assert problem.why.startswith("The NVIDIA driver could not be queried: RM has detected")


def test_the_condition_of_a_gpu_is_read_as_far_as_it_is_offered(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "kmsg"
    now = int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
    log.write_text(
        f"3,1,{now - 90_000_000},-;NVRM: Xid (PCI:0000:01:00): 48, pid=7, name=python\n"
        f"4,2,{now - 5_000_000},-;usb 1-1: new device\n"
        f"3,3,{now - 4_000_000},c;NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>'\n"
        " SUBSYSTEM=pci\n"
    )
    monkeypatch.setenv("CARREL_KERNEL_LOG", str(log))
    driver(GPUS=2, CLOCK="0:1410", THROTTLE="0:68", CELSIUS="0:81", MILLIWATTS="0:290500")
    driver(POWER_LIMIT="0:400000", LANES="0:16", REPLAYS="0:3", CORRECTED="0:12", USE="0:90")
    first, second = read().found
    assert device_signals([first]) == {
        gpu(0).id: DeviceSignals(
            utilization=90.0,
            clock_mhz=1410.0,
            throttled=("hardware thermal slowdown", "power cap"),
            temperature_celsius=81.0,
            power_watts=290.5,
            power_limit_watts=400.0,
            pcie_lanes=16.0,
            pcie_replays=3.0,
            corrected_errors=12.0,
            xids=(79,),
            logged_xids=((1, 48), (3, 79)),
        )
    }
    assert (first.device.health, second.signals) == (Health.OK, NO_SIGNALS)


def test_readings_that_are_no_number_are_left_out() -> None:
    written = {"clock_mhz": float("nan"), "pcie_lanes": True, "power_watts": "much", "xids": ["a"]}
    assert parse_signals({**written, "throttled": 3, "corrected_errors": 2}) == DeviceSignals(
        corrected_errors=2.0
    )
    assert parse_signals([1]) == NO_SIGNALS
