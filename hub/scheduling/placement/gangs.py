"""Gang placement: all members at once, each within one node, all on devices of one model.

Gangs start whole or not at all (Ousterhout, "Scheduling techniques for concurrent systems",
ICDCS 1982), with a minimum and a wanted number of members, as Volcano's ``minAvailable`` and
Kueue's partial admission. One node is best, then one switch: Jeon et al. (USENIX ATC 2019)
measured the cost of lower locality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType

from ..model.snapshot import Arrangement, GangRole, PendingRequest
from .free_devices import DeviceTopology, FreeDevices

Sizes = Mapping[int, int]
"""Number of members of each size, the largest size first."""

Nodes = Mapping[int, list[int]]
"""Nodes of the members, by member size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangLayout:
    """The nodes on which a gang fits.

    Attributes:
        members: number of members of each role.
    """

    members: tuple[int, ...]
    family: int
    nodes: Nodes


def is_elastic(request: PendingRequest) -> bool:
    """Return whether a request can start with fewer members than it asks for."""
    return any(role.wanted > role.minimum for role in request.gang)


def forms(request: PendingRequest) -> Iterator[PendingRequest]:
    """Yield a request as it is; an elastic gang also with fewer members, down to its minimum."""
    yield request
    for members in islice(_from_wanted_to_minimum(request.gang), 1, None):
        yield _with(request, members)


def least(request: PendingRequest) -> PendingRequest:
    """Return a gang with its minimum number of members: preemption frees no more than that."""
    if not request.gang:
        return request
    return _with(request, tuple(role.minimum for role in request.gang))


def smallest_member(request: PendingRequest) -> int:
    """Return the smallest number of devices that a request needs on one node."""
    return min((role.devices for role in request.gang), default=request.devices)


def largest_member(request: PendingRequest) -> int:
    """Return the largest number of devices that a request needs on one node."""
    return max((role.devices for role in request.gang), default=request.devices)


def _with(request: PendingRequest, members: tuple[int, ...]) -> PendingRequest:
    pairs = tuple(zip(request.gang, members, strict=True))
    roles = tuple(replace(role, wanted=count) for role, count in pairs)
    return replace(request, gang=roles, devices=sum(role.devices * count for role, count in pairs))


def arrange(
    request: PendingRequest, topology: DeviceTopology, free: FreeDevices
) -> GangLayout | None:
    """Find nodes for all members of a gang, or return None where its minimum does not fit.

    1. As many members as possible, those of the first role first.
    2. All on one switch, where possible.
    3. As few nodes as possible; spread, each member on its own node; ``NODE``, all on one node.
    4. The first model, then the nodes with the fewest devices left over.

    Packing is greedy: a layout that exists is always found where each size divides the next larger
    one, and nearly always where not.
    """
    models = topology.models if request.model is None else [request.model]
    families = [
        topology.families[each]
        for each in models
        if each in topology.families and _may_hold(request, free, topology.families[each])
    ]
    if not families:
        return None
    among = topology.among(request.nodes)
    for members in _from_wanted_to_minimum(request.gang):
        sizes = _sizes(request.gang, members)
        found = [
            (*layout, family)
            for family in families
            if (
                layout := _in_family(
                    sizes,
                    request.arrangement,
                    topology,
                    free,
                    family=family,
                    among=among,
                )
            )
            is not None
        ]
        if found:
            _, _, nodes, family = min(found, key=lambda each: each[:2])
            return GangLayout(members=members, family=family, nodes=nodes)
    return None


def _may_hold(request: PendingRequest, free: FreeDevices, family: int) -> bool:
    """Return whether the minimum of every role would fit alone: a quick check before the search."""
    capacity = free.nodes_for if request.arrangement is Arrangement.SPREAD else free.slots_for
    return all(
        capacity(family, role.devices) >= role.minimum for role in request.gang if role.devices
    )


def _from_wanted_to_minimum(roles: tuple[GangRole, ...]) -> Iterator[tuple[int, ...]]:
    members = [max(role.minimum, role.wanted) for role in roles]
    yield tuple(members)
    for at in range(len(roles) - 1, -1, -1):
        while members[at] > roles[at].minimum:
            members[at] -= 1
            yield tuple(members)


def _sizes(roles: tuple[GangRole, ...], members: tuple[int, ...]) -> Sizes:
    sizes: dict[int, int] = {}
    for role, count in sorted(zip(roles, members, strict=True), key=lambda each: -each[0].devices):
        if role.devices and count:
            sizes[role.devices] = sizes.get(role.devices, 0) + count
    return sizes


def _in_family(
    sizes: Sizes,
    arrangement: Arrangement,
    topology: DeviceTopology,
    free: FreeDevices,
    *,
    family: int,
    among: int,
) -> tuple[bool, int, Nodes] | None:
    """Return whether the layout crosses switches, its number of nodes, and its nodes.

    ``among``: the nodes that it may use.
    """
    devices = sum(size * count for size, count in sizes.items())
    if devices > free.total(family):
        return None
    lay_out = _LAYOUTS[arrangement]
    anywhere = lay_out(sizes, free, family, among)
    if anywhere is None:
        return None
    fewest = _count(anywhere)
    best: tuple[int, Nodes] | None = None
    for switch in topology.switches if fewest > 1 else ():
        within = switch & among
        if devices > free.within(family, within) or (best and best[0] == fewest):
            continue
        nodes = lay_out(sizes, free, family, within)
        if nodes is not None and (best is None or _count(nodes) < best[0]):
            best = _count(nodes), nodes
    if best is not None:
        return (False, *best)
    return bool(topology.switches) and fewest > 1, fewest, anywhere


def _count(nodes: Nodes) -> int:
    return len({node for each in nodes.values() for node in each})


def _spread(sizes: Sizes, free: FreeDevices, family: int, within: int) -> Nodes | None:
    """Place every member on its own node: the largest member first, on the tightest node."""
    nodes: dict[int, list[int]] = {}
    for size, count in sizes.items():
        for _ in range(count):
            node = free.tightest(family, size, within)
            if node is None:
                return None
            nodes.setdefault(size, []).append(node)
            within &= ~(1 << node)
    return nodes


def _on_one_node(sizes: Sizes, free: FreeDevices, family: int, within: int) -> Nodes | None:
    """Place all members on the tightest node."""
    devices = sum(size * count for size, count in sizes.items())
    node = free.tightest(family, devices, within)
    return None if node is None else {size: [node] * count for size, count in sizes.items()}


def _packed(sizes: Sizes, free: FreeDevices, family: int, within: int) -> Nodes | None:
    """Fill the nodes with the most free devices, until the rest fits on one node; use the tightest.

    The largest members are placed first.
    """
    nodes: dict[int, list[int]] = {}
    left, allowed = dict(sizes), within
    while left:
        node = free.tightest(family, sum(size * count for size, count in left.items()), allowed)
        if node is None:
            node = free.fullest(family, allowed)
        capacity = 0 if node is None else free.count(family, node)
        if node is None or capacity < next(iter(left)):
            return _best_fit(sizes, free, family, within) if len(sizes) > 1 else None
        for size, count in tuple(left.items()):
            placed = min(count, capacity // size)
            nodes.setdefault(size, []).extend([node] * placed)
            capacity -= placed * size
            left[size] -= placed
            if not left[size]:
                del left[size]
        allowed &= ~(1 << node)
    return nodes


def _best_fit(sizes: Sizes, free: FreeDevices, family: int, within: int) -> Nodes | None:
    """Place members of different sizes that cannot be packed, each on the tightest node."""
    remaining = {node: free.count(family, node) for node in free.in_order(family, within)}
    nodes: dict[int, list[int]] = {}
    for size, count in sizes.items():
        for _ in range(count):
            fitting = [(capacity, node) for node, capacity in remaining.items() if capacity >= size]
            if not fitting:
                return None
            node = min(fitting)[1]
            remaining[node] -= size
            nodes.setdefault(size, []).append(node)
    return nodes


_LAYOUTS: Mapping[Arrangement, Callable[[Sizes, FreeDevices, int, int], Nodes | None]] = (
    MappingProxyType(
        {
            Arrangement.PACK: _packed,
            Arrangement.SPREAD: _spread,
            Arrangement.NODE: _on_one_node,
        }
    )
)
