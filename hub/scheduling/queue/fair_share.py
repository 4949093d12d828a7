"""Fair share: what everybody below a group has used and will use, over weight.

Hierarchical, as in Kay and Lauder, "A fair share scheduler" (CACM 1988) and Slurm's fair tree:
siblings are compared with siblings only. Past use decays and comes with the snapshot. To it
comes the *entry penalty*: what running work still needs by its expected end, so that a burst is
charged when it starts and not when it is over.

Everything is counted in whole millionths of a device-second, so that sums are exact in any order.
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
    """What so many thousandths of a device come to, in millionths of a device-second."""
    return thousandths * round(seconds * MILLI)


class FairShare:
    """What each node of the tree owes to its siblings: use, and what runs still needs."""

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
        """Thousandths of a device of what has not reached its expected end."""
        self._charges: defaultdict[Node, int] = defaultdict(int)
        """The same times those ends, and past use."""
        self._open: dict[str, tuple[int, Allocation]] = {}
        self._ends: list[tuple[int, str]] = []
        self.set_use(use)
        for allocation in allocations:
            self.add(allocation)

    def of(self, node: Node) -> int:
        return self._charges[node] - self._now * self._held[node]

    def of_owners(self, group: str, owners: Iterable[str]) -> list[int]:
        """The same for owners right below a group."""
        charges, held, now = self._charges, self._held, self._now
        nodes = [(group, owner) for owner in owners]
        return [charges[node] - now * held[node] for node in nodes]

    def set_use(self, use: Iterable[DecayedUsage]) -> None:
        """Replace what is known of the past of these owners in these groups."""
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
        """Time has passed: what is past its expected end needs nothing that is known."""
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
