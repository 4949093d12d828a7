"""What a lease looks like from inside a process: the environment that names its devices.

These values replace whatever a person or an image has set: ``NVIDIA_VISIBLE_DEVICES=all``
opens every device of the machine otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hub.scheduling.model.snapshot import Device


def readable(device: Device) -> str:
    """The device's name for people: ``NVIDIA H200 #0``, ``Simulated GPU 0 (simulated)``."""
    if device.simulated:
        return f"{device.model} {device.index} (simulated)"
    return f"{device.model} #{device.index}"


def device_environment(devices: Sequence[Device]) -> dict[str, str]:
    """Exactly these devices, and none where the sequence is empty.

    Devices are named by UUID, since the index of a device depends on who counts. The NVIDIA
    container runtime refuses ids that it does not know, so it never hears of simulated ones.
    """
    real = [device.id for device in devices if not device.simulated]
    return {
        "CUDA_VISIBLE_DEVICES": ",".join(device.id for device in devices),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "NVIDIA_VISIBLE_DEVICES": ",".join(real) or "void",
        "CARREL_DEVICES": ", ".join(readable(device) for device in devices),
    }
