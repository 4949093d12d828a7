"""A lease on devices, its state, and the handle of the process that runs on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .gangs import GangMember, member_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """Identifies the first process of an attempt.

    Attributes:
        started_at: create time of the process from the kernel; together with the pid it
            identifies one process, since a reused pid does not match.
    """

    pid: int
    started_at: float


class LeaseState(StrEnum):
    LIVE = "live"
    SUSPECT = "suspect"
    """Expired without a heartbeat; it still holds its devices."""
    RELEASED = "released"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """Devices granted to one attempt of one request.

    Attributes:
        id: unique; processes have it as ``CARREL_LEASE``.
        epoch: number of the attempt, from 1. Calls with an older number are fenced.
        seen_at: last heartbeat (the grant counts as the first).
        charged_until: the ledger is complete up to here.
    """

    id: str
    request_id: str
    epoch: int
    node: str
    devices: tuple[str, ...]
    state: LeaseState
    granted_at: float
    expires_at: float
    seen_at: float
    charged_until: float
    launched_at: float | None = None
    """When the attempt went to ``starting``."""
    released_at: float | None = None
    handle: Handle | None = None
    saved_at: float | None = None
    """When the attempt last reported that its work is saved."""
    members: tuple[GangMember, ...] = ()
    """By rank; empty for a request that is not a gang."""

    @property
    def process_groups(self) -> tuple[str, ...]:
        """The ids of its process groups: one for each member, else its own."""
        return tuple(member_id(self.id, each.rank) for each in self.members) or (self.id,)

    def handle_of(self, member: GangMember) -> Handle | None:
        """Return the handle of a member; None until its runner has reported it."""
        if member.pid is None:
            return None
        return Handle(pid=member.pid, started_at=member.process_started_at)
