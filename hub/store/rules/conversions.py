"""Convert stored rows into the values of the scheduler."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...records.requests import RequestRecord
from ...scheduling.model.plan import Start
from ...scheduling.model.snapshot import (
    Allocation,
    Arrangement,
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

GONE = "The driver no longer reports this device."


def with_marks(device: Device, marks: Iterable[Mark]) -> Device:
    """Return the device with its own marks and those of its node."""
    own = tuple(mark for mark in marks if mark.target in (device.id, device.node))
    return replace(device, marks=own)


def takes_work(nodes: Collection[str], marks: Iterable[Mark]) -> bool:
    """Whether any node is schedulable; also true before the first node is stored."""
    return not nodes or bool(open_nodes(nodes, marks))


class NodeSelector:
    """Selects nodes for requests without devices: the schedulable node with the fewest leases.

    Args:
        known: all nodes.
        running: the number of leases by node.
    """

    def __init__(
        self, known: Collection[str], marks: Iterable[Mark], running: Mapping[str, int]
    ) -> None:
        self._known = bool(known)
        self._running = {name: running.get(name, 0) for name in open_nodes(known, marks)}

    def choose(self, start: Start) -> str | None:
        """Return the node for a start; None if no node can take it now.

        Ties go to the first node by name. Before the first node is stored, the name is empty.
        """
        if not self._known:
            return ""
        fitting = [n for n in self._running if start.nodes is None or n in start.nodes]
        return min(fitting, key=lambda name: (self._running[name], name), default=None)

    def add_lease(self, node: str) -> None:
        """Count another lease of the node."""
        self._running[node] = self._running.get(node, 0) + 1


def cordon_reasons(marks: Iterable[Mark]) -> tuple[str, ...]:
    """Return why nodes do not answer, in the order of their names."""
    unreachable = sorted(
        (mark.target, mark.why) for mark in marks if mark.kind is MarkKind.UNREACHABLE
    )
    return tuple(why for _, why in unreachable)


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryChange:
    """The changes that bring the stored devices of a node up to date.

    Attributes:
        put: devices to add or replace.
        remove: ids of devices to delete.
    """

    put: tuple[Device, ...]
    remove: tuple[str, ...]


def inventory_change(
    node: str,
    reported: Sequence[Device],
    stored: Mapping[str, Device],
    taken: Collection[str],
) -> InventoryChange:
    """Compare the devices that a node reports with the stored ones.

    A simulated device is deleted once its node reports no simulated device (the pool is real now)
    and no lease holds it. Any other missing device stays stored as gone, with its lease, its
    history and its position in the pool view.

    Args:
        stored: the devices of all nodes, by id.
        taken: ids of the devices that a lease holds.
    """
    now = {device.id: replace(device, node=node) for device in reported}
    put = [device for device in now.values() if stored.get(device.id) != device]
    still_simulated = any(device.simulated for device in now.values())
    remove = []
    for old in stored.values():
        if old.node != node or old.id in now:
            continue
        if old.simulated and not still_simulated and old.id not in taken:
            remove.append(old.id)
        elif old.health is not Health.GONE:
            put.append(replace(old, health=Health.GONE, why=GONE))
    return InventoryChange(put=tuple(put), remove=tuple(remove))


def to_pending(request: RequestRecord) -> PendingRequest:
    """Return a queued request as a value of the scheduler."""
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
        expedited=request.expedited,
        not_before=request.not_before,
        gang=() if request.gang is None else request.gang.shape,
        arrangement=Arrangement.PACK if request.gang is None else request.gang.arrangement,
    )


def leaving(noticed: bool, state: State) -> bool:
    """Return whether a lease is under a preemption notice or stopping."""
    return noticed or state is State.STOPPING


def horizon(groups: Iterable[Group]) -> float:
    """Return the longest time in seconds that a request may run.

    Reservations that begin later do not affect requests that start now.
    """
    return max((group.max_seconds for group in groups), default=0)


EPSILON = 1e-6
"""Device-seconds below which past usage counts as zero: rounding leaves a little after a credit."""

_DECAY_STEP_SECONDS = 60.0


def decay_time(now: float) -> float:
    """Return the time to which past usage is decayed: the end of the current minute.

    The decayed values stay constant for a minute. No ledger line ends after that time, and the
    order of the queue does not change between two steps, because all usage decays by the same
    factor.
    """
    return (now // _DECAY_STEP_SECONDS + 1) * _DECAY_STEP_SECONDS


class QuotaCheck:
    """Checks quotas inside the transaction that grants (design: section 5, rule 2).

    A limit may have been lowered since the plan was made: a grant that would exceed it is left
    out, and the next cycle plans again.
    """

    def __init__(self, groups: Iterable[Group], allocations: Iterable[Allocation]) -> None:
        self._tree = tree.GroupTree(groups)
        self._tally = tree.Tally(self._tree, allocations)

    def allows(self, request: RequestRecord) -> bool:
        return limit_reached(to_pending(request), self._tree, self._tally) is None

    def add(self, request: RequestRecord) -> None:
        """Count a request that was granted."""
        pending = to_pending(request)
        sessions = int(pending.kind is Kind.SESSION and pending.devices > 0)
        weight = tree.size(pending.devices, pending.share)
        self._tally.add(pending.group, pending.owner, weight, sessions)


def healthy(devices: Iterable[Device]) -> int:
    """Return the number of working devices that are not quarantined; includes drained ones."""
    working = (Health.OK, Health.BUSY)
    return sum(d.health in working and d.quarantine is None for d in devices)
