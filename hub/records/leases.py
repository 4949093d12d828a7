"""A lease on devices, its state, and the handle of the process that runs on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """Where the first process of an attempt is to be found.

    Attributes:
        started_at: create time of the process as the kernel tells it; with the pid it names
            one process for good, a recycled pid does not match.
    """

    pid: int
    started_at: float


class LeaseState(StrEnum):
    LIVE = "live"
    SUSPECT = "suspect"
    """Expired without a sign of life. The devices are still taken."""
    RELEASED = "released"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """Named devices, granted to one attempt of one request.

    Attributes:
        id: unique; processes carry it as ``CARREL_LEASE``.
        epoch: number of the attempt, from 1. What comes back with an older one is fenced.
        seen_at: last sign of life (the grant counts as the first).
        charged_until: the ledger holds everything up to here.
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
    """When the attempt last said that its work is saved."""
