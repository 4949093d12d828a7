"""Hierarchical fair share: past use and expected rest of running requests, over weight.

Siblings are compared with siblings only, as in Kay and Lauder, "A fair share scheduler" (CACM
1988) and Slurm's fair tree. Past use is decayed and comes with the snapshot. Added to it is the
*entry penalty*: what running requests still need until their expected ends, so that a burst is
charged when it starts.

Amounts are whole millionths of a device-second, so that sums are exact in any order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from heapq import heappop, heappush

from ..model.snapshot import Allocation, DecayedUsage
from ..quota.tree import GroupTree, size
from .running_set import planned_end

Node = str | tuple[str, str]
"""A group, or an owner right below a group."""

MILLI = 1000
MICRO = 1_000_000


def cost(thousandths: int, seconds: float) -> int:
    """Return the cost of holding thousandths of a device, in millionths of a device-second."""
    return thousandths * round(seconds * MILLI)


class FairShare:
    """Charges of every node of the tree: past use, and the expected rest of running requests."""

    def __init__(
        self,
        tree: GroupTree,
        use: Iterable[DecayedUsage] = (),
        allocations: Iterable[Allocation] = (),
        now: float = 0,
    ) -> None:
        self._tree = tree
        self._now = round(now * MILLI)
        self._uses: dict[tuple[str, str], int] = {}
        self._held: defaultdict[Node, int] = defaultdict(int)
        """Thousandths of a device of allocations before their expected ends."""
        self._charges: defaultdict[Node, int] = defaultdict(int)
        """Past use, plus the thousandths held times their expected ends."""
        self._open: dict[str, tuple[int, Allocation]] = {}
        self._ends: list[tuple[int, str]] = []
        self.set_use(use)
        for allocation in allocations:
            self.add(allocation)

    def of(self, node: Node) -> int:
        """Return the charge of a node."""
        return self._charges[node] - self._now * self._held[node]

    def of_owners(self, group: str, owners: Iterable[str]) -> list[int]:
        """Return the charges of owners directly in a group."""
        charges, held, now = self._charges, self._held, self._now
        nodes = [(group, owner) for owner in owners]
        return [charges[node] - now * held[node] for node in nodes]

    def set_use(self, use: Iterable[DecayedUsage]) -> None:
        """Replace the past use of these owners in these groups."""
        for each in use:
            key = (each.group, each.owner)
            new = round(each.device_seconds * MICRO)
            more = new - self._uses.get(key, 0)
            self._uses[key] = new
            for node in self._nodes(*key) if more else ():
                self._charges[node] += more

    def uses(self) -> tuple[DecayedUsage, ...]:
        return tuple(
            DecayedUsage(group=group, owner=owner, device_seconds=value / MICRO)
            for (group, owner), value in self._uses.items()
        )

    def advance(self, now: float) -> None:
        """Advance the time: allocations past their expected ends are charged nothing more."""
        self._now = round(now * MILLI)
        while self._ends and self._ends[0][0] <= self._now:
            end, request_id = heappop(self._ends)
            found = self._open.get(request_id)
            if found is not None and found[0] == end:
                self._close(request_id)

    def add(self, allocation: Allocation) -> None:
        end = round(planned_end(allocation) * MILLI)
        if not allocation.devices or end <= self._now:
            return
        self._open[allocation.request_id] = (end, allocation)
        heappush(self._ends, (end, allocation.request_id))
        self._count(allocation, end, 1)

    def remove(self, allocation: Allocation) -> None:
        if allocation.request_id in self._open:
            self._close(allocation.request_id)

    def _close(self, request_id: str) -> None:
        end, allocation = self._open.pop(request_id)
        self._count(allocation, end, -1)

    def _count(self, allocation: Allocation, end: int, times: int) -> None:
        weight = times * size(len(allocation.devices), allocation.share)
        for node in self._nodes(allocation.group, allocation.owner):
            self._held[node] += weight
            self._charges[node] += weight * end

    def _nodes(self, group: str, owner: str) -> list[Node]:
        return [(group, owner), *(each.name for each in self._tree.ancestry(group))]
