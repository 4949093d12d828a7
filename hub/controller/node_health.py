"""Cordon nodes whose engine does not answer, so that no work starts there.

Running work is neither lost nor charged twice; it is reconciled once the engine answers.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ..runtime.context import Context
from ..scheduling.model.snapshot import Mark, MarkKind

log = logging.getLogger(__name__)

SERVICE = "carrel"


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """Called by the loop; stores a mark on every node that does not answer."""

    context: Context

    def reconcile(self, now: float) -> bool:
        """Update the marks of all nodes; return whether anything changed."""
        store = self.context.store
        states = self.context.backend.nodes()
        if not states:
            return False
        marked = {m.target: m for m in store.marks() if m.kind is MarkKind.UNREACHABLE}
        changed = False
        for state in states:
            mark = marked.get(state.name)
            if state.why_not == (mark.why if mark else ""):
                continue
            changed = True
            if not state.why_not:
                log.info("%s is schedulable again", state.name)
                store.remove_mark(state.name, MarkKind.UNREACHABLE)
                continue
            log.warning("%s is cordoned: %s", state.name, state.why_not)
            if state.name not in store.nodes():
                store.sync_devices(state.name, ())
            store.put_mark(
                Mark(
                    target=state.name,
                    kind=MarkKind.UNREACHABLE,
                    since=mark.since if mark else now,
                    why=state.why_not,
                    by=SERVICE,
                )
            )
        return changed
