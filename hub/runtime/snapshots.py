"""Read the snapshot for the scheduler, with the nodes that have the image of each request."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

from ..errors import Unavailable
from ..interfaces.images import ImageSource
from ..interfaces.run_times import NoRunTimes, RunTimes
from ..interfaces.store import Store
from ..scheduling.cycle.elastic_gangs import within_headroom
from ..scheduling.model.learned_order import LearnedOrder
from ..scheduling.model.snapshot import Allocation, PendingRequest, Snapshot, open_nodes
from .context import Context

_Placed = TypeVar("_Placed", PendingRequest, Allocation)


@dataclass(frozen=True, slots=True)
class SnapshotReader:
    """Reads snapshots and limits requests to nodes with their image.

    The scheduler itself knows nodes, but not images.

    Attributes:
        grace: the grace period of preemptions in seconds, as in ``Snapshot``.
        learned_order: as in ``Snapshot``.
        run_times: revises what is expected of running jobs.
    """

    store: Store
    source: ImageSource
    grace: float
    run_times: RunTimes = field(default_factory=NoRunTimes)
    learned_order: LearnedOrder | None = None

    @classmethod
    def of(cls, context: Context) -> SnapshotReader:
        return cls(
            context.store,
            context.backend,
            context.grace_seconds,
            run_times=context.run_times,
            learned_order=context.learned_order,
        )

    def snapshot(self, now: float) -> Snapshot:
        """Read everything that a scheduling decision at ``now`` depends on."""
        snapshot = within_headroom(self._placed(self._revised(self.store.snapshot(now))))
        return replace(snapshot, grace=self.grace, learned_order=self.learned_order)

    def _revised(self, snapshot: Snapshot) -> Snapshot:
        """Set the expected run times of running jobs that their finished cells tell better."""
        revised = self.run_times.revised_seconds()
        if not revised:
            return snapshot
        allocations = tuple(
            replace(each, expected=min(revised[key], each.until - each.since))
            if (key := (each.request_id, each.since)) in revised
            else each
            for each in snapshot.allocations
        )
        return replace(snapshot, allocations=allocations)

    def _placed(self, snapshot: Snapshot) -> Snapshot:
        """Set the nodes of all requests whose image is missing on some node."""
        if not snapshot.pending:
            return snapshot
        nodes = self.store.nodes()
        if len(nodes) < 2:  # noqa: PLR2004  # nothing to choose from
            return snapshot
        nodes_by_image = self._incomplete_images(frozenset(nodes))
        if not nodes_by_image:
            return snapshot
        ready = open_nodes(nodes, self.store.marks())

        def limited(item: _Placed) -> _Placed:
            found = nodes_by_image.get(item.image)
            return item if found is None else replace(item, nodes=found & ready)

        return replace(
            snapshot,
            pending=tuple(map(limited, snapshot.pending)),
            allocations=tuple(map(limited, snapshot.allocations)),
        )

    def _incomplete_images(self, nodes: frozenset[str]) -> dict[str, frozenset[str]]:
        """Return the nodes of each image that is missing on some node, by image reference."""
        try:
            images = self.source.images() or ()
        except Unavailable:
            return {}  # unknown; an attempt that starts without its image reports it
        by_reference = {image.reference: frozenset(image.nodes) for image in images}
        return {name: found for name, found in by_reference.items() if not nodes <= found}
