"""The device pool of one decision: place requests on free devices, and release them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from copy import copy
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol

from ..model.snapshot import Allocation, Arrangement, Device, GangRole, PendingRequest, Share
from .free_devices import DeviceTopology, FreeDevices, SharedDevices, fits, shallow_copy
from .gangs import GangLayout, arrange

Shape = tuple[
    int, str | None, tuple[GangRole, ...], Arrangement, frozenset[str] | None, Share | None
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The devices that a request gets.

    Attributes:
        devices: by role and member of a gang, then by index.
        share: the part of its one device; None: whole devices.
        members: number of members of each role; empty for a request that is not a gang.
    """

    devices: tuple[str, ...]
    share: Share | None = None
    members: tuple[int, ...] = ()


class TakenDevices(Protocol):
    """Devices that can be released: those of a placement or an allocation."""

    @property
    def devices(self) -> tuple[str, ...]: ...

    @property
    def share(self) -> Share | None: ...


_devices: Callable[[TakenDevices], tuple[str, ...]] = attrgetter("devices")


def shape(request: PendingRequest) -> Shape:
    """Return all that placement depends on: requests of one shape fit at the same time."""
    return (
        request.devices,
        request.model,
        request.gang,
        request.arrangement,
        request.nodes,
        request.share,
    )


def largest_node(devices: Iterable[Device], model: str | None = None) -> int:
    """Return the largest number of these devices of one model (of this model) on one node."""
    counts = Counter((each.node, each.model) for each in devices if model in (None, each.model))
    return max(counts.values(), default=0)


class DevicePool:
    """The schedulable devices, and which of them are free.

    A device that is broken, drained or in quarantine is never free, not even when its lease ends.

    Attributes:
        takes_work: whether anything may start, with or without devices.
    """

    def __init__(
        self,
        devices: Iterable[Device],
        allocations: Iterable[Allocation],
        *,
        takes_work: bool = True,
    ) -> None:
        self.takes_work = takes_work
        self._topology = DeviceTopology(device for device in devices if device.schedulable)
        self._mixed = frozenset(self._topology.models if self._topology.mixed else ())
        self._all = FreeDevices(self._topology)
        self._free = self._all.copy()
        self._shared = SharedDevices(self._topology)
        self._could: dict[Shape, bool] = {}
        for allocation in allocations:
            self.occupy(allocation)

    def copy(self) -> DevicePool:
        clone = shallow_copy(self)
        clone._free, clone._shared = self._free.copy(), self._shared.copy()
        return clone

    @property
    def models_of_mixed_nodes(self) -> frozenset[str]:
        """The models of the pool if a node has devices of several; otherwise none."""
        return self._mixed

    def free_count(self, model: str | None = None, nodes: Set[str] | None = None) -> int:
        """Return the number of wholly free devices (of this model, on these nodes)."""
        return self._total(self._free, model, nodes)

    def total_count(self, model: str | None = None, nodes: Set[str] | None = None) -> int:
        """Return the number of schedulable devices, free or not."""
        return self._total(self._all, model, nodes)

    def _total(self, free: FreeDevices, model: str | None, nodes: Set[str] | None) -> int:
        family = self._topology.families.get(model)
        if family is None:
            return 0
        if nodes is None:
            return free.total(family)
        return free.within(family, self._topology.among(nodes))

    def could_fit(self, request: PendingRequest) -> bool:
        """Return whether a request would fit if every schedulable device were free."""
        key = shape(request)
        if key not in self._could:
            self._could[key] = self._fits(request, self._all, SharedDevices(self._topology))
        return self._could[key]

    def fits(self, request: PendingRequest) -> bool:
        """Return whether ``take`` would find a placement now."""
        return self._fits(request, self._free, self._shared)

    def nodes_of(self, taken: TakenDevices) -> tuple[int, ...]:
        """Return the numbers of the nodes of these devices."""
        return tuple(node for node, _ in self._topology.spots[taken.devices])

    def other_nodes(self, taken: TakenDevices, among: Set[str] | None = None) -> frozenset[str]:
        """Return the names of all nodes (of ``among``) without those of these devices."""
        names = self._topology.names
        used = {names[node] for node in self.nodes_of(taken)}
        return frozenset(names if among is None else among) - used

    def take(self, request: PendingRequest, preferred: int = 0) -> Placement | None:
        """Take devices for a request; None, and nothing taken, if it does not fit.

        1. A share: the shared device with the least left over, else one that is wholly free, chosen
           as a single device.
        2. A gang: as ``arrange`` says.
        3. Else best fit: the node with the fewest fitting devices left over, so that whole nodes
           stay free for larger requests; then one of the ``preferred`` nodes, where its group runs
           already, so that the devices that a group borrows are on few nodes and whole nodes can be
           reclaimed (as the cells of HiveD; Zhao et al., OSDI 2020); then the node's name. Within
           the node the lowest index, then the id.
        """
        if request.devices == 0:
            return Placement(devices=())
        if request.share is not None:
            return self._take_share(request.model, request.share)
        if request.gang:
            layout = arrange(request, self._topology, self._free)
            return None if layout is None else self._take_gang(request.gang, layout)
        family = self._topology.families.get(request.model)
        if family is None:
            return None
        among = self._topology.among(request.nodes)
        node = self._free.tightest(family, request.devices, among, preferred)
        if node is None:
            return None
        return Placement(devices=self._free.take(family, node, request.devices))

    def model_of(self, taken: TakenDevices) -> str | None:
        """Return the model of these devices; None if they have several, or are not schedulable."""
        spots = filter(None, map(self._topology.where.get, taken.devices))
        models = {self._topology.devices[node][place].model for node, place in spots}
        return models.pop() if len(models) == 1 else None

    def release(self, taken: TakenDevices) -> None:
        """Free these devices; those that are free already or not schedulable do not change."""
        self._free.add(self._no_longer_held(taken))

    def release_as_they_end(
        self, ends: Iterable[tuple[float, TakenDevices]], enough: int
    ) -> Iterator[float]:
        """Release these in the order of their ends, and yield some of the end times.

        Yields the first time, and every time at which a node reaches ``enough`` wholly free
        devices.
        """
        return self._free.release_as_they_end(
            ends, self._no_longer_held if self._shared else _devices, enough
        )

    def _no_longer_held(self, taken: TakenDevices) -> tuple[str, ...]:
        """Remove a taken share, and return the devices of which no share is held any more."""
        if taken.share is not None:
            over = (each for each in taken.devices if each in self._topology.where)
            return tuple(each for each in over if self._shared.remove(each, taken.share))
        if self._shared:
            return tuple(each for each in taken.devices if each not in self._shared)
        return taken.devices

    def occupy(self, taken: TakenDevices) -> None:
        """Take exactly these devices, free or not; a device taken as a whole is no longer
        shared."""
        self._free.remove(taken.devices)
        if taken.share is None:
            for device in taken.devices if self._shared else ():
                self._shared.close(device)
            return
        for device in taken.devices:
            if device in self._topology.where:
                self._shared.add(device, taken.share)

    def is_available(self, device: str) -> bool:
        """Return whether a device is free or shared."""
        return device in self._shared or self._free.has(device)

    def is_shared(self, device: str) -> bool:
        return device in self._shared

    def is_free(self, device: str) -> bool:
        return self._free.has(device)

    def remaining_share(self, device: str) -> Share:
        """Return the unused share of a shared device."""
        return self._shared.remaining_share(device)

    def free_on(self, node: int, model: str | None = None) -> int:
        """Return the number of wholly free devices (of this model) on a node."""
        family = self._topology.families.get(model)
        return 0 if family is None else self._free.count(family, node)

    def missing_on(self, node: int, request: PendingRequest) -> int:
        """Return how many more devices have to become free on a node for a request."""
        if not self._topology.among(request.nodes) >> node & 1:
            return request.devices + len(self._topology.devices[node])
        return request.devices - self.free_on(node, request.model)

    def gains(self, taken: TakenDevices, model: str | None = None) -> Mapping[int, int]:
        """Return by node how many of these devices are of this model and schedulable."""
        family = self._topology.families.get(model)
        gained: dict[int, int] = {}
        if family is not None:
            masks = self._topology.masks[family]
            for node, places in self._topology.spots[taken.devices]:
                if count := (places & masks[node]).bit_count():
                    gained[node] = count
        return gained

    def _fits(self, request: PendingRequest, free: FreeDevices, shared: SharedDevices) -> bool:
        if request.devices == 0:
            return True
        if request.share is not None:
            return self._for_share(request.model, request.share, free, shared) is not None
        if request.gang:
            return arrange(request, self._topology, free) is not None
        family = self._topology.families.get(request.model)
        within = self._topology.among(request.nodes)
        return family is not None and free.tightest(family, request.devices, within) is not None

    def _take_gang(self, roles: tuple[GangRole, ...], layout: GangLayout) -> Placement:
        nodes = {size: iter(each) for size, each in layout.nodes.items()}
        devices: list[str] = []
        for role, count in zip(roles, layout.members, strict=True):
            for _ in range(count if role.devices else 0):
                node = next(nodes[role.devices])
                devices += self._free.take(layout.family, node, role.devices)
        return Placement(devices=tuple(devices), members=layout.members)

    def _take_share(self, model: str | None, share: Share) -> Placement | None:
        device = self._for_share(model, share, self._free, self._shared)
        if device is None:
            return None
        self._free.remove((device,))
        self._shared.add(device, share)
        return Placement(devices=(device,), share=share)

    def _for_share(
        self, model: str | None, share: Share, free: FreeDevices, shared: SharedDevices
    ) -> str | None:
        family = self._topology.families.get(model)
        if family is None:
            return None
        whole = (
            device.id
            for node in free.in_order(family)
            for device in free.devices(family, node)
            if fits(device, (share,))
        )
        return shared.find(family, share) or next(whole, None)


class GroupLocality:
    """The set of nodes on which each group holds devices."""

    def __init__(self, pool: DevicePool, allocations: Iterable[Allocation] = ()) -> None:
        self._nodes: defaultdict[str, int] = defaultdict(int)
        self._counts: defaultdict[tuple[str, int], int] = defaultdict(int)
        """Number of allocations of a group on a node."""
        for allocation in allocations:
            self.count(allocation, 1, pool)

    def copy(self) -> GroupLocality:
        clone = copy(self)
        clone._nodes, clone._counts = self._nodes.copy(), self._counts.copy()
        return clone

    def of(self, group: str) -> int:
        return self._nodes.get(group, 0)

    def count(self, allocation: Allocation, times: int, pool: DevicePool) -> None:
        """Add an allocation (``times`` 1) or remove it (-1)."""
        for node in pool.nodes_of(allocation):
            key = (allocation.group, node)
            self._counts[key] += times
            if self._counts[key]:
                self._nodes[allocation.group] |= 1 << node
            else:
                del self._counts[key]
                self._nodes[allocation.group] &= ~(1 << node)
