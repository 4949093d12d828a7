"""The snapshot that a scheduling cycle reads: devices, groups, queued requests and allocations.

All times are seconds since the epoch (UTC) as floats, all spans are seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from .devices import Device, DeviceFile, Health, Mark, MarkKind
from .learned_order import LearnedOrder

__all__ = [
    "UNTIL_RELEASED",
    "Allocation",
    "Arrangement",
    "Budget",
    "BudgetBalance",
    "DecayedUsage",
    "Device",
    "DeviceFile",
    "GangRole",
    "Group",
    "Health",
    "Kind",
    "Mark",
    "MarkKind",
    "PendingRequest",
    "Period",
    "PriorityClass",
    "ReservedSpan",
    "Share",
    "Snapshot",
    "open_nodes",
    "without_back_off",
]


class Period(StrEnum):
    """When a budget is renewed."""

    WEEK = "week"
    TERM = "term"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Device-seconds that a group and its subtree may use in each period.

    Slurm's ``GrpTRESMins`` is similar, but here periods follow the calendar: earlier use does not
    count.
    """

    device_seconds: float
    period: Period


class Kind(StrEnum):
    """Kind of work of a request."""

    SESSION = "session"
    KERNEL = "kernel"
    JOB = "job"
    GRADING = "grading"


class PriorityClass(StrEnum):
    """Priority classes in the order in which they are served."""

    URGENT = "urgent"
    INTERACTIVE = "interactive"
    NORMAL = "normal"
    OPPORTUNISTIC = "opportunistic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A node of the quota tree.

    Attributes:
        name: also the name of the JupyterHub group with its members.
        parent: the group above, None for a root. The limits of all ancestors apply as well.
        max_devices: max quota: devices that all members together hold at one time.
        max_devices_per_user: max quota of one member in this group.
        max_seconds: longest time limit of a request.
        idle_seconds: time without work after which a session with devices is warned, then stopped;
            0: never. Not inherited from a group above.
        guaranteed: guaranteed quota: devices that it can always reclaim, at once or after a grace
            period.
        borrowing: borrowing limit: devices above the guaranteed quota; None: up to ``max_devices``.
        lending: lending limit: unused devices of the guaranteed quota that others may use; None:
            all.
        weight: fair-share weight among siblings.
        models: device models that it may request; None: all.
        max_sessions: sessions with devices of one member at one time; None: unlimited.
        sessions_borrow: whether sessions, which are never preempted, may use the guaranteed quota
            of other groups.
        budget: device-seconds that it and its subtree may use per week or term; None: unlimited.
        programs: whether programs of its members may submit jobs to it; those of its teachers
            always may. Not inherited, and no matter of scheduling.
    """

    name: str
    parent: str | None = None
    max_devices: int = 0
    max_devices_per_user: int = 0
    max_seconds: int = 8 * 3600
    idle_seconds: int = 1800
    guaranteed: int = 0
    borrowing: int | None = None
    lending: int | None = None
    weight: float = 1.0
    models: frozenset[str] | None = None
    max_sessions: int | None = None
    sessions_borrow: bool = False
    budget: Budget | None = None
    programs: bool = False


class Arrangement(StrEnum):
    """Placement rule for the members of a gang."""

    PACK = "pack"
    """On as few nodes as possible."""
    SPREAD = "spread"
    """Each on its own node."""
    NODE = "node"
    """All on one node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangRole:
    """Equal members of a gang; each fits on one node.

    Attributes:
        devices: of one member.
        wanted: number of members that it requests.
        minimum: smallest number of members with which it starts.
    """

    name: str
    devices: int
    wanted: int = 1
    minimum: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A part of one device.

    Attributes:
        compute: fraction of its compute, above 0 and at most 1.
        memory_bytes: cap on its memory.
    """

    compute: float
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DecayedUsage:
    """Past use of an owner in a group, decayed to the time of the snapshot.

    It is derived from the ledger and never stored.

    Attributes:
        device_seconds: each one counts half after one half-life, a quarter after two.
    """

    group: str
    owner: str
    device_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedSpan:
    """One occurrence of a reservation: devices for a group during a span of time."""

    id: str
    group: str
    devices: int
    starts_at: float
    ends_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetBalance:
    """A group's budget in the current period, in device-seconds.

    Attributes:
        running: device-seconds that running requests would still use until their time limits.
        refills_at: when the next period begins; None where no later term is known.
    """

    group: str
    budget: float
    used: float
    running: float = 0.0
    refills_at: float | None = None


UNTIL_RELEASED = 1e12
"""A ``not_before`` that never comes: the service releases the request when its time has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRequest:
    """A request in state ``queued``.

    Attributes:
        devices: number of whole devices, 0 for a request without devices.
        model: required device model; None for any.
        seconds: time limit.
        submitted_at: kept when the request is requeued.
        expected: expected runtime in seconds (from history); None: its time limit.
        done: device-seconds of work that earlier attempts saved.
        preemptible: whether it may be preempted for a guaranteed quota. Sessions never are.
        restart_cost: seconds of work to repeat after a stop; None: all since the last save.
        deadline: when it should have ended.
        gang: members by role; empty for one member with ``devices``. ``devices`` is the wanted sum.
        arrangement: of a gang.
        share: part of a device instead of whole ones; ``devices`` is then 1.
        image: name of its image.
        nodes: nodes that take work and have its image; None: any node.
        moved_for: the request for which it was relocated; empty if it was not.
        stopped_for: the preemptor for which it was preempted; empty if it was not.
        expedited: its node or device failed; it is served first in its priority class.
        not_before: end of the back-off before its next attempt; until then it is not in the queue
            order and holds nothing; ``UNTIL_RELEASED`` while it waits for other requests.
            None: it may start at any time.
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
    expected: float | None = None
    done: float = 0.0
    preemptible: bool = False
    restart_cost: float | None = None
    deadline: float | None = None
    gang: tuple[GangRole, ...] = ()
    arrangement: Arrangement = Arrangement.PACK
    share: Share | None = None
    image: str = ""
    nodes: frozenset[str] | None = None
    moved_for: str = ""
    stopped_for: str = ""
    expedited: bool = False
    not_before: float | None = None

    @property
    def is_held(self) -> bool:
        """Whether it waits for other requests."""
        return self.not_before is not None and self.not_before >= UNTIL_RELEASED

    def backs_off(self, now: float) -> bool:
        """Whether the back-off before its next attempt has not ended."""
        return self.not_before is not None and now < self.not_before

    @property
    def preemptor(self) -> str:
        """The request for which it was preempted or relocated; empty if it was not."""
        return self.moved_for or self.stopped_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """A live or suspect lease: its devices are held until its end is confirmed.

    Attributes:
        since: when the lease was granted.
        until: end of its time limit; the devices may be released later.
        expected: expected runtime in seconds; None: its time limit.
        saved_at: when its work was last saved; None: never.
        restart_cost: as in ``PendingRequest``.
        leaving: it has a preemption notice or is being stopped.
        leaves_at: end of its grace period; None: now.
        share: part of its one device; None: whole devices.
        image: name of its image.
        nodes: as in ``PendingRequest``: where it could restart.
    """

    request_id: str
    owner: str
    group: str
    devices: tuple[str, ...]
    since: float
    until: float
    kind: Kind = Kind.JOB
    priority: PriorityClass = PriorityClass.NORMAL
    preemptible: bool = False
    expected: float | None = None
    saved_at: float | None = None
    restart_cost: float | None = None
    leaving: bool = False
    leaves_at: float | None = None
    share: Share | None = None
    image: str = ""
    nodes: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that a decision depends on, read in one transaction.

    Attributes:
        takes_work: whether any node takes work; False where all are drained or unreachable.
        unreachable: why nothing can start on some nodes, one sentence each.
        use: decayed use by group and owner.
        reserved: occurrences of reservations that are due, or that begin before any request that
            could start now would have to end.
        budgets: of the groups that have one.
        grace: grace period of a preemption, in seconds. It changes expected starts only.
        learned_order: discounts sizes among the requests of one owner; None: none does.
    """

    devices: tuple[Device, ...] = ()
    groups: tuple[Group, ...] = ()
    pending: tuple[PendingRequest, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    takes_work: bool = True
    unreachable: tuple[str, ...] = ()
    use: tuple[DecayedUsage, ...] = ()
    reserved: tuple[ReservedSpan, ...] = ()
    budgets: tuple[BudgetBalance, ...] = ()
    grace: float = 0.0
    learned_order: LearnedOrder | None = None


def without_back_off(snapshot: Snapshot, now: float) -> Snapshot:
    """Return the snapshot without the requests whose back-off has not ended."""
    if not any(each.backs_off(now) for each in snapshot.pending):
        return snapshot
    ready = tuple(each for each in snapshot.pending if not each.backs_off(now))
    return replace(snapshot, pending=ready)


def open_nodes(nodes: Collection[str], marks: Iterable[Mark]) -> frozenset[str]:
    """Return the nodes that are neither drained as a whole nor unreachable."""
    return frozenset(nodes) - {m.target for m in marks if m.kind is not MarkKind.QUARANTINE}
