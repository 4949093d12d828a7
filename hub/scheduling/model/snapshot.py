"""The values that the scheduler reasons about; what it decides is in ``plan``.

All times are seconds since the epoch (UTC) as floats, all spans are seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import inf


class Period(StrEnum):
    """After which a budget is full again."""

    WEEK = "week"
    TERM = "term"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a group and those below it may use in each period, in device-seconds."""

    device_seconds: float
    period: Period


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


class MarkKind(StrEnum):
    """What keeps new work off a device that may well be in working order."""

    DRAIN = "drain"
    """It is being emptied: what is left ends by itself, or by a date."""
    QUARANTINE = "quarantine"
    """It is not trusted until an administrator releases it."""
    SILENT = "silent"
    """Of a node: its engine does not answer, or cannot start anything now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Nothing new starts on a device, or on a whole node.

    It stays until it is taken away: what a device says of itself does not lift it.

    Attributes:
        target: the id of a device, or the name of a node.
        why: the reason, or the evidence of a fault.
        by: who set it; empty where the service itself found a fault.
        until: of a drain: what is left by then is stopped; None: it ends by itself.
    """

    target: str
    kind: MarkKind
    since: float
    why: str = ""
    by: str = ""
    until: float | None = None

    @property
    def fault(self) -> bool:
        """Whether it was set because the device failed under the eyes of the service."""
        return self.kind is MarkKind.QUARANTINE and not self.by


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
        switch: the network switch that its node hangs on; empty where nobody said.
        health: only ``OK`` is lent.
        why: the sentence behind a health that is not ``OK``.
        marks: what administrators (or a fault) say about it or its node.
    """

    id: str
    node: str
    index: int
    model: str
    memory_bytes: int
    simulated: bool = False
    switch: str = ""
    health: Health = Health.OK
    why: str = ""
    marks: tuple[Mark, ...] = ()

    @property
    def lendable(self) -> bool:
        """Whether new work may start on it, once it is free."""
        return self.health is Health.OK and not self.marks

    @property
    def drain(self) -> Mark | None:
        """Of its own drain and its node's, the one that is over first."""
        found = [mark for mark in self.marks if mark.kind is MarkKind.DRAIN]
        return min(found, key=_end, default=None)

    @property
    def silent(self) -> Mark | None:
        """Why nothing can be started on its node now."""
        return next((mark for mark in self.marks if mark.kind is MarkKind.SILENT), None)

    @property
    def draining(self) -> bool:
        return self.drain is not None

    @property
    def quarantine(self) -> Mark | None:
        return next((mark for mark in self.marks if mark.kind is MarkKind.QUARANTINE), None)


def _end(drain: Mark) -> float:
    return inf if drain.until is None else drain.until


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A node of the quota tree.

    Attributes:
        name: also the name of the JupyterHub group whose members it has.
        parent: the group above, None for a root. A limit of any ancestor binds too.
        max_devices: devices that all members together hold at one time.
        max_devices_per_user: devices that one member holds at one time in this group.
        max_seconds: longest time limit that a request may have.
        idle_seconds: after how long without work a session with devices is warned, and then
            stopped; 0 for never. Its own alone counts, not that of a group above.
        guaranteed: devices that it has back at once, or after a grace time, whoever uses them.
        borrowing: devices that it may hold above its guarantee; None: up to ``max_devices``.
        lending: devices of its guarantee that others may use while it does not; None: all.
        weight: its part in what siblings share; twice the weight, twice the use.
        models: the device models that it may ask for; None: all.
        max_sessions: sessions with devices that one member holds at one time; None: any number.
        sessions_borrow: whether a session, which is never preempted, may use devices that
            another group is guaranteed.
        budget: what it and the groups below it may use in a week or a term; None: any amount.
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


class Arrangement(StrEnum):
    """How the members of a gang are laid out."""

    PACK = "pack"
    """On as few nodes as possible."""
    SPREAD = "spread"
    """Each on a node of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangRole:
    """Equal members of a gang; each sits within one node.

    Attributes:
        devices: of one member.
        wanted: how many members it would like.
        minimum: with how many it still starts.
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
    """What somebody used in a group in the past, decayed to the moment of the snapshot.

    It is derived from the ledger and never stored.

    Attributes:
        device_seconds: each one counts half after one half-life, a quarter after two.
    """

    group: str
    owner: str
    device_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedSpan:
    """Devices promised to a group for a span of time: one occurrence of a reservation."""

    id: str
    group: str
    devices: int
    starts_at: float
    ends_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetBalance:
    """What is left of a group's budget in the current period, in device-seconds.

    Attributes:
        running: what the running work would still use until its time limits.
        refills_at: when there is a whole budget again; None where no later term is known.
    """

    group: str
    budget: float
    used: float
    running: float = 0.0
    refills_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRequest:
    """A request in ``queued``.

    Attributes:
        devices: how many whole devices, 0 for a request on CPU.
        model: only devices of this model will do; None for any.
        seconds: time limit.
        submitted_at: place in line is counted from here; kept through requeues.
        expected: seconds that it is expected to run (from history); None: its time limit.
        done: device-seconds of its work that earlier attempts saved.
        preemptible: whether it may be stopped and queued again for somebody's guarantee. A
            session never is.
        restart_cost: seconds of its work that it does again after it was stopped; None: all
            since it was last saved.
        deadline: when it should have ended, for the order inside its group.
        gang: its members by role; empty for one member with ``devices``. ``devices`` is the
            wanted sum.
        arrangement: of a gang.
        share: part of a device instead of whole ones; ``devices`` is then 1.
        image: what it runs in, as it is called.
        nodes: that take work and have its image; whole devices of these, or work on CPU. None:
            any node.
        moved_for: the request that it made room for, when it was stopped within its guarantee to
            go on elsewhere; empty where it was not.
        stopped_for: the request that it made room for, when it was stopped otherwise.
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

    @property
    def preemptor(self) -> str:
        """The request that it made room for, when it was stopped; empty where it was for none."""
        return self.moved_for or self.stopped_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """A live or suspect lease: the devices are taken, whatever the clock says.

    Attributes:
        since: when the lease was granted.
        until: when its time limit ends; the device may come back later than that.
        expected: seconds that it was expected to run; None: to its time limit.
        saved_at: when its work was last known to be saved; None: never.
        restart_cost: as in ``PendingRequest``.
        leaving: it was already asked to go, and its devices come back soon.
        leaves_at: when the grace time is over that it was given for that; None: now.
        share: part of its one device; None: whole devices.
        image: what it runs in.
        nodes: as in ``PendingRequest``: where it could go on.
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
        takes_work: whether any node does; False where all of them are drained or silent.
        silent: why nothing can start on some nodes, a sentence for each.
        use: decayed use by group and owner.
        reserved: occurrences of reservations that run now or begin before anything that could
            start now would have to end.
        budgets: of the groups that have one.
        grace: seconds between the notice that devices are asked back and the end of what has
            them. It changes no decision, only when starts are expected.
    """

    devices: tuple[Device, ...] = ()
    groups: tuple[Group, ...] = ()
    pending: tuple[PendingRequest, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    takes_work: bool = True
    silent: tuple[str, ...] = ()
    use: tuple[DecayedUsage, ...] = ()
    reserved: tuple[ReservedSpan, ...] = ()
    budgets: tuple[BudgetBalance, ...] = ()
    grace: float = 0.0


def open_nodes(nodes: Collection[str], marks: Iterable[Mark]) -> frozenset[str]:
    """Those that are neither drained as a whole nor silent."""
    return frozenset(nodes) - {m.target for m in marks if m.kind is not MarkKind.QUARANTINE}
