"""Where each group itself runs already, kept as its work starts and ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from copy import copy

from ..model.snapshot import Allocation
from .device_pool import DevicePool


class GroupLocality:
    """By group: the nodes on which it holds devices, as a set of nodes of the pool."""

    def __init__(self, pool: DevicePool, holdings: Iterable[Allocation] = ()) -> None:
        self._nodes: defaultdict[str, int] = defaultdict(int)
        self._counts: defaultdict[tuple[str, int], int] = defaultdict(int)
        """How often something of a group lies on a node."""
        for holding in holdings:
            self.moved(holding, 1, pool)

    def copy(self) -> GroupLocality:
        made = copy(self)
        made._nodes, made._counts = self._nodes.copy(), self._counts.copy()
        return made

    def of(self, group: str) -> int:
        return self._nodes.get(group, 0)

    def moved(self, holding: Allocation, times: int, pool: DevicePool) -> None:
        """A holding came (``times`` 1) or went (-1)."""
        for node in pool.nodes_of(holding):
            key = (holding.group, node)
            self._counts[key] += times
            if self._counts[key]:
                self._nodes[holding.group] |= 1 << node
            else:
                del self._counts[key]
                self._nodes[holding.group] &= ~(1 << node)
