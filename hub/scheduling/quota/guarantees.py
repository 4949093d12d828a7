"""Guaranteed quota: entitlement to reclaim, capacity reserved for others, reclaimable capacity.

A guaranteed quota is what Kueue calls the nominal quota of a queue in its cohort. Amounts are
in thousandths of a device, and changes are only recorded: sums are computed at the next query,
since allocations change much more often than sums are queried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from copy import copy

from ..model.snapshot import Allocation, Group, PendingRequest, PriorityClass
from .tree import THOUSAND, GroupTree, Tally, size


class Entitlement:
    """The set of requests that may reclaim guaranteed quota, given the current allocations."""

    def __init__(self, tree: GroupTree, tally: Tally, guaranteed: Mapping[str, int]) -> None:
        self._tree, self._tally, self._guaranteed = tree, tally, guaranteed
        self._left: dict[str, int] = {}

    def copy(self, tally: Tally) -> Entitlement:
        clone = Entitlement(self._tree, tally, self._guaranteed)
        clone._left = self._left.copy()
        return clone

    def __contains__(self, request: PendingRequest) -> bool:
        """Return whether a request is entitled.

        It is urgent, or with it a group of its chain stays within its guaranteed quota. A request
        whose group is missing may hold nothing, however urgent it is.
        """
        if not request.devices:
            return False
        if request.priority is PriorityClass.URGENT:
            return bool(self._tree.chain(request.group))
        return size(request.devices, request.share) <= self.unused_in_chain(request.group)

    def among(self, requests: Iterable[PendingRequest]) -> Iterator[PendingRequest]:
        """Yield the entitled requests; groups without unused guaranteed quota are skipped."""
        passed: set[str] = set()
        urgent = PriorityClass.URGENT
        for each in requests:
            if each.group in passed and each.priority is not urgent:
                continue
            if each in self:
                yield each
            elif self.unused_in_chain(each.group) <= 0:
                passed.add(each.group)

    def unused_in_chain(self, group: str) -> int:
        """Return the largest unused guaranteed quota along the chain of a group."""
        left = self._left.get(group)
        if left is None:
            chain = self._tree.chain(group)
            left = max([self.unused(each.name) for each in chain], default=0)
            self._left[group] = left
        return left

    def unused(self, group: str) -> int:
        """Return the unused guaranteed quota of a group itself; negative where it borrows."""
        return self._guaranteed[group] * THOUSAND - self._tally.groups[group]

    def invalidate(self, group: str) -> None:
        """Clear the cache for the tree of a group whose allocations changed."""
        if not self._left:
            return
        known = self._tree.ancestry(group)
        for name in self._tree.subtree(known[-1].name) if known else ():
            self._left.pop(name, None)


class ReservedCapacity:
    """Devices that groups have a claim to and do not hold yet.

    A claim is a number of devices of a group. It contains the claims of the groups below, so that
    nothing is counted twice.
    """

    def __init__(self, tree: GroupTree, tally: Tally, amounts: Mapping[str, int]) -> None:
        self._tree, self._tally = tree, tally
        self._amounts = {name: count * THOUSAND for name, count in amounts.items() if count > 0}
        self._unfilled: dict[str, int] = {}
        self._below: defaultdict[str | None, int] = defaultdict(int)
        """Sum of the unfilled claims of the children, by group; by None, of the roots."""
        self._changed = set(self._amounts)
        """Groups whose allocations changed since the last query."""

    def copy(self, tally: Tally) -> ReservedCapacity:
        clone = copy(self)
        clone._tally, clone._changed = tally, self._changed.copy()
        clone._unfilled, clone._below = self._unfilled.copy(), self._below.copy()
        return clone

    def __bool__(self) -> bool:
        return self._current()[None] > 0

    @property
    def has_claims(self) -> bool:
        """Whether any group has a claim, unfilled or not."""
        return bool(self._amounts)

    def invalidate(self, group: str) -> None:
        """Record that the allocations of a group changed."""
        if self._amounts:
            self._changed.add(group)

    def _current(self) -> defaultdict[str | None, int]:
        """Return the unfilled claims below every group, after all recorded changes."""
        while self._changed:
            for each in self._tree.chain(self._changed.pop()):
                own = max(0, self._amounts.get(each.name, 0) - self._tally.groups[each.name])
                lacks = max(own, self._below[each.name])
                # Also if unchanged: the claims of the groups above may have changed on their own.
                self._below[each.parent] += lacks - self._unfilled.get(each.name, 0)
                self._unfilled[each.name] = lacks
        return self._below

    def of_others(self, chain: tuple[Group, ...]) -> int:
        """Return the unfilled claims of all groups outside a chain."""
        return self._current()[chain[0].name] + sum(self._beside(group) for group in chain)

    def of_others_with(self, tally: Tally, chain: tuple[Group, ...]) -> int:
        """``of_others`` with another tally."""
        if not self._amounts:
            return 0
        clone = self.copy(tally)
        clone._changed = set(self._amounts)
        return clone.of_others(chain)

    def of_others_beyond_guarantee(self, chain: tuple[Group, ...], weight: int) -> int:
        """Return the unfilled claims of others, where a group borrows with ``weight`` more.

        A group that stays within its guaranteed quota, together with all unfilled claims below it,
        borrows nothing: claims beside it do not count.
        """
        below = self._current()
        others = lacks = below[chain[0].name]
        for group in chain:
            holds, own = self._tally.groups[group.name] + weight, self._amounts.get(group.name, 0)
            if holds + lacks > own:
                others += self._beside(group)
            lacks = max(own - holds, lacks) + self._beside(group)
        return others

    def _beside(self, group: Group) -> int:
        return self._below[group.parent] - self._unfilled.get(group.name, 0)


class ReclaimableCapacity:
    """Reclaimable capacity: preemptible work of groups that exceed their guaranteed quotas."""

    def __init__(
        self,
        tree: GroupTree,
        tally: Tally,
        guaranteed: Mapping[str, int],
        allocations: Iterable[Allocation] = (),
    ) -> None:
        self._tree, self._tally = tree, tally
        self._guaranteed = guaranteed
        self._direct: defaultdict[str, int] = defaultdict(int)
        self._lent: dict[str, int] = {}
        self._below: defaultdict[str | None, int] = defaultdict(int)
        self._changed: set[str] = set()
        for allocation in allocations:
            self.count(allocation, 1)

    def copy(self, tally: Tally) -> ReclaimableCapacity:
        clone = copy(self)
        clone._tally, clone._changed = tally, self._changed.copy()
        clone._direct, clone._lent = self._direct.copy(), self._lent.copy()
        clone._below = self._below.copy()
        return clone

    @property
    def total(self) -> int:
        """Reclaimable capacity of all groups."""
        while self._changed:
            for each in self._tree.chain(self._changed.pop()):
                lent = self._by(each.name)
                self._below[each.parent] += lent - self._lent.get(each.name, 0)
                self._lent[each.name] = lent
        return self._below[None]

    def after(self, chain: tuple[Group, ...], weight: int) -> int:
        """Return ``total`` if the first group of a chain held ``weight`` more, not preemptible.

        Its guaranteed quota may then cover that, and its other work can be reclaimed.
        """
        total, more = self.total, 0
        for each in chain:
            more = self._by(each.name, weight, more) - self._lent.get(each.name, 0)
        return total + more

    def _by(self, group: str, weight: int = 0, more: int = 0) -> int:
        """Return the reclaimable capacity of a group that holds ``weight`` more.

        ``more``: additional reclaimable capacity below it.
        """
        guaranteed = self._guaranteed.get(group, 0) * THOUSAND
        above = max(0, self._tally.groups[group] + weight - guaranteed)
        return min(self._direct[group] + self._below[group] + more, above)

    def count(self, allocation: Allocation, times: int) -> None:
        """Add an allocation (``times`` 1) or remove it (-1)."""
        self._changed.add(allocation.group)
        if allocation.preemptible and allocation.devices:
            self._direct[allocation.group] += times * size(
                len(allocation.devices), allocation.share
            )


def not_lent(tree: GroupTree, guaranteed: Mapping[str, int]) -> Mapping[str, int]:
    """Return the guaranteed devices that groups do not lend (Kueue's lending limit)."""
    return {
        group.name: max(0, guaranteed[group.name] - group.lending)
        for group in tree.groups
        if group.lending is not None
    }
