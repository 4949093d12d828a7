"""Free devices of every node, whole and in shares, indexed so that the best fit is found at once.

Nodes are numbered by name and the devices of a node by index. A set of either is an ``int`` with
one bit for each, so that the lowest bit is the first and a copy costs next to nothing. A *family*
is the devices of one model, or all of them (``None``).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from math import fsum
from typing import TypeVar

from ..model.snapshot import Device, Share

ANYWHERE = -1
"""The set of all nodes."""


_T = TypeVar("_T")

Spot = tuple[int, int]
"""A node, and a set of places on it."""


def shallow_copy(original: _T) -> _T:
    """Copy an object with its attributes; much faster than ``copy.copy``."""
    clone = object.__new__(type(original))
    clone.__dict__.update(original.__dict__)
    return clone


def device_key(device: Device) -> tuple[int, str]:
    return (device.index, device.id)


class DeviceTopology:
    """Nodes, devices and switches of the pool; constant during a decision.

    Attributes:
        names: node names by node number.
        devices: by node, in the order of their places.
        where: node and place of each device.
        spots: by tuple of devices: their nodes, with the places on each.
        families: number of each family. If all devices are of one model, its family and that of all
            devices are the same.
        masks: by family and node: the places of its devices.
        of_node: by node: the families that have devices there, with their places.
        models: of all devices, ordered by name.
        mixed: whether a node has devices of several models.
        switches: the nodes of each named switch, ordered by name.
    """

    def __init__(self, devices: Iterable[Device]) -> None:
        by_node: dict[str, list[Device]] = {}
        for device in sorted(devices, key=device_key):
            by_node.setdefault(device.node, []).append(device)
        self.names = sorted(by_node)
        self.devices = [by_node[name] for name in self.names]
        self.where = {
            device.id: (node, place)
            for node, inside in enumerate(self.devices)
            for place, device in enumerate(inside)
        }
        self.models = sorted({device.model for inside in self.devices for device in inside})
        names: list[str | None] = [None, *self.models] if len(self.models) > 1 else [None]
        self.families: dict[str | None, int] = {name: i for i, name in enumerate(names)}
        self.masks = [[0] * len(self.devices) for _ in names]
        for node, place in self.where.values():
            own = self.families.get(self.devices[node][place].model, 0)
            for family in {0, own}:
                self.masks[family][node] |= 1 << place
        for model in self.models:
            self.families.setdefault(model, 0)
        self.of_node = [
            tuple((family, mask[node]) for family, mask in enumerate(self.masks) if mask[node])
            for node in range(len(self.devices))
        ]
        self.mixed = any(len({each.model for each in inside}) > 1 for inside in self.devices)
        self.switches = _switches(self.devices)
        self.spots = _Spots(self.where)

    def among(self, nodes: Set[str] | None) -> int:
        """Return the nodes with these names; None: all of them."""
        if nodes is None:
            return ANYWHERE
        return sum(1 << node for node, name in enumerate(self.names) if name in nodes)


class _Spots(dict[tuple[str, ...], tuple[Spot, ...]]):
    """Nodes and places of tuples of devices.

    The devices of an allocation are looked up repeatedly while it runs, so results are cached, up
    to a maximum size.
    """

    _MOST = 50_000

    def __init__(self, where: Mapping[str, tuple[int, int]]) -> None:
        super().__init__()
        self._where = where

    def __missing__(self, devices: tuple[str, ...]) -> tuple[Spot, ...]:
        if len(self) >= self._MOST:
            self.clear()
        places: dict[int, int] = {}
        for node, place in filter(None, map(self._where.get, devices)):
            places[node] = places.get(node, 0) | 1 << place
        found = self[devices] = tuple(places.items())
        return found


def _switches(devices: list[list[Device]]) -> list[int]:
    found: dict[str, int] = {}
    for node, inside in enumerate(devices):
        if inside[0].switch:
            found[inside[0].switch] = found.get(inside[0].switch, 0) | 1 << node
    return [found[name] for name in sorted(found)]


class FreeDevices:
    """The set of free devices; all of them at first."""

    def __init__(self, topology: DeviceTopology) -> None:
        self._topology = topology
        self._places = list(topology.masks[0])
        self._buckets: list[list[int]] = []
        """Nodes by family and number of free devices."""
        self._totals: list[int] = []
        for masks in topology.masks:
            counts = [mask.bit_count() for mask in masks]
            buckets = [0] * (max(counts, default=0) + 1)
            for node, count in enumerate(counts):
                buckets[count] |= 1 << node
            self._buckets.append(buckets)
            self._totals.append(sum(counts))

    def copy(self) -> FreeDevices:
        clone = shallow_copy(self)
        clone._places = self._places.copy()
        clone._buckets = [buckets.copy() for buckets in self._buckets]
        clone._totals = self._totals.copy()
        return clone

    def total(self, family: int) -> int:
        return self._totals[family]

    def has(self, device: str) -> bool:
        node, place = self._topology.where.get(device, (0, -1))
        return place >= 0 and bool(self._places[node] >> place & 1)

    def within(self, family: int, nodes: int) -> int:
        """Return the number of free devices on these nodes."""
        buckets = enumerate(self._buckets[family])
        return sum(count * (bucket & nodes).bit_count() for count, bucket in buckets if bucket)

    def count(self, family: int, node: int) -> int:
        return (self._places[node] & self._topology.masks[family][node]).bit_count()

    def slots_for(self, family: int, count: int) -> int:
        """Return how many requests for ``count`` devices on one node fit."""
        buckets = self._buckets[family]
        return sum(
            at // count * buckets[at].bit_count()
            for at in range(count, len(buckets))
            if buckets[at]
        )

    def nodes_for(self, family: int, count: int) -> int:
        """Return the number of nodes with at least ``count`` free devices."""
        return sum(bucket.bit_count() for bucket in self._buckets[family][count:])

    def tightest(
        self, family: int, count: int, within: int = ANYWHERE, preferred: int = 0
    ) -> int | None:
        """Return the node with the fewest free devices that has at least ``count``.

        Among equals the first of the ``preferred`` nodes, else the first of all.
        """
        buckets = self._buckets[family]
        for at in range(count, len(buckets)):
            nodes = buckets[at] & within
            if nodes:
                nodes = nodes & preferred or nodes
                return (nodes & -nodes).bit_length() - 1
        return None

    def fullest(self, family: int, within: int = ANYWHERE) -> int | None:
        """Return the node with the most free devices; among equals the first."""
        buckets = self._buckets[family]
        for at in range(len(buckets) - 1, 0, -1):
            nodes = buckets[at] & within
            if nodes:
                return (nodes & -nodes).bit_length() - 1
        return None

    def in_order(self, family: int, within: int = ANYWHERE) -> Iterator[int]:
        """Yield the nodes with any free device, those with the fewest first."""
        for bucket in self._buckets[family][1:]:
            nodes = bucket & within
            while nodes:
                yield (nodes & -nodes).bit_length() - 1
                nodes &= nodes - 1

    def devices(self, family: int, node: int) -> Iterator[Device]:
        """Yield the free devices of a node, in order."""
        inside = self._topology.devices[node]
        left = self._places[node] & self._topology.masks[family][node]
        while left:
            yield inside[(left & -left).bit_length() - 1]
            left &= left - 1

    def take(self, family: int, node: int, count: int) -> tuple[str, ...]:
        """Take the first ``count`` free devices of a node, which must have that many."""
        inside = self._topology.devices[node]
        free = self._places[node]
        left = free & self._topology.masks[family][node]
        taken = []
        for _ in range(count):
            lowest = left & -left
            left ^= lowest
            free ^= lowest
            taken.append(inside[lowest.bit_length() - 1].id)
        self._now_free(node, free)
        return tuple(taken)

    def remove(self, devices: tuple[str, ...]) -> None:
        """Mark devices as not free."""
        for node, places in self._topology.spots[devices]:
            self._now_free(node, self._places[node] & ~places)

    def add(self, devices: tuple[str, ...]) -> None:
        """Mark devices as free."""
        for node, places in self._topology.spots[devices]:
            self._now_free(node, self._places[node] | places)

    def release_as_they_end(
        self,
        ends: Iterable[tuple[float, _T]],
        released: Callable[[_T], tuple[str, ...]],
        enough: int,
    ) -> Iterator[float]:
        """Free the devices of these items in the order of their ends; yield some of the end times.

        Yields the first time, and every time at which a node reaches ``enough`` free devices.
        Changes in between are only collected. ``released`` maps an item to its devices; it is
        called before the time of the item is yielded.
        """
        spots, places = self._topology.spots, self._places
        coming: dict[int, int] = {}
        now, most, least = None, 0, 0
        for end, item in ends:
            if end != now:
                if now is not None and most >= least:
                    self._settle(coming)
                    least = enough
                    yield now
                now, most = end, 0
            for node, more in spots[released(item)]:
                free = coming[node] = coming.get(node, places[node]) | more
                count = free.bit_count()
                if count > most:  # noqa: PLR1730 - the innermost loop of all
                    most = count
        if now is not None and most >= least:
            self._settle(coming)
            yield now

    def _settle(self, coming: dict[int, int]) -> None:
        for node, free in coming.items():
            self._now_free(node, free)
        coming.clear()

    def _now_free(self, node: int, free: int) -> None:
        before = self._places[node]
        if free == before:
            return
        self._places[node] = free
        bit = 1 << node
        for family, mask in self._topology.of_node[node]:
            old, new = (before & mask).bit_count(), (free & mask).bit_count()
            if old != new:
                buckets = self._buckets[family]
                buckets[old] ^= bit
                buckets[new] ^= bit
                self._totals[family] += new - old


_ROUNDING = 1e-9

Remaining = tuple[float, int, int, int]
"""Compute and memory that remain, then node and place of the device."""


class SharedDevices:
    """The shares of every shared device; they never exceed the device."""

    def __init__(self, topology: DeviceTopology) -> None:
        self._topology = topology
        self._shares: dict[str, tuple[Share, ...]] = {}
        self._remaining: list[list[Remaining]] = [[] for _ in topology.masks]
        """Unused shares of devices by family, the smallest first."""

    def copy(self) -> SharedDevices:
        clone = shallow_copy(self)
        clone._shares = self._shares.copy()
        clone._remaining = [remaining.copy() for remaining in self._remaining]
        return clone

    def find(self, family: int, share: Share) -> str | None:
        """Return the shared device with the least left over beside this share; None if none fits.

        Best fit approximates the gradient descent of Weng et al. (USENIX ATC 2023, "Beware of
        fragmentation"): a remainder is lost to larger shares, so the smallest that suffices is
        used, and no whole device is split for it.
        """
        remaining = self._remaining[family]
        for at in range(bisect_left(remaining, (share.compute - _ROUNDING,)), len(remaining)):
            node, place = remaining[at][2:]
            device = self._topology.devices[node][place]
            if fits(device, (*self._shares[device.id], share)):
                return device.id
        return None

    def add(self, device: str, share: Share) -> None:
        self._change(device, (*self._shares.get(device, ()), share))

    def remove(self, device: str, share: Share) -> bool:
        """Remove a share from a device; return whether that was its last one."""
        shares = list(self._shares.get(device, ()))
        if share not in shares:
            return False
        shares.remove(share)
        self._change(device, tuple(shares))
        return not shares

    def close(self, device: str) -> None:
        """Remove all shares of a device, which is then no longer shared."""
        if device in self._shares:
            self._change(device, ())

    def __bool__(self) -> bool:
        """Return whether any device is shared."""
        return bool(self._shares)

    def __contains__(self, device: str) -> bool:
        return device in self._shares

    def remaining_share(self, device: str) -> Share:
        """Return the unused share of a shared device."""
        compute, memory, _, _ = self._unused(*self._topology.where[device], self._shares[device])
        return Share(compute=compute, memory_bytes=memory)

    def _change(self, device: str, shares: tuple[Share, ...]) -> None:
        node, place = self._topology.where[device]
        before = self._shares.pop(device, ())
        if shares:
            self._shares[device] = shares
        for family, mask in self._topology.of_node[node]:
            if mask >> place & 1:
                if before:
                    remaining = self._remaining[family]
                    del remaining[bisect_left(remaining, self._unused(node, place, before))]
                if shares:
                    insort(self._remaining[family], self._unused(node, place, shares))

    def _unused(self, node: int, place: int, shares: tuple[Share, ...]) -> Remaining:
        memory = self._topology.devices[node][place].memory_bytes
        compute = 1 - fsum(each.compute for each in shares)
        return (compute, memory - sum(each.memory_bytes for each in shares), node, place)


def fits(device: Device, shares: tuple[Share, ...]) -> bool:
    """Return whether a device can hold all of these shares at the same time."""
    return (
        all(each.compute > 0 for each in shares)
        and fsum(each.compute for each in shares) <= 1
        and sum(each.memory_bytes for each in shares) <= device.memory_bytes
    )
