"""Read what an engine says about devices: those that it gives by name (CDI), and its runtimes.

CDI is the Container Device Interface: https://github.com/cncf-tags/container-device-interface
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....hub.interfaces.devices import EngineDevices
from ....hub.records.json_value import Json
from ....hub.scheduling.model.snapshot import Device
from .client import DockerClient


def names(engine: DockerClient, devices: Sequence[Device]) -> frozenset[str]:
    """Return the names that this engine lists; it is queried only if a device is real."""
    if all(device.simulated for device in devices):
        return frozenset()
    return listed(engine.info())


def listed(info: Mapping[str, Json]) -> frozenset[str]:
    """Return the names in an engine's info; older engines list none."""
    discovered = info.get("DiscoveredDevices")
    if not isinstance(discovered, list):
        return frozenset()
    return frozenset(
        str(device["ID"]) for device in discovered if isinstance(device, Mapping) and "ID" in device
    )


def engine_devices(info: Mapping[str, Json]) -> EngineDevices:
    """Return what an engine's info says about devices."""
    runtimes = info.get("Runtimes")
    return EngineDevices(
        names=listed(info),
        runtimes=frozenset(runtimes) if isinstance(runtimes, Mapping) else frozenset(),
    )
