"""Read the snapshot for the scheduler: the stored state, with the nodes that have each image."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from ..errors import Unavailable
from ..interfaces.images import ImageSource
from ..interfaces.store import Store
from ..scheduling.model.snapshot import Allocation, PendingRequest, Snapshot, open_nodes
from .context import Context

_One = TypeVar("_One", PendingRequest, Allocation)


@dataclass(frozen=True, slots=True)
class SnapshotReader:
    """Limits each request to the nodes that have its image: the scheduler knows nodes only.

    Attributes:
        grace: seconds, as in ``Snapshot``.
    """

    store: Store
    source: ImageSource
    grace: float

    @classmethod
    def of(cls, context: Context) -> SnapshotReader:
        return cls(context.store, context.backend, context.grace_seconds)

    def snapshot(self, now: float) -> Snapshot:
        """Read everything that a scheduling decision at ``now`` depends on."""
        return replace(self._placed(self.store.snapshot(now)), grace=self.grace)

    def _placed(self, snapshot: Snapshot) -> Snapshot:
        """Set the nodes of all requests whose image is missing on some node."""
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
        """Return the nodes of each image that some nodes lack, by reference."""
        try:
            images = self.source.images() or ()
        except Unavailable:
            return {}  # not known; an attempt that starts without its image reports it
        having = {image.reference: frozenset(image.nodes) for image in images}
        return {name: found for name, found in having.items() if not nodes <= found}
