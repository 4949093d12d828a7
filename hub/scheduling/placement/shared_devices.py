"""Devices that are lent in parts: how much of each is left, and which suits a share best."""

from __future__ import annotations

from bisect import bisect_left, insort
from math import fsum

from ..model.snapshot import Device, Share
from .free_devices import DeviceTopology, twin

_ROUNDING = 1e-9

Room = tuple[float, int, int, int]
"""Compute and memory that are left, then node and place of the device."""


class SharedDevices:
    """The shares of every device that is lent in parts. They never add up to more than it."""

    def __init__(self, floor: DeviceTopology) -> None:
        self._floor = floor
        self._shares: dict[str, tuple[Share, ...]] = {}
        self._rooms: list[list[Room]] = [[] for _ in floor.masks]
        """By family: what is left of its devices, the least first."""

    def copy(self) -> SharedDevices:
        made = twin(self)
        made._shares = self._shares.copy()
        made._rooms = [rooms.copy() for rooms in self._rooms]
        return made

    def find(self, family: int, share: Share) -> str | None:
        """The device lent in parts that has the least left over next to this share.

        Best fit is the short form of what Weng et al. (USENIX ATC 2023, "Beware of
        fragmentation") descend by a gradient: a rest is lost to those whose share is larger,
        so the smallest rest that will do is used up, and no whole device is broken for it.
        """
        rooms = self._rooms[family]
        for at in range(bisect_left(rooms, (share.compute - _ROUNDING,)), len(rooms)):
            node, place = rooms[at][2:]
            device = self._floor.devices[node][place]
            if fits(device, (*self._shares[device.id], share)):
                return device.id
        return None

    def add(self, device: str, share: Share) -> None:
        self._change(device, (*self._shares.get(device, ()), share))

    def remove(self, device: str, share: Share) -> bool:
        """Take a share back, if the device has it. True where nothing of it is lent any more."""
        shares = list(self._shares.get(device, ()))
        if share not in shares:
            return False
        shares.remove(share)
        self._change(device, tuple(shares))
        return not shares

    def close(self, device: str) -> None:
        """Nothing of it is left for shares."""
        if device in self._shares:
            self._change(device, ())

    def __bool__(self) -> bool:
        """Whether anything is lent in parts."""
        return bool(self._shares)

    def __contains__(self, device: str) -> bool:
        return device in self._shares

    def left_of(self, device: str) -> Share:
        """All that is left of a device that is lent in parts."""
        compute, memory, _, _ = self._room(*self._floor.where[device], self._shares[device])
        return Share(compute=compute, memory_bytes=memory)

    def _change(self, device: str, shares: tuple[Share, ...]) -> None:
        node, place = self._floor.where[device]
        before = self._shares.pop(device, ())
        if shares:
            self._shares[device] = shares
        for family, mask in self._floor.of_node[node]:
            if mask >> place & 1:
                if before:
                    rooms = self._rooms[family]
                    del rooms[bisect_left(rooms, self._room(node, place, before))]
                if shares:
                    insort(self._rooms[family], self._room(node, place, shares))

    def _room(self, node: int, place: int, shares: tuple[Share, ...]) -> Room:
        memory = self._floor.devices[node][place].memory_bytes
        compute = 1 - fsum(each.compute for each in shares)
        return (compute, memory - sum(each.memory_bytes for each in shares), node, place)


def fits(device: Device, shares: tuple[Share, ...]) -> bool:
    """Whether a device holds all of these at one time."""
    return (
        all(each.compute > 0 for each in shares)
        and fsum(each.compute for each in shares) <= 1
        and sum(each.memory_bytes for each in shares) <= device.memory_bytes
    )
