"""Collect the devices and images of all nodes; the last ones of a node that does not answer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ....hub.errors import BackendFailed, Unavailable
from ....hub.interfaces.devices import DeviceSignals, DriverProblem, ValidationReading
from ....hub.records.images import Image
from ....hub.records.utilization import DeviceReading
from ....hub.scheduling.model.idleness import DeviceActivity
from ....hub.scheduling.model.snapshot import Device
from ...devices.activity import (
    device_activity,
    device_readings,
    device_signals,
    simulated_activity,
    simulated_signals,
)
from ...devices.foreign_processes import ForeignProcesses
from ...devices.inventory import DeviceInventory, NodeInventory
from ...devices.plugins import installed_plugins
from ...devices.simulated import read_faults, simulated_devices
from ...devices.validation import simulated_validation
from . import device_probe
from .node import Node

log = logging.getLogger(__name__)

PROBE_SECONDS: Final = 60.0
"""Interval between probes of another machine's devices; a probe starts containers there."""
IMAGE_SECONDS: Final = 2.0


class Devices:
    """The devices and images of a pool of engines."""

    def __init__(
        self, nodes: tuple[Node, ...], installation: str, simulated: int | None, state: Path
    ) -> None:
        self._nodes = nodes
        self._installation = installation
        self._simulated = simulated
        self._state = state
        self._foreign = ForeignProcesses()
        self._last: dict[str, tuple[Device, ...]] = {}
        self._here = {node.name: DeviceInventory(node.name) for node in nodes if node.here}
        self._problems: dict[str, tuple[DriverProblem, ...]] = {}
        self._probed: dict[str, tuple[float, NodeInventory]] = {}
        self._probing = {node.name: threading.Lock() for node in nodes}
        self._readings: dict[str, Mapping[str, DeviceReading]] = {}
        self._signals: dict[str, Mapping[str, DeviceSignals]] = {}
        self._images: dict[str, tuple[Image, ...]] = {}
        self._images_at = -1e9

    def inventory(self) -> tuple[Device, ...]:
        """Return the devices of all nodes.

        Raises:
            Unavailable: a node did not answer, and no devices are known yet.
        """
        failure: Unavailable | None = None
        for node in self._nodes:
            try:
                self._last[node.name] = self._of(node)
            except Unavailable as error:
                log.warning("devices of %s: %s", node.name, error)
                self._readings.pop(node.name, None)
                self._signals.pop(node.name, None)
                failure = error
        if failure is not None and not self._last:
            raise failure
        return tuple(device for node in self._nodes for device in self._last.get(node.name, ()))

    def _of(self, node: Node) -> tuple[Device, ...]:
        if self._simulated is not None:
            faults = read_faults(self._state)
            devices = simulated_devices(node.name, self._simulated, faults)
            self._signals[node.name] = simulated_signals(devices, faults)
            return devices
        listed = self._read(node)
        self._signals[node.name] = device_signals(listed.found)
        self._readings[node.name] = device_readings(listed.found)
        self._problems[node.name] = listed.problems
        if node.here:
            return self._foreign.with_busy_marked(listed.found)
        return tuple(detected.device for detected in listed.found)

    def problems(self) -> tuple[DriverProblem, ...]:
        """Return the drivers that failed in the last inventory."""
        return tuple(each for node in list(self._problems.values()) for each in node)

    def _read(self, node: Node) -> NodeInventory:
        if node.here:
            return self._here[node.name].read()
        # A second probe would remove the container of the first one.
        with self._probing[node.name]:
            return self._probe(node)

    def _probe(self, node: Node) -> NodeInventory:
        probed_at, known = self._probed.get(node.name, (-1e9, NodeInventory()))
        if time.monotonic() - probed_at < PROBE_SECONDS:
            return known
        try:
            image = node.tools_image()
        except BackendFailed as error:
            raise Unavailable(str(error)) from error
        found = device_probe.devices_on(node.engine, self._installation, image, installed_plugins())
        if found.reason != known.reason:
            log.info("devices of %s: %s", node.name, found.reason or "all are listed again")
        self._probed[node.name] = time.monotonic(), found
        return found

    def activity(self) -> dict[str, DeviceActivity]:
        """Return the activity by device; for those of another machine, as of the last probe."""
        found: dict[str, DeviceActivity] = {}
        for node in self._nodes:
            if self._simulated is not None:
                simulated = simulated_devices(node.name, self._simulated)
                found |= {device.id: simulated_activity(device) for device in simulated}
                continue
            try:
                listed = self._read(node)
            except Unavailable as error:
                log.warning("device activity on %s is unknown: %s", node.name, error)
                continue
            found |= {detected.device.id: device_activity(detected) for detected in listed.found}
        return found

    def readings(self) -> dict[str, DeviceReading]:
        """Return how much each device was used, by id, as of the last inventory."""
        return {
            name: found for node in list(self._readings.values()) for name, found in node.items()
        }

    def signals(self) -> dict[str, DeviceSignals]:
        """Return the condition of each device, by id, as of the last inventory."""
        return {
            name: found for node in list(self._signals.values()) for name, found in node.items()
        }

    def validate(self, devices: Sequence[Device]) -> dict[str, ValidationReading]:
        """Measure devices of one node in a container of its default image."""
        if self._simulated is not None:
            return simulated_validation(devices, read_faults(self._state))
        node = next(node for node in self._nodes if node.name == devices[0].node)
        try:
            default = next((image.digest for image in node.images() if image.default), "")
            image = default or node.tools_image()
            return device_probe.validation_on(node.engine, self._installation, image, devices)
        except (BackendFailed, Unavailable) as error:
            failed = ValidationReading(unavailable=str(error))
            return {device.id: failed for device in devices}

    def images(self) -> tuple[Image, ...]:
        """Return all builds without duplicates, with the nodes that have them.

        Raises:
            Unavailable: an engine did not answer, and no images are known yet.
        """
        if time.monotonic() - self._images_at > IMAGE_SECONDS:
            self._refresh_images()
        merged: dict[str, Image] = {}
        for name, images in list(self._images.items()):
            for image in images:
                known = merged.get(image.digest, replace(image, nodes=()))
                default = known.default or image.default
                merged[image.digest] = replace(known, nodes=(*known.nodes, name), default=default)
        return tuple(merged.values())

    def _refresh_images(self) -> None:
        failure: Unavailable | None = None
        for node in self._nodes:
            try:
                self._images[node.name] = node.images()
            except Unavailable as error:
                failure = error
        if failure is not None and not self._images:
            raise failure
        self._images_at = time.monotonic()
