"""Which devices a request gets: whole ones, all in one node, chosen by best fit."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy

from .model import Device, Holding

Free = Mapping[str, Sequence[Device]]
"""Free devices by node, each node's in the order of ``device_key``."""


def device_key(device: Device) -> tuple[int, str]:
    return (device.index, device.id)


def place(count: int, model: str | None, free: Free) -> tuple[Device, ...] | None:
    """``count`` free devices of one node, or None where no node has as many.

    1. the node that has the fewest fitting devices left over (best fit: whole nodes stay
       whole for those who ask for many)
    2. the node's name
    3. within the node: the lowest index, then the id
    """
    best: tuple[int, str, list[Device]] | None = None
    for node, devices in free.items():
        if len(devices) < count:
            continue
        fitting = [device for device in devices if model is None or device.model == model]
        left = len(fitting) - count
        if left >= 0 and (best is None or (left, node) < best[:2]):
            best = (left, node, fitting)
    return tuple(best[2][:count]) if best else None


def largest_node(devices: Iterable[Device], model: str | None = None) -> int:
    """How many of these devices (of this model) the node with the most of them has."""
    per_node = Counter(d.node for d in devices if model is None or d.model == model)
    return max(per_node.values(), default=0)


class Pool:
    """The devices that may be lent while a decision is being made: what is free, what could be.

    It changes as devices are taken and given back; a device that is broken, drained or in
    quarantine is never free, not even when its lease ends.

    Attributes:
        takes_work: whether anything may start, with or without a device.
    """

    def __init__(
        self, devices: Iterable[Device], holdings: Iterable[Holding], *, takes_work: bool = True
    ) -> None:
        self.takes_work = takes_work
        self._working = {device.id: device for device in devices if device.lendable}
        self._largest: dict[str | None, int] = {}
        self._free: dict[str, list[Device]] = {}
        held = {device for holding in holdings for device in holding.devices}
        for device in sorted(self._working.values(), key=device_key):
            free = self._free.setdefault(device.node, [])
            if device.id not in held:
                free.append(device)

    def copy(self) -> Pool:
        made = copy(self)
        made._free = {node: list(free) for node, free in self._free.items()}
        return made

    def could_fit(self, count: int, model: str | None) -> bool:
        """Whether one node could hold it, were every device that may be lent free."""
        if model not in self._largest:
            self._largest[model] = largest_node(self._working.values(), model)
        return count <= self._largest[model]

    def take(self, count: int, model: str | None) -> tuple[str, ...] | None:
        """Take the devices that ``place`` names; None, and nothing taken, where none fit."""
        chosen = place(count, model, self._free)
        if chosen is None:
            return None
        for device in chosen:
            self._free[device.node].remove(device)
        return tuple(device.id for device in chosen)

    def give_back(self, devices: Iterable[str]) -> None:
        for device_id in devices:
            device = self._working.get(device_id)
            if device is not None and device not in self._free[device.node]:
                insort(self._free[device.node], device, key=device_key)
