"""Decide the preemptions of a cycle: which requests reclaim, and which victims get a notice.

A request may preempt an allocation if, where their branches of the tree diverge, its own side
stays within its guaranteed quota with it, and the victim's side keeps its guaranteed quota and
due reservations without it (Kueue's reclaim within cohorts,
``classical/hierarchical_preemption.go``). A victim stays behind its preemptor in the queue
(rule 0 of ``queue.order.QueueOrder``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from types import MappingProxyType

from ..model.plan import Stop
from ..model.snapshot import Allocation, PendingRequest, PriorityClass
from ..placement.device_pool import DevicePool, Placement
from ..placement.gangs import largest_member
from ..quota.guarantees import Entitlement
from ..quota.tree import GroupTree, Tally, diverging_group
from .reclaim_rounds import (
    ClaimShape,
    OwnerShape,
    PreemptiblePool,
    ReclaimClaim,
    ReclaimPlan,
    reclaim_rounds,
)
from .victim_selection import Allowed, VictimSelection

Forms = Callable[[PendingRequest], Iterable[PendingRequest]]
_NOTHING: Mapping[str, int] = MappingProxyType({})


def reclaim(
    requests: Sequence[PendingRequest],
    *,
    pool: DevicePool,
    tally: Tally,
    tree: GroupTree,
    allocations: Sequence[Allocation],
    now: float,
    forms: Forms = lambda request: (request,),
    allowed: Allowed = lambda form, fewest, pool, tally: True,
    may_restart: Callable[[PendingRequest], bool] = lambda request: True,
    reserved: Mapping[str, int] = _NOTHING,
    still_held: Callable[[ReclaimPlan], Collection[str]] = lambda found: (),
) -> ReclaimPlan:
    """Select victims for the requests that may reclaim, in the order of the requests.

    1. Allocations that are leaving count as free.
    2. A request that fits takes its devices: the next one gets the rest.
    3. The first request that does not fit and finds victims preempts them.
    4. The victims count as leaving: repeat from 1, until no request finds victims.
    5. If requests ahead of a preemptor would take the devices, and may not preempt these victims
       themselves, its preemption is futile: repeat from the start, without victims for similar
       requests. If another rule would hold the preemptor (``still_held``), repeat without it and
       without similar requests of its owner with at least its time limit.
    6. Victims that became unnecessary, since a larger one was added later for the same request, are
       dropped.

    Therefore the next cycle, which sees the victims leaving, sends no further notice for the same
    requests, and every preemptor starts when its victims are gone.

    Args:
        requests: requests that lack devices, or that a limit of a group above holds.
        pool: the devices that are free now; it is not changed, nor is ``tally``.
        forms: returns a request with each model that its group may use.
        allowed: whether limits and devices withheld for others let a request start, given devices.
        may_restart: whether a running request could start again now if it were stopped.
        reserved: devices of due reservations by group, protected whether or not they are
            guaranteed.
        still_held: returns the preemptors that would not start even so.
    """
    fresh = partial(PreemptiblePool, pool, tally, tree, allocations, reserved)
    preemptible = fresh()
    claims = [ReclaimClaim(request, forms(request)) for request in requests if request.devices]
    futile: set[ClaimShape] = set()

    def is_free(claim: ReclaimClaim, placed: Placement) -> bool:
        """Return whether a placement is free, and no limit of the request needs a preemption."""
        available = pool.is_available if placed.share is not None else pool.is_free
        return all(map(available, placed.devices)) and any(
            pool.fits(fewest) and allowed(form, fewest, pool, tally) for form, fewest in claim.forms
        )

    select = partial(
        VictimSelection, now=now, allowed=allowed, futile=futile, may_restart=may_restart
    )
    while True:
        found = reclaim_rounds(claims, preemptible, partial(select, preemptible), is_free)
        passed = {stop.for_request for stop in found.stops} - found.placements.keys()
        held = () if passed or not found.stops else still_held(found)
        if not passed and not held:
            return _without_unneeded(found, claims, fresh, select)
        futile |= {claim.alike for claim in claims if claim.request.id in passed}
        claims = _without(claims, held)
        preemptible = fresh()


def _without(claims: Sequence[ReclaimClaim], held: Collection[str]) -> list[ReclaimClaim]:
    """Drop these claims, and similar ones of the same owners with at least their time limits."""
    shortest: dict[OwnerShape, float] = {}
    for claim in claims:
        if claim.request.id in held:
            seconds = claim.request.seconds
            shortest[claim.kind] = min(seconds, shortest.get(claim.kind, seconds))
    return [each for each in claims if each.request.seconds < shortest.get(each.kind, inf)]


def has_no_victims(
    requests: Sequence[PendingRequest],
    allocations: Iterable[Allocation],
    tree: GroupTree,
    entitlement: Entitlement,
) -> bool:
    """Return whether ``reclaim`` can be skipped, because it would find no victims.

    True if nothing is leaving, and for every group with preemptible work: a group of its chain is
    within its guaranteed quota, and none of its allocations is smaller than the largest member of a
    request.

    A group on the chain of a preemptor may exceed its guaranteed quota once that has started. Only
    an urgent request can preempt work of its own group or subtree.
    """
    preemptible: dict[str, int] = {}
    for allocation in allocations:
        if allocation.leaving:
            return False
        if allocation.preemptible and allocation.devices:
            count = len(allocation.devices)
            preemptible[allocation.group] = min(count, preemptible.get(allocation.group, count))
    wanted: dict[str, int] = {}
    for request in requests:
        wanted[request.group] = max(largest_member(request), wanted.get(request.group, 0))
    urgent = any(request.priority is PriorityClass.URGENT for request in requests)
    growing = {each.name for group in wanted for each in tree.chain(group)}
    return not any(
        (urgent or diverging_group(tree.ancestry(other), tree.chain(group)) is not None)
        and (
            smallest < largest
            or all(
                each.name in growing or entitlement.unused(each.name) < 0
                for each in tree.ancestry(other)
            )
        )
        for other, smallest in preemptible.items()
        for group, largest in wanted.items()
    )


def _without_unneeded(
    found: ReclaimPlan,
    claims: Sequence[ReclaimClaim],
    fresh: Callable[[], PreemptiblePool],
    select: Callable[[PreemptiblePool], VictimSelection],
) -> ReclaimPlan:
    """Drop unnecessary victims, opportunistic work last (step 6).

    All requests that are served must still be served without them, preemptors before others. With
    relocations, which are chosen together with the other victims, nothing is dropped.
    """
    if not found.early or any(stop.relocated for stop in found.stops):
        return found
    preemptible = fresh()
    preemptors = {stop.for_request for stop in found.stops}
    ordered = sorted(claims, key=lambda claim: claim.request.id not in preemptors)

    def served(stops: Iterable[Stop]) -> Mapping[str, Placement]:
        then = preemptible.next_to(preemptible.pool, preemptible.tally)
        then.preempt(each.request_id for each in stops)
        selection = select(then)
        taken = ((claim.request.id, selection.take(claim)) for claim in selection.in_order(ordered))
        return {name: placed for name, placed in taken if placed is not None}

    all_served = served(found.stops).keys() | found.placements.keys()

    def worth(stop: Stop) -> tuple[bool, float]:
        return preemptible.priority(stop.request_id) is not PriorityClass.OPPORTUNISTIC, stop.lost

    for stop in sorted(found.early, key=worth, reverse=True):
        fewer = tuple(each for each in found.stops if each is not stop)
        still_served = served(fewer)
        if still_served.keys() >= all_served:
            placements = {name: still_served[name] for name in found.placements}
            found = replace(found, stops=fewer, placements=placements)
    return found
