"""Read the GPUs that an engine can assign by name (CDI, the Container Device Interface)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....hub.records.json_value import Json
from ....hub.scheduling.model.snapshot import Device
from .client import DockerClient

GPU: Final = "nvidia.com/gpu"
EVERY_GPU: Final = f"{GPU}=all"


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
