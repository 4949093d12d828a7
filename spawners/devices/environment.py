"""Build the environment variables and container settings that give a lease its devices.

They replace values set by users or images, and hide the devices of all makers that the lease does
not have: ``NVIDIA_VISIBLE_DEVICES=all`` would expose every device of the machine.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Final

from ...hub.errors import BackendFailed
from ...hub.interfaces.devices import ContainerDevices, DevicePlugin
from ...hub.scheduling.model.snapshot import Device
from .plugins import installed_plugins, plugin_of

log = logging.getLogger(__name__)

DEVICES_VARIABLE: Final = "CARREL_DEVICES"


def readable(device: Device) -> str:
    """Return the device's display name: ``NVIDIA H200 #0``, ``Simulated GPU 0 (simulated)``."""
    if device.simulated:
        return f"{device.model} {device.index} (simulated)"
    return f"{device.model} #{device.index}"


def device_names(devices: Sequence[Device]) -> str:
    """Return the value of ``DEVICES_VARIABLE``: the display names, separated by commas."""
    return ", ".join(readable(device) for device in devices)


def device_environment(devices: Sequence[Device]) -> dict[str, str]:
    """Return the variables that expose exactly these devices, or none if the sequence is empty.

    Raises:
        BackendFailed: a device has no plug-in, or its plug-in failed.
    """
    environment: dict[str, str] = {}
    for installed in installed_plugins():
        name = installed.name
        if installed.plugin is None or any(device.driver == name for device in devices):
            continue
        try:
            environment |= installed.plugin.environment(())
        except Exception as error:  # the code of a plug-in may raise anything
            # Its devices cannot be hidden, but the lease has other ones.
            log.warning("plug-in %r for devices: %s: %s", name, type(error).__name__, error)
    for driver, plugin, own in _by_plugin(devices):
        try:
            environment |= plugin.environment(own)
        except Exception as error:
            raise _failed(driver, error) from error
    return {**environment, DEVICES_VARIABLE: device_names(devices)}


def container_devices(devices: Sequence[Device], names: frozenset[str]) -> ContainerDevices:
    """Return what a container needs to use these devices.

    Args:
        names: the devices that the engine gives by name (CDI).

    Raises:
        BackendFailed: a device has no plug-in, or its plug-in failed.
    """
    together = ContainerDevices()
    for driver, plugin, own in _by_plugin(devices):
        try:
            found = plugin.in_container(own, names)
        except Exception as error:
            raise _failed(driver, error) from error
        together = ContainerDevices(
            files=(*together.files, *found.files),
            requests=(*together.requests, *found.requests),
            environment={**together.environment, **found.environment},
        )
    return together


def _by_plugin(devices: Sequence[Device]) -> Iterator[tuple[str, DevicePlugin, list[Device]]]:
    for driver in dict.fromkeys(device.driver for device in devices):
        own = [device for device in devices if device.driver == driver]
        yield driver, plugin_of(driver), own


def _failed(driver: str, error: Exception) -> BackendFailed:
    return BackendFailed(
        f"The plug-in {driver!r} for devices failed: {type(error).__name__}: {error}."
    )
