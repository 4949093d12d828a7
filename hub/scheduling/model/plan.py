"""What a decision says: who starts, who is asked back, and why everybody else waits.

All times are seconds since the epoch (UTC) as floats, all spans are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Reason(StrEnum):
    """Why a request waits; one renderer (``hub.wording``) makes the sentence."""

    NO_FREE_DEVICE = "no_free_device"
    """It is next, and too few fitting devices are free."""
    BEHIND_OTHERS = "behind_others"
    """Others are ahead of it for the same devices."""
    GROUP_MAXIMUM = "group_maximum"
    """Its group (or a group above) holds its maximum."""
    USER_MAXIMUM = "user_maximum"
    """Its owner holds the maximum that one member may."""
    ABOVE_MAXIMUM = "above_maximum"
    """It asks for more than its group or its owner may hold at all; the limit was lowered."""
    POOL_TOO_SMALL = "pool_too_small"
    """Too few fitting devices could be lent now, were all of them free."""
    BORROWING = "borrowing"
    """Its group holds its guarantee and as much more as it may borrow."""
    GUARANTEE = "guarantee"
    """It would take devices that another group is guaranteed, and could not give them back."""
    RESERVATION = "reservation"
    """The free devices are held for a reservation."""
    BUDGET = "budget"
    """Its group has used its budget of this period."""
    SESSIONS = "sessions"
    """Its owner holds as many sessions with devices as one member may."""
    RECLAIMING = "reclaiming"
    """Devices that others borrow, or hold where it needs a whole node, were asked back for it."""
    DRAINING = "draining"
    """It needs no device, and every node is being emptied."""
    ENGINE = "engine"
    """What it needs is on a machine whose engine does not answer; the detail is the sentence."""
    STARTING = "starting"
    """It starts in this cycle (used for the place 0)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """When a request is expected to start, if everybody ahead uses the whole time limit.

    Attributes:
        at: expected start.
        latest: end of the interval; equal to ``at`` where only limits are known.
    """

    at: float
    latest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Grant these devices to this request, now.

    Attributes:
        nodes: without devices: on one of these; None: on any that takes work.
    """

    request_id: str
    devices: tuple[str, ...]
    nodes: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Ask this holding back: it gets a notice and a grace time, and is queued again.

    Attributes:
        for_request: whom it makes room for.
        why: ``GUARANTEE`` (its group borrows what another is guaranteed) or ``BEHIND_OTHERS``
            (an urgent request comes before opportunistic work).
        group: whose guarantee, or whose urgent request.
        lost: device-seconds of work since it was last saved.
        moved: it is within its guarantee, and goes on elsewhere.
    """

    request_id: str
    for_request: str
    why: Reason
    group: str
    lost: float
    relocated: bool = False


class Wait(NamedTuple):
    """A request that stays queued.

    It is a tuple, since one is made for every request: a frozen dataclass would take twice as
    long.

    Attributes:
        place: 1 for the next one; 0 for one that starts now.
        reason: the rule that holds it.
        detail: the group that is full, the model that lacks, …: what the sentence names.
        estimate: None past the first page of the queue, or where nothing can be known.
    """

    request_id: str
    place: int
    reason: Reason
    detail: str = ""
    estimate: Estimate | None = None

    @property
    def ahead(self) -> int:
        """How many requests with devices are in front of it."""
        return max(0, self.place - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one cycle decided. Every waiting request is in ``starts`` or in ``waits``."""

    starts: tuple[Start, ...] = ()
    waits: tuple[Wait, ...] = field(default=())
    stops: tuple[Stop, ...] = ()
