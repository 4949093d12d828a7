"""Readings of a node with four devices in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from carrel.hub.insight.health.device_monitor import DeviceMonitor
from carrel.hub.insight.health.findings import DeviceFinding
from carrel.hub.interfaces.devices import DeviceSignals
from carrel.hub.scheduling.model.snapshot import Device

GOOD = DeviceSignals(
    utilization=98.0,
    clock_mhz=1700.0,
    throttled=(),
    temperature_celsius=65.0,
    power_watts=300.0,
    power_limit_watts=400.0,
    pcie_lanes=16.0,
    pcie_replays=3.0,
    corrected_errors=1.0,
)


@dataclass
class Node:
    """A node whose monitor has read its devices for a while."""

    size: int = 4
    usual: int = 80
    monitor: DeviceMonitor = field(default_factory=DeviceMonitor)
    devices: tuple[Device, ...] = ()

    def __post_init__(self) -> None:
        self.devices = tuple(
            Device(id=f"D{n}", node="n1", index=n, model="GPU", memory_bytes=1)
            for n in range(self.size)
        )
        self.read({}, times=self.usual)

    def read(
        self,
        changed: Mapping[int, DeviceSignals | None],
        *,
        times: int = 1,
        absent: frozenset[int] = frozenset(),
    ) -> list[DeviceFinding]:
        """Return the findings of some readings; None: a device without any."""
        found: list[DeviceFinding] = []
        for _ in range(times):
            signals = {
                device.id: value
                for device in self.devices
                if (value := changed.get(device.index, GOOD)) is not None
                and device.index not in absent
            }
            present = [device for device in self.devices if device.index not in absent]
            found += self.monitor.observe(present, signals)
        return found


def good(**changes: object) -> DeviceSignals:
    return replace(GOOD, **changes)  # type: ignore[arg-type]  # names and types are those above
