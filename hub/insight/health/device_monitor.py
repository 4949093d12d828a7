"""Follow the readings of all devices, and report each finding once while it lasts."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ...interfaces.devices import DeviceSignals
from ...scheduling.model.snapshot import Device
from .device_watch import CONSECUTIVE, UNDER_LOAD, DeviceWatch
from .findings import Consequence, DeviceFinding, FindingKind

LEAST_HOT: Final = 2
REMOVED: Final = 8_640
"""Inventories (a day) after which an absent device is forgotten: it was taken out of its node."""
_NUMBERS: Final = (
    "utilization",
    "clock_mhz",
    "temperature_celsius",
    "power_watts",
    "power_limit_watts",
    "pcie_lanes",
    "pcie_replays",
    "corrected_errors",
)


@dataclass(slots=True)
class DeviceMonitor:
    """Judges one set of readings after the other; it keeps a bounded past in memory.

    A device without readings is not judged: nothing is known of its condition.
    """

    _watches: dict[str, DeviceWatch] = field(default_factory=dict)
    _places: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    _absent: dict[str, int] = field(default_factory=dict)
    _open: set[tuple[str, FindingKind]] = field(default_factory=set)

    def observe(
        self, devices: Sequence[Device], signals: Mapping[str, DeviceSignals]
    ) -> tuple[DeviceFinding, ...]:
        """Judge the readings of one inventory.

        Args:
            devices: those that their drivers report.
            signals: by device id; without those of a driver that gave no answer.
        """
        present = {device.id: device for device in devices}
        for name, device in present.items():
            self._places[name] = (device.node, device.driver, device.model)
            if name in signals:
                self._watches.setdefault(name, DeviceWatch()).take(_finite(signals[name]))
        read = {name: device for name, device in present.items() if name in signals}
        found = [
            *self._judged(read),
            *self._hot_nodes(read),
            *self._absences(present),
        ]
        return self._new(found, present, read)

    def forget(self, device: str) -> None:
        """Forget the past of a device, which an administrator has released or repaired."""
        self._watches.pop(device, None)
        self._open = {(name, kind) for name, kind in self._open if name != device}

    def release(self, device: str) -> None:
        """Report again what shows under load of a device that is back in service."""
        self._open = {
            (name, kind) for name, kind in self._open if name != device or kind not in UNDER_LOAD
        }

    def _judged(self, read: Mapping[str, Device]) -> Iterator[DeviceFinding]:
        for name in read:
            siblings = [
                self._watches[other]
                for other in read
                if other != name and self._places[other] == self._places[name]
            ]
            for kind, consequence, evidence in self._watches[name].symptoms(siblings):
                yield DeviceFinding(
                    target=name, kind=kind, consequence=consequence, evidence=evidence
                )

    def _hot_nodes(self, read: Mapping[str, Device]) -> Iterator[DeviceFinding]:
        """Find nodes most of whose devices under load are slowed down: that is no device's fault.

        Also devices count that were slowed down lately: few are busy all the time.
        """
        for node in {device.node for device in read.values()}:
            watches = [
                watch
                for name, watch in self._watches.items()
                if name in read and read[name].node == node
            ]
            hot = sum(watch.warm_lately for watch in watches)
            cool = sum(watch.busy and not watch.warm for watch in watches)
            if hot >= LEAST_HOT and hot > cool:
                yield DeviceFinding(
                    target=node,
                    kind=FindingKind.HOT_NODE,
                    consequence=Consequence.NOTICE,
                    evidence=f"{hot} of {hot + cool} devices with load on {node} in the last half "
                    "hour were slowed down by heat or power: check the cooling and the power "
                    "supply of the node.",
                )

    def _absences(self, present: Mapping[str, Device]) -> Iterator[DeviceFinding]:
        """Find devices that their driver no longer lists, while it lists others of the node."""
        answering = {self._places[name][:2] for name in present}
        for name, place in list(self._places.items()):
            if name in present or place[:2] not in answering:
                self._absent.pop(name, None)
                continue
            self._absent[name] = self._absent.get(name, 0) + 1
            if self._absent[name] > REMOVED:
                self._remove(name)
            elif self._absent[name] >= CONSECUTIVE:
                yield DeviceFinding(
                    target=name,
                    kind=FindingKind.ABSENT,
                    consequence=Consequence.NOTICE,
                    evidence=f"The driver of {place[0]} lists other devices, and no longer this "
                    "one.",
                )

    def _remove(self, name: str) -> None:
        for past in (self._places, self._absent, self._watches):
            past.pop(name, None)

    def _new(
        self,
        found: Sequence[DeviceFinding],
        present: Collection[str],
        read: Collection[str],
    ) -> tuple[DeviceFinding, ...]:
        """Return the findings that were not there before, without those of hot nodes' devices.

        A finding lasts until its device is judged again, such as one without readings or load.
        """
        hot = {each.target for each in found if each.kind is FindingKind.HOT_NODE}
        kept = [
            each
            for each in found
            if not (
                each.kind in {FindingKind.THROTTLED, FindingKind.SLOW_CLOCK}
                and self._places[each.target][0] in hot
            )
        ]
        before = self._open
        told = {(each.target, each.kind) for each in found}
        self._open = {(each.target, each.kind) for each in kept}
        self._open |= {
            (name, kind)
            for name, kind in before
            if (name, kind) in told
            or (name in self._places and not self._is_judged(name, kind, present, read))
        }
        return tuple(each for each in kept if (each.target, each.kind) not in before)

    def _is_judged(
        self, name: str, kind: FindingKind, present: Collection[str], read: Collection[str]
    ) -> bool:
        if kind is FindingKind.ABSENT:
            return name in present
        return name in read and self._watches[name].judges(kind)


def _finite(signals: DeviceSignals) -> DeviceSignals:
    """Return the readings without those that are no finite number."""
    wrong = {
        name: None
        for name in _NUMBERS
        if (value := getattr(signals, name)) is not None and not math.isfinite(value)
    }
    return replace(signals, **wrong) if wrong else signals  # type: ignore[arg-type]  # all are None
