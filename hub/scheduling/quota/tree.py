"""Quota arithmetic on the tree of groups: guaranteed quota, limits, and what groups hold.

The limits of all groups above apply too, so everything here follows the chain from a group to
its root. A group that is unknown, or has an unknown group above it, may hold nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..model.snapshot import Allocation, Group, Kind, Share


def guarantees(groups: Iterable[Group]) -> Mapping[str, int]:
    """Return the guaranteed quota by group: its own, or the sum of its children if that is more.

    Kueue counts the quota of a cohort in the same way (``resource_node.go``). Groups in a circle
    count for themselves alone.
    """
    known = {group.name: group for group in groups}
    below: dict[str, list[Group]] = {name: [] for name in known}
    roots = []
    for group in known.values():
        if group.parent in known:
            below[group.parent].append(group)
        else:
            roots.append(group)
    found = {name: group.guaranteed for name, group in known.items()}
    order = list(roots)
    for group in order:
        order += below[group.name]
    for group in reversed(order):
        together = sum(found[child.name] for child in below[group.name])
        found[group.name] = max(group.guaranteed, together)
    return found


class GroupTree:
    """The groups of one snapshot. Chains are cached.

    A group with a borrowing limit has its effective guaranteed quota (``guarantees``), so that its
    limit leaves the groups below it theirs.
    """

    def __init__(self, groups: Iterable[Group]) -> None:
        self._groups = {group.name: group for group in groups}
        if limited := [each for each in self._groups.values() if each.borrowing is not None]:
            counted = guarantees(self._groups.values())
            for each in limited:
                self._groups[each.name] = replace(each, guaranteed=counted[each.name])
        self._ancestry: dict[str, tuple[Group, ...]] = {}
        self._models: dict[str, frozenset[str] | None] = {}
        self._subtree: dict[str, frozenset[str]] = {}
        self._children: dict[str | None, tuple[Group, ...]] | None = None

    @property
    def groups(self) -> tuple[Group, ...]:
        return tuple(self._groups.values())

    def children(self, parent: str | None) -> tuple[Group, ...]:
        """Return the children of a group; for None, the roots."""
        if self._children is None:
            found: dict[str | None, list[Group]] = {}
            for group in self._groups.values():
                found.setdefault(group.parent, []).append(group)
            self._children = {name: tuple(each) for name, each in found.items()}
        return self._children.get(parent, ())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._groups))

    def ancestry(self, name: str) -> tuple[Group, ...]:
        """Return a group and the groups above it, nearest first, as far as they are known.

        Allocations are counted for all of these, also where the chain is broken: a group whose
        parent is missing still uses its own quota.
        """
        if name not in self._ancestry:
            chain: list[Group] = []
            group = self._groups.get(name)
            while group is not None and group not in chain:
                chain.append(group)
                group = self._groups.get(group.parent) if group.parent is not None else None
            self._ancestry[name] = tuple(chain)
        return self._ancestry[name]

    def chain(self, name: str) -> tuple[Group, ...]:
        """Return a group and all groups above it up to the root; empty where one is missing.

        Permissions follow this chain, and an empty chain permits nothing. The chain of a group in a
        circle is empty too, since it has no root.
        """
        known = self.ancestry(name)
        return known if known and known[-1].parent is None else ()

    def models(self, name: str) -> frozenset[str] | None:
        """Return the device models that a group and all groups above it allow; None: all."""
        if name not in self._models:
            named = [group.models for group in self.ancestry(name) if group.models is not None]
            self._models[name] = frozenset.intersection(*named) if named else None
        return self._models[name]

    def subtree(self, name: str) -> frozenset[str]:
        """Return the names of a group and all groups below it."""
        if name not in self._subtree:
            inside = (each for each in self._groups if self._has(each, name))
            self._subtree[name] = frozenset(inside)
        return self._subtree[name]

    def _has(self, below: str, name: str) -> bool:
        return any(group.name == name for group in self.ancestry(below))


def diverging_group(chain: tuple[Group, ...], other: tuple[Group, ...]) -> Group | None:
    """Return the topmost group of ``other`` that is not in ``chain``; None if there is none."""
    names = {group.name for group in chain}
    return next((group for group in reversed(other) if group.name not in names), None)


THOUSAND = 1000
"""Devices are counted in thousandths, so that shares add up exactly."""


def size(devices: int, share: Share | None = None) -> int:
    """Return the quota usage in thousandths of a device; of a share, its compute."""
    return devices * THOUSAND if share is None else round(share.compute * THOUSAND)


class Tally:
    """Devices held by each group, and by each owner in each group.

    An allocation counts for its group and every group above, so that a limit is compared with one
    look-up at any depth of the tree.

    Attributes:
        groups: thousandths of a device by group.
        users: thousandths of a device by group and owner.
        sessions: sessions with devices by group and owner.
    """

    def __init__(self, tree: GroupTree, allocations: Iterable[Allocation] = ()) -> None:
        self._tree = tree
        self.groups: defaultdict[str, int] = defaultdict(int)
        self.users: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.sessions: defaultdict[tuple[str, str], int] = defaultdict(int)
        for allocation in allocations:
            self.count(allocation)

    def copy(self) -> Tally:
        clone = Tally(self._tree)
        clone.groups, clone.users = self.groups.copy(), self.users.copy()
        clone.sessions = self.sessions.copy()
        return clone

    def add(self, group: str, owner: str, thousandths: int, sessions: int = 0) -> None:
        """Add thousandths of a device and sessions; negative numbers subtract."""
        for each in self._tree.ancestry(group):
            key = (each.name, owner)
            self.groups[each.name] += thousandths
            self.users[key] += thousandths
            if sessions:
                self.sessions[key] += sessions

    def count(self, allocation: Allocation, times: int = 1) -> None:
        """Add an allocation, or subtract it with ``times`` -1."""
        if allocation.devices:
            weight = size(len(allocation.devices), allocation.share)
            sessions = times if allocation.kind is Kind.SESSION else 0
            self.add(allocation.group, allocation.owner, times * weight, sessions)

    def of_group(self, group: str) -> float:
        """Return the devices that a group holds; a whole number unless shares are among them."""
        return in_devices(self.groups[group])

    def of_user(self, group: str, owner: str) -> float:
        """Return the devices that an owner holds in a group."""
        return in_devices(self.users[group, owner])


def in_devices(thousandths: int) -> float:
    """Convert thousandths of a device to devices; an int if the number is whole."""
    whole, rest = divmod(thousandths, THOUSAND)
    return thousandths / THOUSAND if rest else whole


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """The limits of one request in a group: the smallest of each limit on the chain."""

    max_devices: int
    max_devices_per_user: int
    max_seconds: float


def group_max(group: Group) -> int:
    """Return the max quota: ``max_devices``, or guarantee plus borrowing limit if that is less."""
    if group.borrowing is None:
        return group.max_devices
    return min(group.max_devices, group.guaranteed + group.borrowing)


def limits(tree: GroupTree, group: str) -> GroupLimits | None:
    """Return the combined limits of the chain of a group; None where the chain is broken."""
    chain = tree.chain(group)
    if not chain:
        return None
    return GroupLimits(
        max_devices=min(map(group_max, chain)),
        max_devices_per_user=min(each.max_devices_per_user for each in chain),
        max_seconds=min(each.max_seconds for each in chain),
    )
