"""What the controllers remember between two rounds of the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..records.leases import Handle, LeaseRecord
from ..records.requests import RequestRecord

Pairs = Sequence[tuple[LeaseRecord, RequestRecord]]


@dataclass(slots=True)
class LoopMemory:
    """What the loop knows beyond the store; all of it may be lost."""

    seen: dict[str, float] = field(default_factory=dict)
    """Last sign of life by lease."""
    handles: dict[str, Handle] = field(default_factory=dict)
    """What the backend returned, until the attempt has reported itself."""
    unattended: dict[str, float] = field(default_factory=dict)
    """Since when a waiting session has had no spawner at the hub."""
    stopping: dict[str, float] = field(default_factory=dict)
    """Since when a lease is on its way out."""
    last: dict[str, float] = field(default_factory=dict)
    """When each periodic duty was last done."""

    def due(self, duty: str, every: float, now: float) -> bool:
        if now - self.last.get(duty, 0.0) < every:
            return False
        self.last[duty] = now
        return True

    def forget(self, lease_id: str) -> None:
        for known in (self.seen, self.handles, self.stopping):
            known.pop(lease_id, None)
