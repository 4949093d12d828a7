"""What a decision is made from: the stored snapshot, and which machines may take what waits.

Of several machines, those that have its image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from ..errors import Unavailable
from ..interfaces.images import ImageSource
from ..interfaces.store import Store
from ..scheduling.model.snapshot import Allocation, PendingRequest, Snapshot, open_nodes

_One = TypeVar("_One", PendingRequest, Allocation)


@dataclass(frozen=True, slots=True)
class SnapshotReader:
    """What the engines have, for the scheduler: it knows no images, only nodes.

    Attributes:
        grace: seconds, as in ``Snapshot``.
    """

    store: Store
    source: ImageSource
    grace: float

    def snapshot(self, now: float) -> Snapshot:
        """Everything that a decision of now depends on."""
        return replace(self._placed(self.store.snapshot(now)), grace=self.grace)

    def _placed(self, snapshot: Snapshot) -> Snapshot:
        """The same, with the nodes of all whose image is not on each of them."""
        if not snapshot.pending:
            return snapshot
        nodes = self.store.nodes()
        if len(nodes) < 2:  # noqa: PLR2004  # nothing to choose from
            return snapshot
        on = self._partly(frozenset(nodes))
        if not on:
            return snapshot
        ready = open_nodes(nodes, self.store.marks())

        def there(each: _One) -> _One:
            return replace(each, nodes=on[each.image] & ready) if each.image in on else each

        pending = tuple(map(there, snapshot.pending))
        return replace(
            snapshot, pending=pending, allocations=tuple(map(there, snapshot.allocations))
        )

    def _partly(self, nodes: frozenset[str]) -> dict[str, frozenset[str]]:
        """Where images are that some nodes lack, by reference."""
        try:
            images = self.source.images() or ()
        except Unavailable:
            return {}  # nobody knows; what starts without its image says so
        having = {image.reference: frozenset(image.nodes) for image in images}
        return {name: found for name, found in having.items() if not nodes <= found}
