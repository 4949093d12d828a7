"""The devices of all nodes: what is asked of other machines, and when."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from carrel.hub.scheduling.model.snapshot import Device
from carrel.spawners.devices.inventory import DetectedDevice, NodeInventory
from carrel.spawners.docker.nodes import device_probe
from carrel.spawners.docker.nodes.devices import Devices
from carrel.spawners.docker.nodes.node import Node

FOUND = Device(id="GPU-1", node="far", index=0, model="NVIDIA H200", memory_bytes=1)


@dataclass
class FarNode:
    name: str = "far"
    here: bool = False
    engine: object = None

    def tools_image(self) -> str:
        return "sha256:1"


def test_two_readers_share_a_probe_of_another_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A probe removes the container of the one before it, which would then have failed."""
    begun, may_end = threading.Semaphore(0), threading.Event()

    def devices_on(*_: object) -> NodeInventory:
        begun.release()
        assert may_end.wait(30)
        return NodeInventory(found=(DetectedDevice(device=FOUND),))

    monkeypatch.setattr(device_probe, "devices_on", devices_on)
    devices = Devices((cast(Node, FarNode()),), "abc123", None, tmp_path)
    with ThreadPoolExecutor(2) as threads:
        listed = threads.submit(devices.inventory)
        assert begun.acquire(timeout=30)
        used = threads.submit(devices.activity)
        again = begun.acquire(timeout=0.5)
        may_end.set()
        assert (listed.result(30), [*used.result(30)]) == ((FOUND,), ["GPU-1"])
    assert not again
