"""State that the controllers keep between two cycles, outside the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..records.gangs import split_member_id
from ..records.leases import Handle, LeaseRecord
from ..records.requests import RequestRecord
from ..scheduling.model.plan import Wait

Pairs = Sequence[tuple[LeaseRecord, RequestRecord]]


@dataclass(slots=True)
class LoopMemory:
    """State that a restarted service can do without."""

    seen: dict[str, float] = field(default_factory=dict)
    """By lease: time of the last sign of life."""
    handles: dict[str, Handle] = field(default_factory=dict)
    """By lease or member: the handle from the backend, until the attempt has reported it."""
    unattended: dict[str, float] = field(default_factory=dict)
    """By request: since when a waiting session has had no spawner at the hub."""
    stopping: dict[str, float] = field(default_factory=dict)
    """By lease: since when it has been stopping."""
    waiting: dict[str, Wait] = field(default_factory=dict)
    """By lease: its wait in the queue of a cluster."""
    postponed: bool = False
    """Whether this cycle has moved the start of a lease."""
    last: dict[str, float] = field(default_factory=dict)
    """By duty: when it was last started."""

    def due(self, duty: str, every: float, now: float) -> bool:
        """Whether a periodic duty is due; if so, record that it starts now."""
        if now - self.last.get(duty, 0.0) < every:
            return False
        self.last[duty] = now
        return True

    def forget(self, lease_id: str) -> None:
        """Drop the entries of a lease that has ended."""
        for by_lease in (self.seen, self.stopping):
            by_lease.pop(lease_id, None)
        for group in [name for name in self.handles if split_member_id(name)[0] == lease_id]:
            del self.handles[group]
