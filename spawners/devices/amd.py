"""The plug-in for AMD's GPUs and compute partitions.

The ROCm runtime shows a process the devices that ``ROCR_VISIBLE_DEVICES`` names; HIP then counts
only those. HIP also obeys ``CUDA_VISIBLE_DEVICES``, unless its own variable is set, so that all
three are set: https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...hub.interfaces.devices import ContainerDevices, DriverReport, EngineDevices
from ...hub.records.json_value import Json
from ...hub.scheduling.model.snapshot import Device
from . import amd_smi

EVERY_GPU: Final = "amd.com/gpu=all"
"""The name by which the AMD container toolkit describes all devices (CDI)."""


class AmdDevices:
    """``hub.interfaces.devices.DevicePlugin`` through AMD SMI and files of the kernel driver."""

    maker = "AMD"

    def list_devices(self) -> DriverReport:
        """Return what AMD SMI lists. Raises AmdSmiError if the driver fails."""
        return amd_smi.report()

    def environment(self, devices: Sequence[Device]) -> Mapping[str, str]:
        return {
            # Without a value, the runtime shows no device.
            "ROCR_VISIBLE_DEVICES": ",".join(device.id for device in devices),
            "HIP_VISIBLE_DEVICES": ",".join(map(str, range(len(devices)))) or "-1",
        }

    def in_container(self, devices: Sequence[Device], names: frozenset[str]) -> ContainerDevices:
        """Add the files of the devices, among which the compute interface is shared."""
        files = dict.fromkeys(file for device in devices for file in device.files)
        if not all(device.files for device in devices):
            raise ValueError("the machine has no /dev/kfd or no render node for the device")
        return ContainerDevices(files=tuple(files))

    def probe(self, engine: EngineDevices) -> ContainerDevices | None:
        """Request every GPU by name; the image must contain AMD SMI."""
        if EVERY_GPU not in engine.names:
            return None
        request: dict[str, Json] = {"Driver": "cdi", "DeviceIDs": [EVERY_GPU]}
        return ContainerDevices(requests=(request,))
