"""What is kept for others: devices that groups are promised and do not hold yet.

A claim is a number of devices per group. What a group still lacks of it is *unfilled*; a claim
of a group above contains those below it, so that nothing is kept twice. What is unfilled is
counted in thousandths of a device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from copy import copy

from .model import Group, Holding
from .quota import THOUSAND, Tally, Tree, size


class Claims:
    """The unfilled part of a claim of each group, kept up to date along the chain."""

    def __init__(self, tree: Tree, tally: Tally, amounts: Mapping[str, int]) -> None:
        self._tree = tree
        self._amounts = {name: count * THOUSAND for name, count in amounts.items() if count > 0}
        self._unfilled: dict[str, int] = {}
        self._below: defaultdict[str | None, int] = defaultdict(int)
        """By group, and for None of all roots: the sum of what those right below it lack."""
        for name in self._amounts:
            self.follow(name, tally)

    def copy(self) -> Claims:
        made = copy(self)
        made._unfilled, made._below = self._unfilled.copy(), self._below.copy()
        return made

    def __bool__(self) -> bool:
        return self._below[None] > 0

    def follow(self, group: str, tally: Tally) -> None:
        """What a group holds has changed."""
        if not self._amounts:
            return
        for each in self._tree.chain(group):
            own = max(0, self._amounts.get(each.name, 0) - tally.groups[each.name])
            lacks = max(own, self._below[each.name])
            before = self._unfilled.get(each.name, 0)
            if lacks == before:
                # Those above hold something else all the same, and may lack less by themselves.
                continue
            self._unfilled[each.name] = lacks
            self._below[each.parent] += lacks - before

    def of_others(self, chain: tuple[Group, ...]) -> int:
        """What all those lack that are not on a chain themselves."""
        return self._below[chain[0].name] + sum(self._beside(group) for group in chain)

    def of_others_than_the_guaranteed(
        self, chain: tuple[Group, ...], weight: int, tally: Tally
    ) -> int:
        """The same, without those against whom a group takes only what it is guaranteed itself.

        Seen from outside a group that stays within its guarantee, nothing is borrowed.
        """
        total = self._below[chain[0].name]
        borrowed = None
        for group in chain:
            if tally.groups[group.name] + weight <= self._amounts.get(group.name, 0):
                borrowed = total
            total += self._beside(group)
        return total if borrowed is None else borrowed

    def _beside(self, group: Group) -> int:
        return self._below[group.parent] - self._unfilled.get(group.name, 0)


class Lent:
    """What could be asked back: preemptible work of those that hold more than their guarantee."""

    def __init__(
        self,
        tree: Tree,
        tally: Tally,
        guaranteed: Mapping[str, int],
        holdings: Iterable[Holding] = (),
    ) -> None:
        self._tree = tree
        self._guaranteed = guaranteed
        self._direct: defaultdict[str, int] = defaultdict(int)
        self._lent: dict[str, int] = {}
        self._below: defaultdict[str | None, int] = defaultdict(int)
        for holding in holdings:
            self.follow(holding, 1, tally)

    def copy(self) -> Lent:
        made = copy(self)
        made._direct, made._lent = self._direct.copy(), self._lent.copy()
        made._below = self._below.copy()
        return made

    @property
    def total(self) -> int:
        return self._below[None]

    def follow(self, holding: Holding, times: int, tally: Tally) -> None:
        """A holding came (``times`` 1) or went (-1), and the tally knows it already."""
        if holding.preemptible and holding.devices:
            weight = times * size(len(holding.devices), holding.share)
            self._direct[holding.group] += weight
        for each in self._tree.chain(holding.group):
            guaranteed = self._guaranteed.get(each.name, 0) * THOUSAND
            above = max(0, tally.groups[each.name] - guaranteed)
            lent = min(self._direct[each.name] + self._below[each.name], above)
            self._below[each.parent] += lent - self._lent.get(each.name, 0)
            self._lent[each.name] = lent


def not_lent(tree: Tree) -> Mapping[str, int]:
    """Devices that groups do not lend of their guarantee (Kueue's lending limit)."""
    return {
        group.name: group.guaranteed - group.lending
        for group in tree.groups
        if group.lending is not None
    }
