"""The environment variables of a lease."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.errors import BackendFailed
from carrel.hub.scheduling.model.snapshot import Device
from carrel.spawners.devices.environment import device_environment
from carrel.spawners.devices.simulated import simulated_devices

HIDDEN = {"ROCR_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "-1"}
"""No devices of AMD."""
REAL = Device(id="GPU-1", node="n", index=0, model="NVIDIA H200", memory_bytes=1)
SLICE = Device(id="MIG-2", node="n", index=1, model="NVIDIA H200 MIG 1g.18gb", memory_bytes=1)
AMD = Device(
    id="GPU-ab", node="n", index=0, model="AMD Instinct MI300X", memory_bytes=1, driver="amd"
)


def test_real_devices_are_named_by_uuid() -> None:
    assert device_environment([REAL, SLICE]) == {
        **HIDDEN,
        "CUDA_VISIBLE_DEVICES": "GPU-1,MIG-2",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "NVIDIA_VISIBLE_DEVICES": "GPU-1,MIG-2",
        "CARREL_DEVICES": "NVIDIA H200 #0, NVIDIA H200 MIG 1g.18gb #1",
    }


def test_simulated_devices_are_marked_and_hidden_from_the_container_runtime() -> None:
    (device,) = simulated_devices("n", 1)
    assert device_environment([device]) == {
        **HIDDEN,
        "CUDA_VISIBLE_DEVICES": device.id,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "NVIDIA_VISIBLE_DEVICES": "void",
        "CARREL_DEVICES": "Simulated GPU 0 (simulated)",
    }


def test_without_devices_in_the_lease_no_device_is_visible() -> None:
    assert device_environment([]) == {
        **HIDDEN,
        "CUDA_VISIBLE_DEVICES": "",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "NVIDIA_VISIBLE_DEVICES": "void",
        "CARREL_DEVICES": "",
    }


def test_amd_devices_are_named_by_uuid_and_counted_from_zero_by_hip() -> None:
    assert device_environment([AMD, replace(AMD, id="GPU-cd", index=3)]) == {
        "ROCR_VISIBLE_DEVICES": "GPU-ab,GPU-cd",
        "HIP_VISIBLE_DEVICES": "0,1",
        # HIP also obeys the first of these where its own variable is missing.
        "CUDA_VISIBLE_DEVICES": "",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "NVIDIA_VISIBLE_DEVICES": "void",
        "CARREL_DEVICES": "AMD Instinct MI300X #0, AMD Instinct MI300X #3",
    }


def test_a_device_without_a_plug_in_cannot_be_used() -> None:
    with pytest.raises(BackendFailed, match="No plug-in for devices of the driver 'acme'"):
        device_environment([replace(REAL, driver="acme")])


def test_simulated_ids_are_stable_and_differ_between_nodes() -> None:
    first = [device.id for device in simulated_devices("n", 3)]
    assert first == [device.id for device in simulated_devices("n", 3)]
    assert len({*first, *(device.id for device in simulated_devices("m", 3))}) == 6
    assert all(name.startswith("SIM-") for name in first)
