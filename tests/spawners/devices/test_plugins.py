"""Plug-ins side by side: two makers on a machine, and plug-ins that fail."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from carrel.hub.errors import BackendFailed
from carrel.hub.records.diagnostics import Severity
from carrel.spawners.devices import doctor
from carrel.spawners.devices.environment import device_environment
from carrel.spawners.devices.inventory import ABSENT_SECONDS, DeviceInventory, NodeInventory
from carrel.spawners.devices.plugins import installed_plugins

from ...stores import new_store
from ..conftest import Driver

Install = Callable[[str, str], None]

ACME = """
from carrel.hub.interfaces.devices import DriverDevice, DriverReport

class Devices:
    maker = "Acme"
    def list_devices(self):
        {body}
    def environment(self, devices):
        if devices or {broken}:
            raise RuntimeError("out of order")
        return {{"ACME_VISIBLE_DEVICES": ""}}
"""
ONE_DEVICE = 'return DriverReport(devices=(DriverDevice(id="A-1", index=0, model="Acme 9"),))'


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package with one plug-in, for this process and its children."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def package(name: str, source: str) -> None:
        (tmp_path / f"carrel_{name}.py").write_text(source)
        folder = tmp_path / f"carrel_{name}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: carrel-{name}\nVersion: 1\n"
        )
        (folder / "entry_points.txt").write_text(
            f"[carrel.devices]\n{name} = carrel_{name}:Devices\n"
        )
        installed_plugins.cache_clear()
        installed.append(f"carrel_{name}")

    installed: list[str] = []
    yield package
    installed_plugins.cache_clear()
    for name in installed:
        sys.modules.pop(name, None)


def models(inventory: NodeInventory) -> list[str]:
    return sorted(found.device.model for found in inventory.found)


def problems(inventory: NodeInventory) -> dict[str, str]:
    return {each.driver: each.why for each in inventory.problems}


def test_a_machine_has_devices_of_several_makers(
    driver: Driver, amd_driver: Driver, install: Install
) -> None:
    driver(GPUS=1)
    amd_driver(GPUS=2)
    install("acme", ACME.format(body=ONE_DEVICE, broken=False))
    found = DeviceInventory("here").read()
    assert models(found) == ["AMD Instinct Fake", "AMD Instinct Fake", "Acme 9", "NVIDIA Fake"]
    assert (found.reason, found.problems) == ("", ())
    (finding,) = doctor.report(found)
    assert finding.what == "Devices of this machine: 2 AMD Instinct Fake, 1 Acme 9, 1 NVIDIA Fake."


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import nothing_of_this_name\n", "could not be loaded: ModuleNotFoundError"),
        ("def Devices(): ...\n", "could not be loaded: AttributeError"),
        (
            ACME.format(body='raise OSError("no answer")', broken=True),
            "The Acme driver could not be queried: no answer.",
        ),
        (
            ACME.format(body="return None", broken=True),
            "The Acme driver could not be queried: 'NoneType' object has no attribute",
        ),
        (
            ACME.format(body='print("hello"); import os; os._exit(0)', broken=True),
            "The Acme driver returned an invalid report",
        ),
    ],
    ids=["is not loaded", "is none", "raises", "returns nothing", "prints"],
)
def test_a_plug_in_that_fails_takes_no_other_devices_along(
    driver: Driver, install: Install, source: str, why: str
) -> None:
    driver(GPUS=1)
    install("acme", source)
    found = DeviceInventory("here").read()
    assert models(found) == ["NVIDIA Fake"]
    assert why in problems(found)["acme"]
    (nvidia,) = (each.device for each in found.found)
    environment = device_environment([nvidia])
    assert environment["CUDA_VISIBLE_DEVICES"] == nvidia.id
    assert "ACME_VISIBLE_DEVICES" not in environment
    _, finding = doctor.report(found)
    assert (finding.subject, finding.verdict) == ("devices (acme)", Severity.WARNING)
    assert why in finding.what


def test_a_driver_that_hangs_takes_no_other_devices_along(driver: Driver, install: Install) -> None:
    driver(GPUS=1)
    install("acme", ACME.format(body="import threading; threading.Event().wait()", broken=False))
    found = DeviceInventory("here", timeout=5).read()
    assert problems(found) == {"acme": "The Acme driver did not answer within 5 s."}
    assert models(found) == ["NVIDIA Fake"]


def test_a_driver_whose_query_cannot_be_started_takes_no_other_devices_along(
    driver: Driver, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver(GPUS=1)
    install("acme", ACME.format(body=ONE_DEVICE, broken=False))

    class Full(subprocess.Popen[str]):
        def __init__(self, words: Sequence[str], **options: Any) -> None:
            if "carrel_acme:Devices" in words:
                raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
            super().__init__(words, **options)

    monkeypatch.setattr(subprocess, "Popen", Full)
    found = DeviceInventory("here").read()
    assert models(found) == ["NVIDIA Fake"]
    assert problems(found) == {
        "acme": "The Acme driver could not be queried: Resource temporarily unavailable."
    }


UNUSABLE = {
    "no id": 'DriverDevice(id=None, index=0, model="Acme 9")',
    "a text for a number": 'DriverDevice(id="A-1", index="first", model="Acme 9")',
    "no model": 'DriverDevice(id="A-1", index=0, model="")',
    "a text for a process": 'DriverDevice(id="A-1", index=0, model="Acme 9", pids=("1",))',
}


@pytest.mark.parametrize("device", UNUSABLE.values(), ids=UNUSABLE)
def test_devices_that_cannot_be_stored_are_a_problem_of_their_driver(
    driver: Driver, install: Install, device: str
) -> None:
    driver(GPUS=1)
    install("acme", ACME.format(body=f"return DriverReport(devices=({device},))", broken=False))
    found = DeviceInventory("here").read()
    assert models(found) == ["NVIDIA Fake"]
    assert [*problems(found)] == ["acme"]
    with closing(new_store()) as store:
        store.sync_devices("here", [each.device for each in found.found])


def test_a_device_with_the_id_of_another_one_is_left_out(install: Install) -> None:
    twice = "return DriverReport(devices=2 * ONE)"
    one = 'ONE = (DriverDevice(id="A-1", index=0, model="Acme 9"),)\n'
    install("acme", ACME.format(body=twice, broken=False) + one)
    own = tuple(each for each in installed_plugins() if each.name == "acme")
    found = DeviceInventory("here", plugins=lambda: own).read()
    assert models(found) == ["Acme 9"]
    assert found.reason == "The Acme driver lists a device with the id A-1 of another one."


def test_a_device_whose_plug_in_fails_does_not_start_anything(install: Install) -> None:
    install("acme", ACME.format(body=ONE_DEVICE, broken=False))
    assert device_environment([])["ACME_VISIBLE_DEVICES"] == ""
    own = tuple(each for each in installed_plugins() if each.name == "acme")
    (acme,) = (each.device for each in DeviceInventory("here", plugins=lambda: own).read().found)
    with pytest.raises(
        BackendFailed, match="'acme' for devices failed: RuntimeError: out of order"
    ):
        device_environment([acme])


def test_a_driver_that_is_not_installed_is_queried_once_a_minute(install: Install) -> None:
    absent = 'return DriverReport(reason="No Acme driver.", installed=False)'
    install("acme", ACME.format(body=absent, broken=False))
    now = [0.0]
    own = tuple(each for each in installed_plugins() if each.name == "acme")
    inventory = DeviceInventory("here", plugins=lambda: own, clock=lambda: now[0])
    assert inventory.read() == NodeInventory(reason="No Acme driver.")
    module = Path(_file(own[0].target))
    module.write_text(ACME.format(body=ONE_DEVICE, broken=False))
    assert inventory.read() == NodeInventory(reason="No Acme driver.")
    now[0] = ABSENT_SECONDS
    assert models(inventory.read()) == ["Acme 9"]


def _file(target: str) -> str:
    module = __import__(target.partition(":")[0])
    assert module.__file__ is not None
    return module.__file__
