"""The values that the scheduler reasons about.

All times are seconds since the epoch (UTC) as floats, all spans are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What a request asks to run."""

    SESSION = "session"
    KERNEL = "kernel"
    JOB = "job"
    GRADING = "grading"


class PriorityClass(StrEnum):
    """Classes in the order in which they are served (design: section 6, step 2)."""

    URGENT = "urgent"
    INTERACTIVE = "interactive"
    NORMAL = "normal"
    OPPORTUNISTIC = "opportunistic"


class Health(StrEnum):
    """Whether a device may be lent."""

    OK = "ok"
    BUSY = "busy"
    """A process that Carrel did not start works on it."""
    SICK = "sick"
    """It reports errors, or was set aside by an administrator."""
    GONE = "gone"
    """It was seen before and does not answer any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU or MIG instance.

    Attributes:
        id: the UUID of the device (``GPU-…``, ``MIG-…``; ``SIM-…`` for a simulated one).
        node: name of the host that it sits in.
        index: position within the node, for people.
        model: product name, as the driver says it.
        memory_bytes: size of its memory.
        simulated: True for a device that exists only in name.
        health: only ``OK`` is lent.
        why: the sentence behind a health that is not ``OK``.
    """

    id: str
    node: str
    index: int
    model: str
    memory_bytes: int
    simulated: bool = False
    health: Health = Health.OK
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A node of the quota tree.

    Attributes:
        name: also the name of the JupyterHub group whose members it has.
        parent: the group above, None for a root. A limit of any ancestor binds too.
        max_devices: devices that all members together hold at one time.
        max_devices_per_user: devices that one member holds at one time in this group.
        max_seconds: longest time limit that a request may have.
    """

    name: str
    parent: str | None = None
    max_devices: int = 0
    max_devices_per_user: int = 0
    max_seconds: int = 8 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A request in ``queued``.

    Attributes:
        devices: how many whole devices, 0 for a request on CPU.
        model: only devices of this model will do; None for any.
        seconds: time limit.
        submitted_at: place in line is counted from here; kept through requeues.
    """

    id: str
    kind: Kind
    owner: str
    group: str
    devices: int
    seconds: float
    submitted_at: float
    model: str | None = None
    priority: PriorityClass = PriorityClass.NORMAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A live or suspect lease: the devices are taken, whatever the clock says.

    Attributes:
        since: when the lease was granted.
        until: when its time limit ends; the device may come back later than that.
    """

    request_id: str
    owner: str
    group: str
    devices: tuple[str, ...]
    since: float
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that a decision depends on, read in one transaction."""

    devices: tuple[Device, ...] = ()
    groups: tuple[Group, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    holdings: tuple[Holding, ...] = ()


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
    POOL_TOO_SMALL = "pool_too_small"
    """Too few fitting devices are in working order at all, now."""
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
    """Grant these devices to this request, now."""

    request_id: str
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A request that stays queued.

    Attributes:
        place: 1 for the next one.
        reason: the rule that holds it.
        detail: the group that is full, the model that lacks, …: what the sentence names.
        ahead: how many requests with devices are in front of it.
        estimate: None past the first page of the queue, or where nothing can be known.
    """

    request_id: str
    place: int
    reason: Reason
    detail: str = ""
    ahead: int = 0
    estimate: Estimate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one cycle decided. Every waiting request is in ``starts`` or in ``waits``."""

    starts: tuple[Start, ...] = ()
    waits: tuple[Wait, ...] = field(default=())
