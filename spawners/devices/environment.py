"""Build the environment variables that name the devices of a lease.

They replace values set by users or images: ``NVIDIA_VISIBLE_DEVICES=all`` would expose every device
of the machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hub.scheduling.model.snapshot import Device


def readable(device: Device) -> str:
    """Return the device's display name: ``NVIDIA H200 #0``, ``Simulated GPU 0 (simulated)``."""
    if device.simulated:
        return f"{device.model} {device.index} (simulated)"
    return f"{device.model} #{device.index}"


def device_environment(devices: Sequence[Device]) -> dict[str, str]:
    """Return the variables that expose exactly these devices, or none if the sequence is empty.

    Devices are named by UUID, because an index depends on the enumeration. The NVIDIA container
    runtime rejects unknown ids, so simulated devices are left out of its variable.
    """
    real = [device.id for device in devices if not device.simulated]
    return {
        "CUDA_VISIBLE_DEVICES": ",".join(device.id for device in devices),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "NVIDIA_VISIBLE_DEVICES": ",".join(real) or "void",
        "CARREL_DEVICES": ", ".join(readable(device) for device in devices),
    }
