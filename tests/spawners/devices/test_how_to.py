"""The plug-in of the how-to works as the page describes, against a stand-in for its driver."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.hub.scheduling.model.snapshot import Device, DeviceFile, Health
from carrel.spawners.devices.environment import container_devices, device_environment
from carrel.spawners.devices.inventory import DetectedDevice, DeviceInventory, NodeInventory
from carrel.spawners.devices.plugins import installed_plugins

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "device-plugins.md"
EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
ANNOUNCED = re.compile(r"```toml\n(.*?)```", re.DOTALL)
CARDS = [
    {"serial": "A-1", "index": 0, "product": "9", "memory_mib": 1024, "busy_percent": 12},
    {"serial": "A-2", "index": 1, "product": "9", "memory_mib": 1024, "busy_percent": 0},
]


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeviceInventory]:
    """Installs the example as pip does, with two accelerators of Acme."""
    page = PAGE.read_text(encoding="utf-8")
    (source,) = EXAMPLE.findall(page)
    (announced,) = ANNOUNCED.findall(page)
    (points,) = tomllib.loads(announced)["project"]["entry-points"].values()
    (tmp_path / "carrel_acme.py").write_text(source)
    metadata = tmp_path / "carrel_acme-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: carrel-acme\nVersion: 1\n")
    lines = ["[carrel.devices]", *(f"{name} = {value}" for name, value in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))

    for number in range(2):
        (tmp_path / f"acme{number}").touch()
    faults = {"A-1": 0, "A-2": 3}
    cards = [card | {"pids": [], "faults": faults[str(card["serial"])]} for card in CARDS]
    command = tmp_path / "acme-smi"
    command.write_text(f"#!/bin/sh\necho '{json.dumps(cards)}'\n")
    command.chmod(0o755)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("ACME_DEV", str(tmp_path))
    installed_plugins.cache_clear()
    own = tuple(each for each in installed_plugins() if each.name == "acme")
    yield DeviceInventory("here", plugins=lambda: own)
    installed_plugins.cache_clear()
    sys.modules.pop("carrel_acme", None)


def device(tmp_path: Path, number: int, **changes: object) -> Device:
    path = tmp_path / f"acme{number}"
    values: dict[str, object] = {
        "id": f"A-{number + 1}",
        "node": "here",
        "index": number,
        "model": "Acme 9",
        "memory_bytes": 1 << 30,
        "driver": "acme",
        "files": (DeviceFile(path=str(path), group=path.stat().st_gid),),
        **changes,
    }
    return Device(**values)  # type: ignore[arg-type]  # names and types are those above


def test_the_plug_in_of_the_page_lists_its_devices(acme: DeviceInventory, tmp_path: Path) -> None:
    first = device(tmp_path, 0)
    second = device(tmp_path, 1, health=Health.SICK, why="3 faults since the driver was loaded.")
    assert acme.read() == NodeInventory(
        found=(
            DetectedDevice(device=first, utilization=12, mean_utilization=12),
            DetectedDevice(device=second, utilization=0, mean_utilization=0),
        )
    )


def test_processes_and_containers_get_the_devices_of_the_plug_in(
    acme: DeviceInventory, tmp_path: Path
) -> None:
    first, second = device(tmp_path, 0), device(tmp_path, 1)
    environment = device_environment([first, second])
    assert environment["ACME_VISIBLE_DEVICES"] == "A-1,A-2"
    assert environment["CUDA_VISIBLE_DEVICES"] == ""
    assert device_environment([])["ACME_VISIBLE_DEVICES"] == "none"
    assert container_devices([second], frozenset()).files == second.files


def test_without_the_driver_of_the_plug_in_its_reason_is_known(
    acme: DeviceInventory, tmp_path: Path
) -> None:
    (tmp_path / "acme-smi").unlink()
    assert acme.read() == NodeInventory(reason="The Acme driver is not installed.")
