"""The plan of one scheduling cycle: starts, preemptions, and a reason for every queued request.

All times are seconds since the epoch (UTC) as floats, all spans are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Reason(StrEnum):
    """The rule that keeps a request queued; ``hub.messages`` renders the sentence."""

    CLUSTER = "cluster"
    """It has its devices, and the queue of the cluster has not started it; its detail says why."""
    NO_FREE_DEVICE = "no_free_device"
    """It is the head of the queue, and too few fitting devices are free."""
    BEHIND_OTHERS = "behind_others"
    """Requests ahead of it need the same devices or headroom."""
    GROUP_MAXIMUM = "group_maximum"
    """Its group, or a group above, holds its max quota."""
    USER_MAXIMUM = "user_maximum"
    """Its owner holds the max quota of one member."""
    ABOVE_MAXIMUM = "above_maximum"
    """It exceeds a max quota on its own; the quota was lowered after admission."""
    POOL_TOO_SMALL = "pool_too_small"
    """Even with all devices free, too few fitting ones would be available."""
    BORROWING = "borrowing"
    """Its group holds its guaranteed quota and has reached its borrowing limit."""
    GUARANTEE = "guarantee"
    """It is not preemptible, and would use devices of another group's guaranteed quota."""
    RESERVATION = "reservation"
    """The free devices are kept for a reservation."""
    BUDGET = "budget"
    """Its group has used up its budget of this period."""
    SESSIONS = "sessions"
    """Its owner has the maximum number of sessions with devices."""
    RECLAIMING = "reclaiming"
    """Allocations are being preempted, or relocated, for it."""
    DRAINING = "draining"
    """It needs no device, and all nodes are drained."""
    ENGINE = "engine"
    """The nodes that it needs have an engine that does not answer; the detail is the sentence."""
    BACK_OFF = "back_off"
    """An attempt failed, and the back-off before the next one has not ended."""
    DEPENDENCY = "dependency"
    """It waits for other jobs; its detail says for which."""
    STARTING = "starting"
    """It starts in this cycle (with place 0)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Expected start of a request.

    Attributes:
        at: start if running requests end when they are expected to.
        latest: end of the interval; equal to ``at`` where only time limits are known.
    """

    at: float
    latest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start a request on these devices now.

    Attributes:
        nodes: for a request without devices, one of these nodes; None: any node that takes work.
        members: number of members of each role of a gang; empty for all that it wants.
    """

    request_id: str
    devices: tuple[str, ...]
    nodes: frozenset[str] | None = None
    members: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Preempt an allocation: it gets a preemption notice and a grace period, and is requeued.

    Attributes:
        for_request: the preemptor.
        why: ``GUARANTEE`` (its group borrows guaranteed quota of another) or ``BEHIND_OTHERS`` (an
            urgent request preempts opportunistic work).
        group: the group that reclaims its guaranteed quota, or that of the urgent request.
        lost: device-seconds of work since the last save.
        relocated: defragmentation: it is within its guaranteed quota and restarts elsewhere.
    """

    request_id: str
    for_request: str
    why: Reason
    group: str
    lost: float
    relocated: bool = False


class Wait(NamedTuple):
    """A request that stays queued.

    A tuple, because one is made for every queued request and a frozen dataclass takes twice as
    long.

    Attributes:
        place: position in the queue; 1 is next, 0 starts now.
        reason: the rule that holds it.
        detail: the object that the sentence names: the group at its limit, the missing model, …
        estimate: None past the first page of the queue, or where the start cannot be known.
    """

    request_id: str
    place: int
    reason: Reason
    detail: str = ""
    estimate: Estimate | None = None

    @property
    def ahead(self) -> int:
        """Number of requests with devices ahead of it."""
        return max(0, self.place - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The result of one cycle. Every queued request is in ``starts`` or in ``waits``."""

    starts: tuple[Start, ...] = ()
    waits: tuple[Wait, ...] = field(default=())
    stops: tuple[Stop, ...] = ()
