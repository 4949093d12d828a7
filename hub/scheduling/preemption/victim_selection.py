"""Select the victims of one request, given the devices that the requests ahead leave."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import inf

from ..model.plan import Reason, Stop
from ..model.snapshot import Allocation, Group, PendingRequest, PriorityClass
from ..placement.device_pool import DevicePool, Placement
from ..queue.queues import rank
from ..queue.running_set import allocation_of
from ..quota.guarantees import Entitlement
from ..quota.tree import THOUSAND, Tally, diverging_group, size
from .cheapest_victims import (
    Candidate,
    Chosen,
    Surplus,
    cheapest_first,
    cheapest_on_one_node,
    deduct,
    drop_unneeded,
)
from .defragmentation import as_pending, movable
from .reclaim_rounds import (
    ClaimShape,
    OwnerShape,
    PreemptiblePool,
    ReclaimClaim,
    reclaim_rounds,
)
from .victim_cost import cost, lost

Allowed = Callable[[PendingRequest, PendingRequest, DevicePool, Tally], bool]
"""Whether a form of a request may start with its minimum, given this pool and tally."""
_Reason = tuple[Reason, str, tuple[str, ...]]
"""Reason, the group that reclaims, and the groups that must keep their guaranteed quotas."""


class VictimSelection:
    """Free devices and quota usage after the requests ahead, and victims for the next one."""

    def __init__(
        self,
        preemptible: PreemptiblePool,
        *,
        now: float,
        allowed: Allowed,
        futile: Collection[ClaimShape] = (),
        may_restart: Callable[[PendingRequest], bool] = lambda request: False,
    ) -> None:
        """Args:
        futile: shapes of claims whose preemptions would free devices for other requests only.
        may_restart: as in ``reclaim``."""
        self._futile, self._may_restart = futile, may_restart
        self._not_relocatable: set[ClaimShape] = set()
        self._preemptible, self._tree = preemptible, preemptible.tree
        self._pool, self._tally = preemptible.pool.copy(), preemptible.tally.copy()
        self._now, self._allowed = now, allowed
        self._entitlement = Entitlement(self._tree, self._tally, preemptible.guaranteed)
        self._given_up: set[OwnerShape] = set()

    def in_order(self, claims: Iterable[ReclaimClaim]) -> Iterator[ReclaimClaim]:
        """Yield the entitled requests; of similar ones without victims, only the first."""
        for claim in claims:
            if claim.least in self._entitlement and claim.kind not in self._given_up:
                yield claim

    def take(self, claim: ReclaimClaim) -> Placement | None:
        """Take devices for the first of its forms that starts when the victims are gone."""
        for form, fewest in claim.forms:
            if self._starts(form, fewest):
                placed = self._pool.take(fewest)
                assert placed is not None
                self._tally.count(allocation_of(fewest, placed, now=self._now))
                self._entitlement.invalidate(form.group)
                return placed
        return None

    def victims(self, claim: ReclaimClaim) -> tuple[Stop, ...]:
        """Select victims for the first of its forms with enough of them; empty for none.

        1. opportunistic work alone, if that is enough
        2. work of groups above their guaranteed quotas, if that is enough; then also relocations
           (``_with_relocation``)
        3. least cost in device-seconds: lost work, and delay (``cost``)
        4. fewest victims, then the first node, then the first ids

        A set for a gang, or one that also frees headroom under a limit, has no unnecessary victim,
        and is close to the cheapest.
        """
        if claim.alike in self._futile:
            return ()
        ways = [self._choose]
        if claim.alike not in self._not_relocatable:
            ways.append(self._with_relocation)
        for choose in ways:
            for form, fewest in claim.forms:
                chosen = choose(form, fewest)
                if chosen:
                    return tuple(_stop(form, candidate, self._now) for candidate in chosen)
        self._not_relocatable.add(claim.alike)
        return ()

    def give_up(self, claim: ReclaimClaim) -> None:
        """Record that a request and similar ones have no victims."""
        self._given_up.add(claim.kind)

    def _starts(self, form: PendingRequest, fewest: PendingRequest, without: Chosen = ()) -> bool:
        """Return whether a form can start with its minimum once these victims are gone."""
        pool, tally = self._pool, self._tally
        if without:
            pool, tally = pool.copy(), tally.copy()
        for candidate in without:
            pool.release(candidate.allocation)
            tally.count(candidate.allocation, -1)
        return pool.fits(fewest) and self._allowed(form, fewest, pool, tally)

    def _choose(self, form: PendingRequest, request: PendingRequest) -> Chosen | None:
        """Choose victims for the minimum of a form; opportunistic work alone if that suffices."""
        candidates, surplus = self._candidates(request)
        lowest = tuple(
            each for each in candidates if each.allocation.priority is PriorityClass.OPPORTUNISTIC
        )
        for some in (lowest, candidates) if len(lowest) < len(candidates) else (candidates,):
            found = self._among(some, surplus, form, request)
            if found:
                return found
        return None

    def _with_relocation(self, form: PendingRequest, request: PendingRequest) -> Chosen | None:
        """Choose victims among the candidates and the work that may be relocated (``movable``).

        Relocated work has to start again beside the preemptor, if necessary on devices that are
        reclaimed for it in turn.
        """
        small = movable(request, self._preemptible, self._entitlement, self._now)
        relocated = [each for each in small if self._may_restart(self._as_pending(each.allocation))]
        if not relocated:
            return None
        candidates, surplus = self._candidates(request)
        known = {each.allocation.request_id for each in candidates}
        more = (each for each in relocated if each.allocation.request_id not in known)
        found = self._among((*candidates, *more), surplus, form, request)
        return found if found and self._relocated_restart(form, found) else None

    def _among(
        self,
        some: Sequence[Candidate],
        surplus: Surplus,
        form: PendingRequest,
        request: PendingRequest,
    ) -> Chosen | None:
        def enough(chosen: Chosen) -> bool:
            return self._starts(form, request, chosen)

        if self._on_one_node(request, some):
            lacking = partial(self._pool.missing_on, request=request)
            found = cheapest_on_one_node(some, lacking, surplus)
        else:
            found = cheapest_first(some, surplus, enough)
            if not found and request.gang:
                found = self._member_by_member(request, some, surplus, enough)
        return drop_unneeded(found, enough) if found else None

    def _relocated_restart(self, form: PendingRequest, chosen: Chosen) -> bool:
        """Return whether all relocated work starts again beside the preemptor."""
        preemptible = self._preemptible.next_to(self._pool, self._tally)
        preemptible.preempt(each.allocation.request_id for each in chosen)
        claims = [ReclaimClaim(form, (form,))]
        for each in chosen:
            if each.relocated:
                request = self._as_pending(each.allocation)
                claims.append(ReclaimClaim(request, (request,)))
        select = partial(VictimSelection, preemptible, now=self._now, allowed=self._allowed)
        found = reclaim_rounds(claims, preemptible, select, lambda claim, placed: False)
        return all(claim.request.id in found.placements for claim in claims)

    def _as_pending(self, allocation: Allocation) -> PendingRequest:
        return as_pending(allocation, self._pool, self._now)

    def _member_by_member(
        self,
        request: PendingRequest,
        candidates: Sequence[Candidate],
        surplus: Surplus,
        enough: Callable[[Chosen], bool],
    ) -> Chosen | None:
        """Choose victims for a gang when the cheapest ones are spread over too many nodes.

        Every member, the largest first, gets the cheapest set on one node.
        """
        pool, left = self._pool.copy(), dict(surplus)
        chosen: Chosen = ()
        for role in sorted(request.gang, key=lambda role: -role.devices):
            member = replace(request, gang=(), devices=role.devices)
            for _ in range(role.minimum):
                if not pool.fits(member):
                    others = [each for each in candidates if each not in chosen]
                    lacking = partial(pool.missing_on, request=member)
                    found = cheapest_on_one_node(others, lacking, left)
                    if not found:
                        return None
                    for each in found:
                        pool.release(each.allocation)
                        deduct(each, left)
                    chosen += found
                pool.take(member)
        return chosen if enough(chosen) else None

    def _on_one_node(self, request: PendingRequest, candidates: Iterable[Candidate]) -> bool:
        """Return whether a request only needs whole devices of one node."""
        return (
            not request.gang
            and request.share is None
            and self._allowed(request, request, self._pool, self._tally)
            and all(each.allocation.share is None for each in candidates)
        )

    def _candidates(self, request: PendingRequest) -> tuple[tuple[Candidate, ...], Surplus]:
        """Return the allocations that this request may preempt, and the surplus of their groups."""
        chain = self._tree.chain(request.group)
        found: list[Candidate] = []
        surplus: Surplus = {}
        for part in self._preemptible.parts:
            reason = self._reason(request, *part, chain)
            if reason is None:
                continue
            why, name, protected = reason
            surplus.update((each, self._above(each)) for each in protected)
            most = min([surplus[each] for each in protected], default=inf)
            if most <= 0:
                continue
            for allocation, gains in self._preemptible.gains(part, request.model).values():
                weight = size(len(allocation.devices), allocation.share)
                if weight <= most:
                    found.append(
                        Candidate(
                            allocation=allocation,
                            why=why,
                            group=name,
                            weight=weight,
                            protected=protected,
                            cost=cost(allocation, self._now),
                            gains=gains,
                        )
                    )
        return tuple(found), surplus

    def _above(self, group: str) -> int:
        """Return the thousandths of a device that a group holds above its protected quota."""
        reserved = self._preemptible.reserved.get(group, 0) * THOUSAND
        return min(-self._entitlement.unused(group), self._tally.groups[group] - reserved)

    def _reason(
        self, request: PendingRequest, other: str, priority: PriorityClass, chain: tuple[Group, ...]
    ) -> _Reason | None:
        """Return why a request may preempt work of a group and class; None if it may not.

        Guaranteed quota is checked at the topmost group that is above the request only.
        """
        if rank(priority) < rank(request.priority):
            return None
        theirs = self._tree.ancestry(other)
        own = diverging_group(theirs, chain)
        mine = {group.name for group in chain}
        protected = tuple(group.name for group in theirs if group.name not in mine)
        wanted = size(request.devices, request.share)
        if own is not None and wanted <= self._entitlement.unused(own.name):
            return Reason.GUARANTEE, own.name, protected
        opportunistic = priority is PriorityClass.OPPORTUNISTIC
        if request.priority is PriorityClass.URGENT and opportunistic:
            return Reason.BEHIND_OTHERS, request.group, protected
        return None


def _stop(request: PendingRequest, candidate: Candidate, now: float) -> Stop:
    return Stop(
        request_id=candidate.allocation.request_id,
        for_request=request.id,
        why=candidate.why,
        group=candidate.group,
        lost=lost(candidate.allocation, now),
        relocated=candidate.relocated,
    )
