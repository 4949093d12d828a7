"""All that a decision counts: what is free, held, promised, reserved and left of budgets."""

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
    """Why free devices are not for a request.

    Attributes:
        reason: ``GUARANTEE``, ``RESERVATION`` or, of what runs already, ``BUDGET``.
        detail: the group that they are kept for, or whose budget it is, where it is one.
    """

    reason: Reason
    detail: str = ""


_FOR_A_GUARANTEE = HoldReason(reason=Reason.GUARANTEE)


@dataclass(slots=True)
class _Ahead:
    """A moment at which reservations begin, and who may still run into it.

    Attributes:
        groups: whose reservations they are, with all groups below.
        room: thousandths of a device that may still be lent past this moment.
    """

    at: float
    group: str
    groups: frozenset[str]
    room: int

    def binds(self, group: str, until: float) -> bool:
        return until > self.at and group not in self.groups


class CycleState:
    """One set of books for one moment; it changes as work starts and ends."""

    def __init__(self, snapshot: Snapshot, now: float) -> None:
        self.now = now
        self.tree = GroupTree(snapshot.groups)
        self.pool = DevicePool(snapshot.devices, snapshot.holdings, takes_work=snapshot.takes_work)
        self.caps = Caps(self.tree, self.pool.could_count() * THOUSAND)
        self.could_be_held = self.caps.lendable + _held_out_of_order(snapshot) * THOUSAND
        """Of all devices, in thousandths: those that may be lent, and what is held of others."""
        self.silent = snapshot.silent
        self.tally = Tally(self.tree, snapshot.holdings)
        self._homes = GroupLocality(self.pool, snapshot.holdings)
        self.running = RunningSet(self.tree, snapshot.holdings, now=now)
        self.budgets: dict[str, float] = {}
        self.set_budgets(snapshot.budgets)
        self.guaranteed = guarantees(snapshot.groups)
        self._guarantees = ReservedCapacity(self.tree, self.tally, self.guaranteed)
        self.entitled = Entitlement(self.tree, self.tally, self.guaranteed)
        """Who may ask back what others borrow."""
        self._reserved = tuple(
            sorted(snapshot.reserved, key=lambda each: (each.starts_at, each.id))
        )
        self._edges = sorted(
            edge for each in snapshot.reserved for edge in (each.starts_at, each.ends_at)
        )
        self._lent = ReclaimableCapacity(self.tree, self.tally, self.guaranteed, snapshot.holdings)
        self._aside = 0
        """Thousandths of a device that are free, and set aside."""
        self._taken_for_good: dict[tuple[str, int], bool] = {}
        """What is known about ``_leaves_guarantees``."""
        self._reckon(now)

    def copy(self) -> CycleState:
        made = copy(self)
        made.pool, made.tally = self.pool.copy(), self.tally.copy()
        made.running, made.budgets = self.running.copy(), self.budgets.copy()
        made._homes = self._homes.copy()
        made._guarantees = self._guarantees.copy(made.tally)
        made.entitled = self.entitled.copy(made.tally)
        made._kept, made._lent = self._kept.copy(made.tally), self._lent.copy(made.tally)
        made._ahead = [copy(each) for each in self._ahead]
        made._taken_for_good = self._taken_for_good.copy()
        return made

    def ending(self, holdings: Iterable[Allocation]) -> CycleState:
        """A copy in which all that runs ends when these say."""
        made = self.copy()
        made.running = RunningSet(self.tree, holdings, now=self.now)
        made._reckon(self.now)
        return made

    # -- what changes ---------------------------------------------------------------------

    def start(self, holding: Allocation) -> None:
        """It holds its devices, which were taken from the pool already."""
        self.running.add(holding)
        if not holding.devices:
            return
        self._count(holding, 1)
        self._charge(holding, 1)

    def end(self, request_id: str) -> Allocation:
        """It holds nothing any more; the rest of its time is given back to its budget."""
        holding = self.running.remove(request_id)
        if holding.devices:
            self.pool.give_back(holding)
            self._count(holding, -1)
            self._charge(holding, -1)
        return holding

    def end_all(self, request_ids: Iterable[str]) -> None:
        """These end, and whatever else was asked to go."""
        leaving = {name for name, each in self.running.holdings.items() if each.leaving}
        for request_id in leaving.union(request_ids):
            self.end(request_id)

    def set_budgets(self, budgets: Iterable[BudgetBalance]) -> None:
        self.budgets = {each.group: each.budget - each.used - each.running for each in budgets}

    def at(self, now: float) -> None:
        """Time has passed: reservations may have become due, or be over."""
        before, self.now = self.now, now
        self.running.at(now)
        if bisect_right(self._edges, before) != bisect_right(self._edges, now):
            self._reckon(now)

    def next_edge(self) -> float:
        """When the next reservation begins or ends; infinity for never."""
        return next(iter(self._edges[bisect_right(self._edges, self.now) :]), inf)

    def set_aside(self, placed: Iterable[Placement]) -> None:
        """Keep these devices free for those that ask back what they are guaranteed."""
        free = self._free()
        for each in placed:
            self.pool.hold(each)
        self._aside += free - self._free()

    def put_back(self, placed: Iterable[Placement]) -> None:
        """The opposite of ``set_aside``, of all that was."""
        for each in placed:
            self.pool.give_back(each)
        self._aside = 0

    # -- what is asked --------------------------------------------------------------------

    def due(self) -> tuple[ReservedSpan, ...]:
        """The reservations of this moment."""
        return tuple(each for each in self._reserved if _is_due(each, self.now))

    def due_devices(self) -> Mapping[str, int]:
        """Devices by group, of the reservations of this moment."""
        devices: dict[str, int] = {}
        for each in self.due():
            devices[each.group] = max(devices.get(each.group, 0), each.devices)
        return devices

    def variants(self, request: PendingRequest) -> tuple[PendingRequest, ...]:
        """The same request for each of the models that its groups may use, by name."""
        allowed = self.tree.models(request.group)
        if allowed is None or request.model in allowed:
            return (request,)
        if request.model is not None:
            return ()
        return tuple(replace(request, model=model) for model in sorted(allowed))

    def home(self, group: str) -> int:
        """The nodes where a group itself runs already."""
        return self._homes.of(group)

    def kept_for_others(self, request: PendingRequest) -> int:
        """Thousandths of a device that stay free for others, whoever else would use them.

        1. a reservation of others is due: as many devices as they do not hold yet
        2. other groups do not lend them
        """
        return self._kept.of_others(self.tree.chain(request.group)) if self._kept else 0

    @property
    def keeps(self) -> bool:
        """Whether any free devices are kept for somebody, now or later."""
        return self._kept.promises or bool(self._ahead)

    def may_keep_from(self, request: PendingRequest) -> bool:
        """Whether it could ever find free devices that it may not have (``kept_from``)."""
        return self.keeps or (self._guarantees.promises and not request.preemptible)

    def leaves_what_is_kept(self, request: PendingRequest) -> bool:
        return _leaves(request, self.kept_for_others(request), self.pool)

    def would_leave_what_is_kept(
        self, request: PendingRequest, pool: DevicePool, tally: Tally
    ) -> bool:
        """The same, were this free and held."""
        kept = self._kept.of_others_next_to(tally, self.tree.chain(request.group))
        return _leaves(request, kept, pool)

    def kept_reason(self, request: PendingRequest) -> Reason:
        """Why free devices are kept from it: for a reservation of others that does not hold all
        of them yet, or because they are not lent."""
        own = {group.name for group in self.tree.chain(request.group)}
        lacks = (
            each.group not in own and self.tally.groups[each.group] < each.devices * THOUSAND
            for each in self.due()
        )
        return Reason.RESERVATION if any(lacks) else Reason.GUARANTEE

    def kept_from(self, request: PendingRequest, until: float | None = None) -> HoldReason | None:
        """Why it may not have devices although others may; None if it may.

        1. it could run past the beginning of a reservation of others, and too few devices
           would be left by then
        2. it could not be asked back: beyond its own guarantee it takes only what leaves
           others able to reclaim all of theirs, unless its group lets sessions borrow
        """
        weight = size(request.devices, request.share)
        until = self.now + request.seconds if until is None else until
        for ahead in self._ahead:
            if ahead.room < weight and ahead.binds(request.group, until):
                return HoldReason(reason=Reason.RESERVATION, detail=ahead.group)
        return None if self.leaves_guarantees(request) else _FOR_A_GUARANTEE

    def leaves_guarantees(self, request: PendingRequest) -> bool:
        """Whether others can reclaim all of theirs beside it, if it could not be asked back. It
        is the same before and after what is lent is asked back for it."""
        if not self._guarantees or request.preemptible:
            return True
        key = (request.group, size(request.devices, request.share))
        if key not in self._taken_for_good:
            self._taken_for_good[key] = self._leaves_guarantees(*key)
        return self._taken_for_good[key]

    def _leaves_guarantees(self, group: str, weight: int) -> bool:
        """Whether others could still reclaim all of theirs, had a group so much for good.

        What is set aside is free for them.
        """
        chain = self.tree.chain(group)
        others = self._guarantees.of_others_than_the_guaranteed(chain, weight)
        lendable = self._free() + self._aside + self._lent.after(chain, weight) - weight
        return not others or lendable >= others or chain[0].sessions_borrow

    # -- counting -------------------------------------------------------------------------

    def _count(self, holding: Allocation, times: int) -> None:
        self._taken_for_good.clear()
        self.tally.count(holding, times)
        self._homes.moved(holding, times, self.pool)
        self._guarantees.moved(holding.group)
        self.entitled.moved(holding.group)
        self._kept.moved(holding.group)
        self._lent.moved(holding, times)
        weight = times * size(len(holding.devices), holding.share)
        for ahead in self._ahead:
            if ahead.binds(holding.group, holding.until):
                ahead.room -= weight

    def _charge(self, holding: Allocation, times: int) -> None:
        """Its budgets lose what it may still use, or have it back."""
        for group in self.tree.known(holding.group) if self.budgets else ():
            if group.name in self.budgets:
                self.budgets[group.name] -= times * _cost(holding, self.now)

    def _free(self) -> int:
        return self.pool.free_count() * THOUSAND

    def _reckon(self, now: float) -> None:
        """What reservations keep from others at this moment."""
        amounts = dict(not_lent(self.tree, self.guaranteed))
        for group, devices in self.due_devices().items():
            amounts[group] = max(amounts.get(group, 0), devices)
        self._kept = ReservedCapacity(self.tree, self.tally, amounts)
        self._ahead = [self._before(each) for each in self._reserved if each.starts_at > now]

    def _before(self, reserved: ReservedSpan) -> _Ahead:
        """What may still be lent past the beginning of a reservation."""
        active = [each for each in self._reserved if _is_due(each, reserved.starts_at)]
        groups = frozenset().union(*(self.tree.below(each.group) for each in active))
        ahead = _Ahead(at=reserved.starts_at, group=reserved.group, groups=groups, room=0)
        held = sum(
            size(len(each.devices), each.share)
            for each in self.running.holdings.values()
            if ahead.binds(each.group, each.until)
        )
        promised = sum(each.devices for each in active)
        ahead.room = (self.pool.could_count() - promised) * THOUSAND - held
        return ahead


def _leaves(request: PendingRequest, kept: int, pool: DevicePool) -> bool:
    weight = size(request.devices, request.share)
    return not kept or pool.free_count() * THOUSAND - weight >= kept


def _held_out_of_order(snapshot: Snapshot) -> int:
    """Devices that may not be lent any more and are held even so."""
    held = {device for each in snapshot.holdings for device in each.devices}
    return sum(device.id in held for device in snapshot.devices if not device.lendable)


def _is_due(reserved: ReservedSpan, now: float) -> bool:
    return reserved.starts_at <= now < reserved.ends_at


def _cost(holding: Allocation, since: float) -> float:
    """Device-seconds up to its time limit."""
    devices = size(len(holding.devices), holding.share) / THOUSAND
    return devices * max(0.0, holding.until - since)
