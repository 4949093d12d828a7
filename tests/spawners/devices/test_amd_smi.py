"""The devices that AMD SMI lists, against a fake library."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.interfaces.devices import (
    ContainerDevices,
    DriverDevice,
    DriverProblem,
    DriverReport,
    EngineDevices,
)
from carrel.hub.scheduling.model.snapshot import Device, DeviceFile, Health
from carrel.spawners.devices import amd_smi
from carrel.spawners.devices.amd import AmdDevices
from carrel.spawners.devices.inventory import DetectedDevice, DeviceInventory, NodeInventory
from carrel.spawners.devices.plugins import installed_plugins

from ..conftest import Driver

GIB = 1024**3

Report = Callable[[], DriverReport]


@pytest.fixture
def report(fake_amd_library: Path, amd_driver: Driver, tmp_path: Path) -> Report:
    """Lists the devices in this process."""
    (tmp_path / "dri").mkdir()
    for name in ("kfd", "dri/renderD128"):
        (tmp_path / name).touch()
    library = str(fake_amd_library / amd_smi.LIBRARY)
    return lambda: amd_smi.report(library=library, dev=tmp_path)


def gpu(number: int, **changes: object) -> DriverDevice:
    values: dict[str, object] = {
        "id": f"GPU-{0xAB00 + 16 * number:016x}",
        "index": number,
        "model": "AMD Instinct Fake",
        "memory_bytes": 192 * GIB,
        "used_bytes": GIB,
        **changes,
    }
    return DriverDevice(**values)  # type: ignore[arg-type]  # names and types are those above


def without_files(found: DriverReport) -> tuple[DriverDevice, ...]:
    return tuple(replace(device, files=()) for device in found.devices)


def through_a_child(timeout: float = 10.0) -> NodeInventory:
    """What the plug-in lists on the node ``here``, as the service queries it."""
    own = tuple(plugin for plugin in installed_plugins() if plugin.name == "amd")
    return DeviceInventory("here", timeout=timeout, plugins=lambda: own).read()


def failed(why: str) -> NodeInventory:
    return NodeInventory(problems=(DriverProblem(node="here", driver="amd", why=why),))


def test_the_service_lists_gpus_with_uuid_model_memory_and_processes(amd_driver: Driver) -> None:
    amd_driver(GPUS=1, PIDS="0:4711", USE="0:37")
    device = Device(
        id=gpu(0).id,
        node="here",
        index=0,
        model="AMD Instinct Fake",
        memory_bytes=192 * GIB,
        driver="amd",
    )
    found = DetectedDevice(
        device=device, pids=(4711,), utilization=37, mean_utilization=37, used_bytes=GIB
    )
    assert through_a_child() == NodeInventory(found=(found,))


def test_a_partitioned_gpu_is_listed_as_its_partitions(report: Report, amd_driver: Driver) -> None:
    amd_driver(GPUS=2, PARTITIONS="0:2", PIDS="101:4712")
    parts = [gpu(slot, id=f"GPU-{0xAB01 + slot:016x}", memory_bytes=24 * GIB) for slot in range(2)]
    assert without_files(report()) == (
        parts[0],
        replace(parts[1], pids=(4712,)),
        gpu(1, index=2),
    )


def test_a_container_needs_the_compute_interface_and_the_render_node_of_the_device(
    report: Report, amd_driver: Driver, tmp_path: Path
) -> None:
    amd_driver(GPUS=2)
    group = os.stat(tmp_path / "kfd").st_gid
    first, second = report().devices
    files = tuple(
        DeviceFile(path=str(tmp_path / name), group=group) for name in ("kfd", "dri/renderD128")
    )
    assert first.files == files
    assert second.files == (), "it has no render node"
    device = Device(
        id=first.id, node="n", index=0, model="", memory_bytes=0, driver="amd", files=first.files
    )
    twice = [device, replace(device, id="GPU-2")]
    assert AmdDevices().in_container(twice, frozenset()) == ContainerDevices(files=files)
    with pytest.raises(ValueError, match="no /dev/kfd"):
        AmdDevices().in_container([replace(device, files=())], frozenset())


def test_another_machine_is_asked_only_if_its_engine_gives_amd_devices_by_name() -> None:
    request = {"Driver": "cdi", "DeviceIDs": ["amd.com/gpu=all"]}
    named = EngineDevices(names=frozenset({"amd.com/gpu=all"}))
    assert AmdDevices().probe(EngineDevices()) is None
    assert AmdDevices().probe(named) == ContainerDevices(requests=(request,))


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ({"PAGES": "0:1"}, "Retirement of memory pages is pending"),
        ({"PAGES": "0:2"}, "cannot be retired"),
        ({"ECC": "0:3"}, "3 uncorrected memory errors"),
        ({"MISSING": "0:ecc=12"}, "The driver reports: fake error."),
    ],
)
def test_an_unhealthy_gpu_has_a_message_and_affects_no_other(
    report: Report, amd_driver: Driver, behaviour: dict[str, str], words: str
) -> None:
    amd_driver(GPUS=2, **behaviour)
    first, second = without_files(report())
    assert (first.id, first.health) == (gpu(0).id, Health.SICK)
    assert words in first.why
    assert second == gpu(1)


def test_a_page_that_was_retired_is_not_a_fault(report: Report, amd_driver: Driver) -> None:
    amd_driver(PAGES="0:0")
    assert without_files(report()) == (gpu(0),)


@pytest.mark.parametrize("code", [2, 3, 10, 40], ids=["unsupported", "later", "denied", "no data"])
@pytest.mark.parametrize(
    ("reading", "changes"),
    [
        ("memory", {"memory_bytes": 0, "used_bytes": 0}),
        ("name", {"model": "AMD GPU"}),
        ("pids", {}),
        ("ecc", {}),
        ("pages", {}),
    ],
)
def test_a_gpu_without_an_optional_reading_is_healthy(
    report: Report, amd_driver: Driver, reading: str, changes: dict[str, object], code: int
) -> None:
    amd_driver(GPUS=2, MISSING=f"0:{reading}={code}")
    assert without_files(report()) == (gpu(0, **changes), gpu(1))


@pytest.mark.parametrize(("percent", "expected"), [("0", 0), ("37", 37), ("65535", None)])
def test_utilization_is_that_of_the_compute_units(
    report: Report, amd_driver: Driver, percent: str, expected: int | None
) -> None:
    amd_driver(USE=f"0:{percent}")
    (found,) = report().devices
    assert found.utilization == expected


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ({"NO_SERIAL": "0"}, "AMD GPU 0 has no UUID."),
        ({"MISSING": "0:uuid=12"}, "AMD GPU 0 has no UUID that can be read: fake error."),
    ],
)
def test_a_gpu_without_uuid_is_reported_and_hides_no_other(
    report: Report, amd_driver: Driver, behaviour: dict[str, str], reason: str
) -> None:
    amd_driver(GPUS=2, **behaviour)
    assert without_files(report()) == (gpu(1),)
    assert report().reason == reason


def test_a_driver_that_is_not_loaded_is_not_an_error(report: Report, amd_driver: Driver) -> None:
    amd_driver(INIT=34)
    assert report() == DriverReport(reason="The AMD driver is not loaded.", installed=False)


def test_a_machine_without_the_library_has_no_devices_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", os.devnull)
    inventory = through_a_child()
    if inventory.found:
        pytest.skip("this machine has a driver")
    assert inventory.reason == "The AMD driver's management library (AMD SMI) is not installed."


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ({"INIT": "16"}, "The AMD driver could not be queried: fake error."),
        ({"CRASH": "1"}, "The AMD driver could not be queried: exit status -6."),
        ({"HANG": "1"}, "The AMD driver did not answer within 1 s."),
    ],
)
def test_a_driver_that_fails_is_not_taken_for_a_machine_without_devices(
    amd_driver: Driver, behaviour: dict[str, str], why: str
) -> None:
    amd_driver(**behaviour)
    assert through_a_child(timeout=1.0 if "HANG" in behaviour else 10.0) == failed(why)
