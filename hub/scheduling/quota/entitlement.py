"""What each group of the tree is guaranteed, and who may have it now.

A guarantee is what Kueue calls the nominal quota of a queue in its cohort.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..model.snapshot import PendingRequest, PriorityClass
from .tree import THOUSAND, GroupTree, Tally, size


class Entitlement:
    """Who may ask back what others borrow, next to what is held."""

    def __init__(self, tree: GroupTree, tally: Tally, guaranteed: Mapping[str, int]) -> None:
        self._tree, self._tally, self._guaranteed = tree, tally, guaranteed
        self._left: dict[str, int] = {}

    def copy(self, tally: Tally) -> Entitlement:
        made = Entitlement(self._tree, tally, self._guaranteed)
        made._left = self._left.copy()
        return made

    def __contains__(self, request: PendingRequest) -> bool:
        """Whether it is urgent, or some group of its chain stays within its guarantee with it.

        Whose group is missing may hold nothing, however urgent it is.
        """
        if not request.devices:
            return False
        if request.priority is PriorityClass.URGENT:
            return bool(self._tree.chain(request.group))
        return size(request.devices, request.share) <= self.left(request.group)

    def among(self, requests: Iterable[PendingRequest]) -> Iterator[PendingRequest]:
        """Those that may ask; a group that holds its guarantee is passed over at once."""
        passed: set[str] = set()
        urgent = PriorityClass.URGENT
        for each in requests:
            if each.group in passed and each.priority is not urgent:
                continue
            if each in self:
                yield each
            elif self.left(each.group) <= 0:
                passed.add(each.group)

    def left(self, group: str) -> int:
        """Of the guarantees along a group's chain, the most that is left of one, in thousandths
        of a device."""
        left = self._left.get(group)
        if left is None:
            chain = self._tree.chain(group)
            left = max([self.left_of(each.name) for each in chain], default=0)
            self._left[group] = left
        return left

    def left_of(self, group: str) -> int:
        """What is left of the guarantee of a group itself; less than 0 where it holds more."""
        return self._guaranteed[group] * THOUSAND - self._tally.groups[group]

    def moved(self, group: str) -> None:
        """What a group holds has changed, and with it what is left to all below those above it."""
        if not self._left:
            return
        known = self._tree.known(group)
        for name in self._tree.below(known[-1].name) if known else ():
            self._left.pop(name, None)
