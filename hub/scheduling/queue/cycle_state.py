"""State of a scheduling cycle: free devices, allocations, guaranteed quota, reservations,
budgets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from math import inf

from ..model.plan import Reason
from ..model.snapshot import Allocation, BudgetBalance, PendingRequest, ReservedSpan, Snapshot
from ..placement.device_pool import DevicePool, GroupLocality, Placement
from ..quota.guarantees import Entitlement, ReclaimableCapacity, ReservedCapacity, not_lent
from ..quota.headroom import Caps
from ..quota.tree import THOUSAND, GroupTree, Tally, guarantees, size
from .running_set import RunningSet


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldReason:
    """Reason for which free devices are withheld from a request.

    Attributes:
        reason: ``GUARANTEE``, ``RESERVATION`` or, for a running request, ``BUDGET``.
        detail: the group with the reservation or the budget, if any.
    """

    reason: Reason
    detail: str = ""


_GUARANTEE_HOLD = HoldReason(reason=Reason.GUARANTEE)


@dataclass(slots=True)
class _UpcomingReservation:
    """The start of a reservation, and the headroom of allocations that would run into it.

    Attributes:
        groups: the groups with reservations at that time, with their subtrees.
        headroom: thousandths of a device that may still be held past that time.
    """

    at: float
    group: str
    groups: frozenset[str]
    headroom: int

    def binds(self, group: str, until: float) -> bool:
        return until > self.at and group not in self.groups


class CycleState:
    """State of a scheduling cycle at one moment; it changes as requests start and end."""

    def __init__(self, snapshot: Snapshot, now: float) -> None:
        self.now = now
        self.tree = GroupTree(snapshot.groups)
        self.learned_order = snapshot.learned_order
        self.pool = DevicePool(
            snapshot.devices, snapshot.allocations, takes_work=snapshot.takes_work
        )
        self.caps = Caps(self.tree, self.pool.total_count() * THOUSAND)
        self.holdable = self.caps.pool_size + _held_unschedulable(snapshot) * THOUSAND
        """Thousandths of a device of all devices that are schedulable, or held although they are
        not."""
        self.unreachable = snapshot.unreachable
        self.tally = Tally(self.tree, snapshot.allocations)
        self._locality = GroupLocality(self.pool, snapshot.allocations)
        self.running = RunningSet(self.tree, snapshot.allocations, now=now)
        self.budgets: dict[str, float] = {}
        self.set_budgets(snapshot.budgets)
        self.guaranteed = guarantees(snapshot.groups)
        self._guarantees = ReservedCapacity(self.tree, self.tally, self.guaranteed)
        self.entitlement = Entitlement(self.tree, self.tally, self.guaranteed)
        """Which requests may reclaim guaranteed quota."""
        self._spans = tuple(sorted(snapshot.reserved, key=lambda each: (each.starts_at, each.id)))
        self._edges = sorted(
            edge for each in snapshot.reserved for edge in (each.starts_at, each.ends_at)
        )
        self._lent = ReclaimableCapacity(
            self.tree, self.tally, self.guaranteed, snapshot.allocations
        )
        self._aside = 0
        """Thousandths of a device that are free, and set aside for preemptors."""
        self._guarantees_kept: dict[tuple[str, int], bool] = {}
        """Cache of ``_keeps_guarantees``."""
        self._update_reservations(now)

    def copy(self) -> CycleState:
        clone = copy(self)
        clone.pool, clone.tally = self.pool.copy(), self.tally.copy()
        clone.running, clone.budgets = self.running.copy(), self.budgets.copy()
        clone._locality = self._locality.copy()
        clone._guarantees = self._guarantees.copy(clone.tally)
        clone.entitlement = self.entitlement.copy(clone.tally)
        clone._reserved_now, clone._lent = (
            self._reserved_now.copy(clone.tally),
            self._lent.copy(clone.tally),
        )
        clone._upcoming = [copy(each) for each in self._upcoming]
        clone._guarantees_kept = self._guarantees_kept.copy()
        return clone

    def with_ends(self, allocations: Iterable[Allocation]) -> CycleState:
        """Return a copy with these allocations, which differ from its own in their ends only."""
        clone = self.copy()
        clone.running = RunningSet(self.tree, allocations, now=self.now)
        clone._update_reservations(self.now)
        return clone

    # -- changes --------------------------------------------------------------------------

    def start(self, allocation: Allocation) -> None:
        """Add an allocation whose devices are already taken from the pool."""
        self.running.add(allocation)
        if not allocation.devices:
            return
        self._count(allocation, 1)
        self._charge(allocation, 1)

    def end(self, request_id: str) -> Allocation:
        """Remove an allocation; the rest of its time is returned to its budgets."""
        allocation = self.running.remove(request_id)
        if allocation.devices:
            self.pool.release(allocation)
            self._count(allocation, -1)
            self._charge(allocation, -1)
        return allocation

    def end_all(self, request_ids: Iterable[str]) -> None:
        """Remove these allocations, and all that are leaving."""
        leaving = {name for name, each in self.running.allocations.items() if each.leaving}
        for request_id in leaving.union(request_ids):
            self.end(request_id)

    def set_budgets(self, budgets: Iterable[BudgetBalance]) -> None:
        self.budgets = {each.group: each.budget - each.used - each.running for each in budgets}

    def advance(self, now: float) -> None:
        """Advance the time: reservations may become due, or end."""
        before, self.now = self.now, now
        self.running.advance(now)
        if bisect_right(self._edges, before) != bisect_right(self._edges, now):
            self._update_reservations(now)

    def next_reservation_edge(self) -> float:
        """Return when the next reservation starts or ends; infinity for never."""
        return next(iter(self._edges[bisect_right(self._edges, self.now) :]), inf)

    def set_aside(self, placed: Iterable[Placement]) -> None:
        """Withhold these free devices for preemptors."""
        free = self._free()
        for each in placed:
            self.pool.occupy(each)
        self._aside += free - self._free()

    def restore(self, placed: Iterable[Placement]) -> None:
        """Undo ``set_aside``."""
        for each in placed:
            self.pool.release(each)
        self._aside = 0

    # -- queries --------------------------------------------------------------------------

    def due(self) -> tuple[ReservedSpan, ...]:
        """Return the reservations that are due."""
        return tuple(each for each in self._spans if _is_due(each, self.now))

    def due_devices(self) -> Mapping[str, int]:
        """Return devices by group, of the reservations that are due."""
        devices: dict[str, int] = {}
        for each in self.due():
            devices[each.group] = max(devices.get(each.group, 0), each.devices)
        return devices

    def variants(self, request: PendingRequest) -> tuple[PendingRequest, ...]:
        """Return a copy of the request for each model that its groups may use, ordered by name.

        If its groups may use all, it is returned as it is, unless it could get devices of several
        models then: all devices of a request are of one model.
        """
        allowed = self.tree.models(request.group)
        if request.model is not None:
            return (request,) if allowed is None or request.model in allowed else ()
        if allowed is None:
            allowed = self.pool.models_of_mixed_nodes
            if not allowed or request.devices <= 1 or request.gang:
                return (request,)
        return tuple(replace(request, model=model) for model in sorted(allowed))

    def group_nodes(self, group: str) -> int:
        """Return the set of nodes on which the group itself holds devices."""
        return self._locality.of(group)

    def reserved_for_others(self, request: PendingRequest) -> int:
        """Return the thousandths of a device that have to stay free for other groups.

        1. due reservations of other groups: the devices that they do not hold yet
        2. guaranteed quota that other groups do not lend
        """
        return (
            self._reserved_now.of_others(self.tree.chain(request.group))
            if self._reserved_now
            else 0
        )

    @property
    def has_reserved(self) -> bool:
        """Whether any devices are withheld for some group, now or later."""
        return self._reserved_now.has_claims or bool(self._upcoming)

    def may_hold_back(self, request: PendingRequest) -> bool:
        """Return whether ``hold_reason`` could ever withhold devices from a request."""
        return self.has_reserved or (self._guarantees.has_claims and not request.preemptible)

    def keeps_reserved(self, request: PendingRequest) -> bool:
        """Return whether the free devices that are reserved for others remain beside a request."""
        return _keeps(request, self.reserved_for_others(request), self.pool)

    def would_keep_reserved(self, request: PendingRequest, pool: DevicePool, tally: Tally) -> bool:
        """``keeps_reserved`` with another pool and tally."""
        reserved_units = self._reserved_now.of_others_with(tally, self.tree.chain(request.group))
        return _keeps(request, reserved_units, pool)

    def reserved_reason(self, request: PendingRequest) -> Reason:
        """Return whether devices are withheld for a reservation or for quota that is not lent."""
        own = {group.name for group in self.tree.chain(request.group)}
        lacks = (
            each.group not in own and self.tally.groups[each.group] < each.devices * THOUSAND
            for each in self.due()
        )
        return Reason.RESERVATION if any(lacks) else Reason.GUARANTEE

    def hold_reason(self, request: PendingRequest, until: float | None = None) -> HoldReason | None:
        """Return why free devices are withheld from a request; None if they are not.

        1. It could run into a reservation of others, and too few devices would be left then.
        2. It is not preemptible: beyond its own guaranteed quota it uses only devices without which
           others can still reclaim all of theirs, unless its group lets sessions borrow.
        """
        weight = size(request.devices, request.share)
        until = self.now + request.seconds if until is None else until
        for upcoming in self._upcoming:
            if upcoming.headroom < weight and upcoming.binds(request.group, until):
                return HoldReason(reason=Reason.RESERVATION, detail=upcoming.group)
        return None if self.keeps_guarantees(request) else _GUARANTEE_HOLD

    def keeps_guarantees(self, request: PendingRequest) -> bool:
        """Return whether other groups can still reclaim their guaranteed quotas beside a request.

        A preemptible request never prevents that. The result is the same before and after
        preemptions for the request.
        """
        if not self._guarantees or request.preemptible:
            return True
        key = (request.group, size(request.devices, request.share))
        if key not in self._guarantees_kept:
            self._guarantees_kept[key] = self._keeps_guarantees(*key)
        return self._guarantees_kept[key]

    def _keeps_guarantees(self, group: str, weight: int) -> bool:
        """``keeps_guarantees`` for non-preemptible work of this weight in a group.

        Devices that are set aside count as free.
        """
        chain = self.tree.chain(group)
        others = self._guarantees.of_others_beyond_guarantee(chain, weight)
        available = self._free() + self._aside + self._lent.after(chain, weight) - weight
        return not others or available >= others or chain[0].sessions_borrow

    # -- counting -------------------------------------------------------------------------

    def _count(self, allocation: Allocation, times: int) -> None:
        self._guarantees_kept.clear()
        self.tally.count(allocation, times)
        self._locality.count(allocation, times, self.pool)
        self._guarantees.invalidate(allocation.group)
        self.entitlement.invalidate(allocation.group)
        self._reserved_now.invalidate(allocation.group)
        self._lent.count(allocation, times)
        weight = times * size(len(allocation.devices), allocation.share)
        for upcoming in self._upcoming:
            if upcoming.binds(allocation.group, allocation.until):
                upcoming.headroom -= weight

    def _charge(self, allocation: Allocation, times: int) -> None:
        """Charge its budgets with its remaining device-seconds (``times`` 1), or refund them
        (-1)."""
        for group in self.tree.ancestry(allocation.group) if self.budgets else ():
            if group.name in self.budgets:
                self.budgets[group.name] -= times * _cost(allocation, self.now)

    def _free(self) -> int:
        return self.pool.free_count() * THOUSAND

    def _update_reservations(self, now: float) -> None:
        """Compute the devices that reservations and lending limits withhold now."""
        amounts = dict(not_lent(self.tree, self.guaranteed))
        for group, devices in self.due_devices().items():
            amounts[group] = max(amounts.get(group, 0), devices)
        self._reserved_now = ReservedCapacity(self.tree, self.tally, amounts)
        self._upcoming = [
            self._upcoming_reservation(each) for each in self._spans if each.starts_at > now
        ]

    def _upcoming_reservation(self, reserved: ReservedSpan) -> _UpcomingReservation:
        """Return the headroom of allocations that run into the start of a reservation."""
        active = [each for each in self._spans if _is_due(each, reserved.starts_at)]
        groups = frozenset().union(*(self.tree.subtree(each.group) for each in active))
        upcoming = _UpcomingReservation(
            at=reserved.starts_at, group=reserved.group, groups=groups, headroom=0
        )
        held = sum(
            size(len(each.devices), each.share)
            for each in self.running.allocations.values()
            if upcoming.binds(each.group, each.until)
        )
        reserved_devices = sum(each.devices for each in active)
        upcoming.headroom = (self.pool.total_count() - reserved_devices) * THOUSAND - held
        return upcoming


def _keeps(request: PendingRequest, reserved_units: int, pool: DevicePool) -> bool:
    weight = size(request.devices, request.share)
    return not reserved_units or pool.free_count() * THOUSAND - weight >= reserved_units


def _held_unschedulable(snapshot: Snapshot) -> int:
    """Return the number of devices that are held although they are not schedulable."""
    held = {device for each in snapshot.allocations for device in each.devices}
    return sum(device.id in held for device in snapshot.devices if not device.schedulable)


def _is_due(reserved: ReservedSpan, now: float) -> bool:
    return reserved.starts_at <= now < reserved.ends_at


def _cost(allocation: Allocation, since: float) -> float:
    """Return the device-seconds of an allocation until its time limit."""
    devices = size(len(allocation.devices), allocation.share) / THOUSAND
    return devices * max(0.0, allocation.until - since)
