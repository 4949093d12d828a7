"""Convert stored rows into the values of the scheduler."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...records.leases import LeaseRecord
from ...records.requests import RequestRecord
from ...scheduling.model.plan import Start
from ...scheduling.model.snapshot import (
    Allocation,
    Device,
    Group,
    Health,
    Kind,
    Mark,
    MarkKind,
    PendingRequest,
    open_nodes,
)
from ...scheduling.model.states import State
from ...scheduling.quota import tree
from ...scheduling.quota.headroom import limit_reached

GONE = "It was there before and is not found any more."


def marked(device: Device, marks: Iterable[Mark]) -> Device:
    """The device with what is said about it and about its node."""
    found = tuple(mark for mark in marks if mark.target in (device.id, device.node))
    return replace(device, marks=found)


def takes_work(nodes: Collection[str], marks: Iterable[Mark]) -> bool:
    """Whether any node does; an installation that knows none yet does."""
    return not nodes or bool(open_nodes(nodes, marks))


class Nodes:
    """Where work on CPU goes: of the nodes that take work, to the one on which least runs."""

    def __init__(
        self, known: Collection[str], marks: Iterable[Mark], running: Mapping[str, int]
    ) -> None:
        """``running``: how many leases each node has."""
        self._known = bool(known)
        self._running = {name: running.get(name, 0) for name in open_nodes(known, marks)}

    def choose(self, start: Start) -> str | None:
        """Of equals the first by name; None where it can go nowhere now. An installation that
        knows no node yet has one without a name."""
        if not self._known:
            return ""
        fitting = [n for n in self._running if start.nodes is None or n in start.nodes]
        return min(fitting, key=lambda name: (self._running[name], name), default=None)

    def take(self, node: str) -> None:
        self._running[node] = self._running.get(node, 0) + 1


def silences(marks: Iterable[Mark]) -> tuple[str, ...]:
    """Why nothing can start on some nodes, in the order of their names."""
    found = sorted((mark.target, mark.why) for mark in marks if mark.kind is MarkKind.UNREACHABLE)
    return tuple(why for _, why in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInventory:
    """What has to change for a node's devices to be as they were seen."""

    put: tuple[Device, ...]
    remove: tuple[str, ...]


def inventory(
    node: str,
    seen: Sequence[Device],
    known: Mapping[str, Device],
    taken: Collection[str],
) -> DeviceInventory:
    """Compare what was seen on a node with every device known so far.

    A simulated device goes for good once its node has none of them any more (the pool is real
    now) and no lease holds it. Any other that is missing is kept as gone: its lease, its
    history and its place among the tiles go on.
    """
    now = {device.id: replace(device, node=node) for device in seen}
    put = [device for device in now.values() if known.get(device.id) != device]
    still_simulated = any(device.simulated for device in now.values())
    remove = []
    for old in known.values():
        if old.node != node or old.id in now:
            continue
        if old.simulated and not still_simulated and old.id not in taken:
            remove.append(old.id)
        elif old.health is not Health.GONE:
            put.append(replace(old, health=Health.GONE, why=GONE))
    return DeviceInventory(put=tuple(put), remove=tuple(remove))


def waiting(request: RequestRecord) -> PendingRequest:
    """A queued request as the scheduler sees it."""
    return PendingRequest(
        id=request.id,
        kind=request.kind,
        owner=request.owner,
        group=request.group,
        devices=request.devices,
        seconds=request.seconds,
        submitted_at=request.submitted_at,
        model=request.model,
        priority=request.priority,
        expected=request.expected,
        preemptible=request.preemptible,
        deadline=request.deadline,
        image=request.image,
        moved_for=request.moved_for,
        stopped_for=request.stopped_for,
    )


def holding(request: RequestRecord, lease: LeaseRecord) -> Allocation:
    """A lease that is not released as the scheduler sees it."""
    return Allocation(
        request_id=request.id,
        owner=request.owner,
        group=request.group,
        devices=lease.devices,
        since=lease.granted_at,
        until=lease.granted_at + request.seconds,
        kind=request.kind,
        priority=request.priority,
        preemptible=request.preemptible,
        expected=request.expected,
        saved_at=lease.saved_at,
        leaving=leaving(request.notice is not None, request.state),
        leaves_at=None if request.notice is None else request.notice.stops_at,
        image=request.image,
    )


def leaving(noticed: bool, state: State) -> bool:
    """Return whether a lease is under a preemption notice or stopping."""
    return noticed or state is State.STOPPING


def horizon(groups: Iterable[Group]) -> float:
    """How long what starts now may run; what is reserved later is of no concern to it yet."""
    return max((group.max_seconds for group in groups), default=0)


EPSILON = 1e-6
"""Device-seconds below which past use is none: a credit leaves a little by rounding."""


_MOMENT = 60.0


def moment_of_use(now: float) -> float:
    """What past use is decayed to: the end of this minute, so that it is the same for a while.

    Nothing in the ledger lies after it, and between two moments the order does not change: all use
    fades by the same factor.
    """
    return (now // _MOMENT + 1) * _MOMENT


class CapacityCheck:
    """Quota as it stands inside the transaction that grants (design: section 5, rule 2).

    A limit may have been lowered since the plan was made; a grant that would go above it is
    left out, and the next cycle plans anew.
    """

    def __init__(self, groups: Iterable[Group], allocations: Iterable[Allocation]) -> None:
        self._tree = tree.GroupTree(groups)
        self._tally = tree.Tally(self._tree, allocations)

    def allows(self, request: RequestRecord) -> bool:
        return limit_reached(waiting(request), self._tree, self._tally) is None

    def take(self, request: RequestRecord) -> None:
        asked = waiting(request)
        sessions = int(asked.kind is Kind.SESSION and asked.devices > 0)
        weight = tree.size(asked.devices, asked.share)
        self._tally.add(asked.group, asked.owner, weight, sessions)


def healthy(devices: Iterable[Device]) -> int:
    """How many devices are in order and trusted; also those that are being emptied."""
    in_order = (Health.OK, Health.BUSY)
    return sum(d.health in in_order and d.quarantine is None for d in devices)
