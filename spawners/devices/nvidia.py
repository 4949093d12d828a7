"""The plug-in for NVIDIA's GPUs and MIG instances, and for simulated devices.

To programs, simulated devices look like NVIDIA's with ids that do not exist.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Final

from ...hub.interfaces.devices import ContainerDevices, DriverReport, EngineDevices
from ...hub.records.json_value import Json
from ...hub.scheduling.model.devices import Device

KIND: Final = "nvidia.com/gpu"
"""The kind of the devices that the NVIDIA container toolkit describes by name (CDI)."""
RUNTIME: Final = "nvidia"


class NvidiaDevices:
    """``hub.interfaces.devices.DevicePlugin`` through NVML and the NVIDIA container toolkit."""

    maker = "NVIDIA"

    def list_devices(self) -> DriverReport:
        """Return what NVML lists. Raises NVMLError if the driver fails."""
        if importlib.util.find_spec("pynvml") is None:
            reason = "The Python package nvidia-ml-py is not installed."
            return DriverReport(reason=reason, installed=False)
        from . import nvml  # noqa: PLC0415  # the package is optional

        return nvml.report()

    def environment(self, devices: Sequence[Device]) -> Mapping[str, str]:
        """Name devices by UUID, because an index depends on the enumeration.

        The NVIDIA container runtime rejects unknown ids, so simulated devices are left out of its
        variable; its default, or ``all``, would expose every device of the machine.
        """
        real = [device.id for device in devices if not device.simulated]
        return {
            "CUDA_VISIBLE_DEVICES": ",".join(device.id for device in devices),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "NVIDIA_VISIBLE_DEVICES": ",".join(real) or "void",
        }

    def in_container(self, devices: Sequence[Device], names: frozenset[str]) -> ContainerDevices:
        """Request devices and MIG instances by UUID, without simulated ones.

        By their CDI names if the engine lists all of them.
        """
        real = [device.id for device in devices if not device.simulated]
        if not real:
            return ContainerDevices()
        by_name = [f"{KIND}={name}" for name in real]
        if names.issuperset(by_name):
            return ContainerDevices(
                requests=(_by_name(by_name),),
                # The older hook must not add them a second time.
                environment={"NVIDIA_VISIBLE_DEVICES": "void"},
            )
        request: dict[str, Json] = {
            "Driver": "nvidia",
            "DeviceIDs": list(real),
            "Capabilities": [["gpu"]],
        }
        return ContainerDevices(requests=(request,))

    def probe(self, engine: EngineDevices) -> ContainerDevices | None:
        """Request every GPU, with the driver's management library only."""
        environment = {"NVIDIA_DRIVER_CAPABILITIES": "utility"}
        every_gpu = f"{KIND}=all"
        if every_gpu in engine.names:
            environment["NVIDIA_VISIBLE_DEVICES"] = "void"
            return ContainerDevices(requests=(_by_name([every_gpu]),), environment=environment)
        if RUNTIME not in engine.runtimes:
            return None
        environment["NVIDIA_VISIBLE_DEVICES"] = "all"
        request: dict[str, Json] = {"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu"]]}
        return ContainerDevices(requests=(request,), environment=environment)


def _by_name(names: Sequence[str]) -> dict[str, Json]:
    return {"Driver": "cdi", "DeviceIDs": list(names)}
