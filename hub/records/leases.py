"""A lease on devices, its state, and the handle of the process that runs on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from .gangs import GangMember, member_id
from .json_value import Json


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


class SignKind(StrEnum):
    """What may be wrong with a running job."""

    LOSS_NOT_FINITE = "loss-not-finite"
    LOSS_RISING = "loss-rising"
    LOSS_STALLED = "loss-stalled"
    MEMORY_GROWTH = "memory-growth"
    DEVICE_MEMORY_GROWTH = "device-memory-growth"
    DEVICES_UNUSED = "devices-unused"
    DEVICES_IDLE = "devices-idle"
    STARVED_LOADER = "starved-loader"
    CONSTANT_LOAD = "constant-load"
    CPU_CONTENTION = "cpu-contention"
    CPU_LIMITED = "cpu-limited"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSign:
    """A sign that something is wrong with an attempt of a job: a suggestion, never a cause to stop.

    Attributes:
        since: when it began, in seconds since the epoch (UTC).
        found_at: when the service found it.
        seen_at: when the service last found it.
        ended_at: when the service no longer found it; None while it lasts.
        figures: what was measured; ``hub.messages.job_signs`` words it.
    """

    kind: SignKind
    since: float
    found_at: float
    seen_at: float
    ended_at: float | None = None
    figures: Mapping[str, Json] = field(default_factory=dict)

    def as_json(self) -> dict[str, Json]:
        return {
            "kind": str(self.kind),
            "since": self.since,
            "found_at": self.found_at,
            "seen_at": self.seen_at,
            "ended_at": self.ended_at,
            "figures": dict(self.figures),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> JobSign:
        return cls(**{**values, "kind": SignKind(values["kind"])})


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
    signs: tuple[JobSign, ...] = ()
    """What may be wrong with the attempt, in the order in which it was found."""

    @property
    def process_groups(self) -> tuple[str, ...]:
        """The ids of its process groups: one for each member, else its own."""
        return tuple(member_id(self.id, each.rank) for each in self.members) or (self.id,)

    def handle_of(self, member: GangMember) -> Handle | None:
        """Return the handle of a member; None until its runner has reported it."""
        if member.pid is None:
            return None
        return Handle(pid=member.pid, started_at=member.process_started_at)
