"""Cache the queue positions of the newest plan, for pages and responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from ..scheduling.model.plan import Plan, Reason, Wait


class PlanCache:
    """The waits of the last scheduling cycle, in queue order.

    A new plan replaces the mapping as a whole, so that readers need no lock.
    """

    def __init__(self) -> None:
        self._waits: dict[str, Wait] = {}
        self._planned: dict[str, Wait] = {}
        self._dependencies: Mapping[str, str] = {}
        self._cluster_waits: dict[str, Wait] = {}

    def publish(self, plan: Plan) -> bool:
        """Replace the plan; return whether any queue position changed."""
        self._planned = {wait.request_id: wait for wait in plan.waits}
        return self._compose()

    def publish_dependencies(self, sentences: Mapping[str, str]) -> bool:
        """Replace what requests wait for, by request; return whether anything changed."""
        if sentences == self._dependencies:
            return False
        self._dependencies = dict(sentences)
        return self._compose()

    def _compose(self) -> bool:
        held = {
            name: self._planned[name]._replace(detail=sentence)
            for name, sentence in self._dependencies.items()
            if name in self._planned and self._planned[name].reason is Reason.DEPENDENCY
        }
        waits = self._planned | held
        changed = waits != self._waits
        self._waits = waits
        return changed

    def publish_cluster_waits(self, waits: Iterable[Wait]) -> bool:
        """Replace the waits in the queue of a cluster; return whether any changed."""
        found = {wait.request_id: wait for wait in waits}
        changed = found != self._cluster_waits
        self._cluster_waits = found
        return changed

    def cluster_wait_of(self, request_id: str) -> Wait | None:
        """Return the wait of a starting request in the queue of a cluster, if it waits there."""
        return self._cluster_waits.get(request_id)

    def queue(self, limit: int) -> tuple[Wait, ...]:
        """Return the first queued requests, in order."""
        return tuple(islice(self._waits.values(), limit))

    @property
    def waiting(self) -> int:
        """The number of queued requests."""
        return len(self._waits)

    @property
    def waits(self) -> Mapping[str, Wait]:
        """All waits by request id; never changed in place."""
        return self._waits

    def wait_of(self, request_id: str) -> Wait | None:
        """Return the wait of a request; None before its first cycle."""
        return self._waits.get(request_id)
