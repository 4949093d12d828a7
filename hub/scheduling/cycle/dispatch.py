"""Dispatch: serve the requests of a queue in order; a request starts now, or a rule holds it.

The cycle dispatches the queue once for now, and estimates dispatch it again at every expected end,
so that both follow the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..backfill.devices import DeviceBackfill
from ..backfill.limits import LimitBackfill
from ..backfill.shadow_time import NonPreemptibleBackfill
from ..model.plan import Reason, Start
from ..model.snapshot import Allocation, Kind, PendingRequest
from ..placement.device_pool import Placement, Shape, shape
from ..placement.gangs import forms, is_elastic
from ..preemption.pending_reclaims import PendingReclaims
from ..queue.cycle_state import CycleState, HoldReason
from ..queue.running_set import allocation_of, expected_seconds
from ..quota.headroom import HeadroomCache, Key, limit_reached
from ..quota.tree import size

_Alike = tuple[str, str, int, bool]
"""Group, owner, thousandths of a device, and whether it is a session: all that limits depend on."""
_Limit = tuple[Reason, str, Key | None]
"""The limit without headroom: reason, group, and the key under which requests wait for it."""

_BEHIND, _SESSION = Reason.BEHIND_OTHERS, Kind.SESSION
"""Constants, because looking up an enum member is slow in Python 3.11."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchStart:
    """A request that starts, its allocation, and the number of members of each role of a gang."""

    request: PendingRequest
    allocation: Allocation
    members: tuple[int, ...] = ()

    @property
    def start(self) -> Start:
        on = None if self.allocation.devices else self.request.nodes
        return Start(
            request_id=self.request.id,
            devices=self.allocation.devices,
            nodes=on,
            members=self.members,
        )


@dataclass(slots=True, kw_only=True)
class DispatchHold:
    """A request that stays queued, the rule that holds it, and the object that the sentence names.

    It is not frozen: one is created for every request, and that would take three times as long.

    Attributes:
        limit: the limit that it waits for; it blocks only requests under the same limit.
    """

    request: PendingRequest
    reason: Reason
    detail: str = ""
    limit: Key | None = None


def dispatch(
    queue: Iterable[PendingRequest], state: CycleState, reclaims: PendingReclaims | None = None
) -> tuple[tuple[DispatchStart, ...], tuple[DispatchHold, ...]]:
    """Serve a whole queue in order; the state changes."""
    started: list[DispatchStart] = []
    held: list[DispatchHold] = []
    run = Dispatch(state, reclaims)
    for request in queue:
        served = run.serve(request)
        if isinstance(served, DispatchHold):
            held.append(served)
        else:
            started.append(served)
    run.finish()
    return tuple(started), tuple(held)


class Dispatch:
    """State of one dispatch of a queue."""

    def __init__(
        self,
        state: CycleState,
        reclaims: PendingReclaims | None = None,
        unfit: set[Shape] | None = None,
    ) -> None:
        """``unfit``: shapes known not to fit; newly found ones are added."""
        self.state = state
        self._reclaims = reclaims
        self.limit_backfill = LimitBackfill()
        self.backfill: DeviceBackfill | None = None
        """Backfill behind the head of the queue, the first request that lacks devices, if any."""
        self._unfit: set[Shape] = set() if unfit is None else unfit
        """Shapes that did not fit, for an earlier request or in an earlier step; the pool has not
        grown since."""
        self._fit: set[Shape] = set()
        """Shapes that fit as long as nothing starts."""
        self._behind: set[Shape] = set()
        """Shapes that do not fit now, found behind a head, in groups that may use all models."""
        self._denied_guarantee: set[tuple[str, Shape]] = set()
        """Shapes by group that others' guaranteed quota holds, as long as nothing starts."""
        self._non_preemptible: NonPreemptibleBackfill | None = None
        """Backfill behind the first request that others' guaranteed quota holds, if any."""
        self._headroom = HeadroomCache(state.caps, state.tally, state.budgets)
        self._limits: dict[_Alike, _Limit | None] = {}
        """Limits without headroom, as long as nothing starts."""

    def copy(self) -> Dispatch:
        """Return a copy with its own state."""
        clone = Dispatch(
            self.state.copy(), None if self._reclaims is None else self._reclaims.copy()
        )
        clone.limit_backfill, clone._unfit = self.limit_backfill.copy(), self._unfit.copy()
        clone._behind, clone._limits = self._behind.copy(), self._limits.copy()
        clone.backfill = None if self.backfill is None else self.backfill.copy(clone.state)
        clone._non_preemptible = (
            None if self._non_preemptible is None else self._non_preemptible.copy(clone.state)
        )
        return clone

    def can_skip(self, request: PendingRequest) -> bool:
        """Return True if serving a request is known to change nothing.

        The rule that holds it already held a similar request, and it neither delays others nor
        reclaims. For callers that do not need the reason, before ``serve``.
        """
        key, weight = shape(request), size(request.devices, request.share)
        left, smaller = self._headroom.left(request)
        if weight > smaller:
            return self._limits.get(_limit_key(request, weight)) is not None
        unfit = key in self._unfit
        if (weight > left and not unfit) or self.state.tree.models(request.group) is not None:
            return False
        hold = (request.group, key) in self._denied_guarantee and not request.preemptible
        if self.backfill is None:
            return hold
        held = key in self._behind if unfit else hold
        return held and (self._reclaims is None or request not in self.state.entitlement)

    def finish(self) -> None:
        """End the dispatch: devices set aside for preemptors are free again."""
        if self._reclaims is not None:
            self._reclaims.release(self.state)
            if self._reclaims.has_set_aside:
                self._unfit.clear()

    def serve(self, request: PendingRequest) -> DispatchStart | DispatchHold:
        """Serve one request by the first rule that applies.

        1. A limit of its group or owner has no headroom: it waits. Later requests may use headroom
           under the same limit if that does not delay it.
        2. It needs no device: it starts, unless all nodes are drained.
        3. The pool has too few working devices: it waits, and blocks no other request.
        4. It would run into a reservation, or is not preemptible and would use others' guaranteed
           quota: it waits. Other non-preemptible requests may not delay the first of the latter.
        5. Too few devices are free: it waits. The first such request is the *head*, and reserves
           the earliest time at which it is expected to fit.
        6. The devices are free, not withheld for others, and no request ahead is delayed (the head,
           requests that wait for headroom, preemptors with relocations): it starts.
        7. Otherwise it waits behind those.
        """
        state = self.state
        key = shape(request)
        any_model = state.tree.models(request.group) is None
        weight = size(request.devices, request.share)
        left, smaller = self._headroom.left(request)
        if any_model and weight <= smaller and key in self._behind:
            return self._is_behind(request)
        if weight > left:
            unfit = any_model and key in self._unfit
            held = self._limited(request, needs_devices=weight <= smaller, unfit=unfit)
            if held is not None:
                return held
        if request.devices == 0:
            if state.pool.takes_work and request.nodes != frozenset():
                return self._start(request, Placement(devices=()))
            return self._out_of_reach(request, Reason.DRAINING)
        variants = state.variants(request)
        fitting = [each for each in variants if self._fits(each)]
        if not fitting:
            if not any(map(state.pool.could_fit, variants)):
                return self._out_of_reach(request, Reason.POOL_TOO_SMALL)
            if self.backfill is not None:
                if any_model:
                    self._behind.add(key)
                return self._is_behind(request)
        form = self._reduced_gang(request)
        hold = state.hold_reason(form)
        if hold is not None:
            return self._is_withheld(request, hold)
        if form is not request:
            fitting = [each for each in state.variants(form) if self._fits(each)]
        return self._with_devices(request, form, fitting)

    def _is_withheld(self, request: PendingRequest, hold: HoldReason) -> DispatchHold:
        """Hold a request by rule 4."""
        if hold.reason is Reason.GUARANTEE:
            self._denied_guarantee.add((request.group, shape(request)))
            if self._non_preemptible is None:
                self._non_preemptible = NonPreemptibleBackfill(request, self.state)
        return DispatchHold(request=request, reason=hold.reason, detail=hold.detail)

    def _is_behind(self, request: PendingRequest) -> DispatchHold:
        if self._reclaims is not None:
            self._reclaims.add(request)
        return DispatchHold(request=request, reason=_BEHIND)

    def _out_of_reach(self, request: PendingRequest, otherwise: Reason) -> DispatchHold:
        """Hold a request that does not fit the pool, by ``ENGINE`` if any engine does not
        answer."""
        if self.state.unreachable:
            sentence = self.state.unreachable[0]
            return DispatchHold(request=request, reason=Reason.ENGINE, detail=sentence)
        return _held(request, otherwise)

    def _limited(
        self, request: PendingRequest, *, needs_devices: bool, unfit: bool
    ) -> DispatchHold | None:
        """Hold a request by rule 1, or return None if it does not apply.

        Similar requests share the result as long as nothing starts.

        Args:
            needs_devices: only limits as large as the pool have no headroom.
            unfit: it is already known that no devices are free for it.
        """
        if needs_devices and (unfit or not self._fits_any_variant(request)):
            # The limit covers the pool, so that it is reached when the pool is full.
            return None
        alike = _limit_key(request, size(request.devices, request.share))
        if alike not in self._limits:
            self._limits[alike] = self._limit(request)
        limit = self._limits[alike]
        if limit is None:
            return None
        reason, group, key = limit
        return DispatchHold(request=request, reason=reason, detail=group, limit=key)

    def _limit(self, request: PendingRequest) -> _Limit | None:
        """Return the limit without headroom, and add the request to the ones that wait for it."""
        state = self.state
        found = limit_reached(request, state.tree, state.tally, state.budgets)
        if found is None:
            return None
        key = self.limit_backfill.add_head(request, found, state)
        return Reason.ABOVE_MAXIMUM if found.permanent else found.reason, found.group, key

    def _reduced_gang(self, request: PendingRequest) -> PendingRequest:
        """Reduce a gang to a number of members for which no devices are withheld.

        A gang is unchanged if devices are withheld even from its minimum.
        """
        if not request.gang or not is_elastic(request):
            return request
        state = self.state
        return next(
            (
                each
                for each in forms(request)
                if state.keeps_reserved(each) and state.hold_reason(each) is None
            ),
            request,
        )

    def group_headroom(self, group: str) -> int:
        """Return the headroom under the limits of a group and all groups above it."""
        return self._headroom.of_groups(group)[0]

    def pool_weight(self, request: PendingRequest) -> int:
        """Return the weight of a request in thousandths of a device, at most the pool size.

        A larger gang may start with fewer members.
        """
        return min(size(request.devices, request.share), self.state.caps.pool_size)

    def may_fit(self, request: PendingRequest) -> bool:
        """Return whether a request of this shape may find free devices of any model."""
        if not request.devices:
            return self.state.pool.takes_work
        return self._fits(request)

    def could_start(self, request: PendingRequest) -> bool:
        """Return whether no rule that is cheap to check holds a request.

        If one does, it also holds similar requests of the same owner that would end later.
        """
        state = self.state
        if not request.devices:
            return bool(state.tree.chain(request.group))
        if self.pool_weight(request) > self._headroom.left(request)[0]:
            return False
        ends_at = state.now + expected_seconds(request)
        request = self._reduced_gang(request)
        if not state.keeps_reserved(request) or state.hold_reason(request, ends_at):
            return False
        if self.backfill is not None and not self.backfill.allows(request, ends_at):
            return False
        # With preemption, devices are set aside even for a request that waits behind a limit.
        return self._reclaims is not None or not self.limit_backfill.is_known_to_block(
            request, ends_at, state
        )

    def _with_devices(
        self, request: PendingRequest, form: PendingRequest, fitting: list[PendingRequest]
    ) -> DispatchStart | DispatchHold:
        """Serve a request by rules 5 to 7; ``form`` has as many members as it may have."""
        state = self.state
        enough = state.keeps_reserved(form)
        ends_at = state.now + expected_seconds(form)
        if not fitting or not enough:
            return self._lacks_devices(request, ends_at, fits=bool(fitting))
        if self.backfill is not None:
            if self.backfill.allows(form, ends_at) and self._sets_more_aside(self.backfill):
                return self.serve(request)
            self.backfill.reserve(self.limit_backfill)
        key = self.limit_backfill.blocking_limit(form, ends_at, state)
        if key is not None:
            return DispatchHold(request=request, reason=Reason.BEHIND_OTHERS, limit=key)
        if self._non_preemptible is not None and not self._non_preemptible.allows(form, ends_at):
            return DispatchHold(request=request, reason=_BEHIND)
        placed = self._take(fitting, ends_at)
        if placed is not None and self._reclaims is not None and self._reclaims.relocates:
            placed = self._beside_relocations(fitting, ends_at, placed, self._reclaims)
        if placed is None:
            return self._is_behind(request)
        return self._start(form, placed)

    def _take(self, fitting: Sequence[PendingRequest], ends_at: float) -> Placement | None:
        if self.backfill is not None:
            return self.backfill.take(fitting, ends_at)
        return self.state.pool.take(fitting[0], self.state.group_nodes(fitting[0].group))

    def _beside_relocations(
        self,
        fitting: Sequence[PendingRequest],
        ends_at: float,
        placed: Placement,
        reclaims: PendingReclaims,
    ) -> Placement | None:
        """Return this placement, or one on other nodes, that leaves devices for relocated work."""
        pool = self.state.pool
        while not reclaims.allows(
            allocation_of(fitting[0], placed, now=self.state.now), self.state
        ):
            pool.release(placed)
            if self.backfill is not None:
                self.backfill.invalidate()
                self.backfill.reserve(self.limit_backfill)
            elsewhere = (
                replace(each, nodes=pool.other_nodes(placed, each.nodes)) for each in fitting
            )
            fitting = [each for each in elsewhere if pool.fits(each)]
            found = self._take(fitting, ends_at) if fitting and not placed.share else None
            if found is None:
                return None
            placed = found
        return placed

    def _sets_more_aside(self, backfill: DeviceBackfill) -> bool:
        """Set devices aside for the requests ahead; return whether the free devices changed."""
        if self._reclaims is None or not self._reclaims.set_aside(backfill.head, self.state):
            return False
        backfill.invalidate()
        self.limit_backfill.invalidate()
        if self._non_preemptible is not None:
            self._non_preemptible.invalidate()
        self._fit.clear()
        self._unfit.clear()
        self._denied_guarantee.clear()
        return True

    def _lacks_devices(
        self, request: PendingRequest, ends_at: float, *, fits: bool
    ) -> DispatchHold:
        if self._reclaims is not None:
            self._reclaims.add(request)
        if self.backfill is None:
            key = self.limit_backfill.blocking_limit(request, ends_at, self.state)
            if key is not None:
                return DispatchHold(request=request, reason=Reason.BEHIND_OTHERS, limit=key)
            self.backfill = DeviceBackfill(request, self.state.variants(request), self.state)
            if not fits:
                return _held(request, Reason.NO_FREE_DEVICE)
        return DispatchHold(
            request=request, reason=self.state.reserved_reason(request) if fits else _BEHIND
        )

    def _start(self, request: PendingRequest, placed: Placement) -> DispatchStart:
        allocation = allocation_of(request, placed, now=self.state.now)
        self.state.start(allocation)
        if allocation.devices:
            self._fit.clear()
            self._denied_guarantee.clear()
            self._headroom.clear()
            self._limits.clear()
            ends_at = self.state.now + expected_seconds(request)
            self.limit_backfill.started(request, ends_at, self.state)
            if self._non_preemptible is not None:
                self._non_preemptible.started(allocation, ends_at)
        return DispatchStart(request=request, allocation=allocation, members=placed.members)

    def _fits_any_variant(self, request: PendingRequest) -> bool:
        """Return whether a request fits with any of the models that its group may use."""
        return any(map(self._fits, self.state.variants(request)))

    def _fits(self, request: PendingRequest) -> bool:
        key = shape(request)
        if key in self._unfit:
            return False
        if key in self._fit:
            return True
        fits = self.state.pool.fits(request)
        (self._fit if fits else self._unfit).add(key)
        return fits


def _limit_key(request: PendingRequest, weight: int) -> _Alike:
    return (request.group, request.owner, weight, request.kind is _SESSION)


def _held(request: PendingRequest, reason: Reason) -> DispatchHold:
    """Hold a request for devices of its model."""
    return DispatchHold(request=request, reason=reason, detail=request.model or "")
