"""Who is asked back, so that a group gets what it is guaranteed and urgent work can start.

A request may take from a holding when, at the level of the tree where their groups part, its
own side stays within its guarantee with it, and the side of the holding keeps its guarantee
without it (Kueue's reclaim within cohorts, ``classical/hierarchical_preemption.go``), and what
is reserved for it at this moment. Whoever is asked back does not come back before the one it
made room for (rule 0 of ``ordering.Order``).
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
    """Make room for those of the requests, in their order, that may ask for it.

    1. What is leaving counts as free already.
    2. Whoever fits takes its devices: the next one finds the rest.
    3. The first one that does not fit and finds victims asks them back.
    4. They are leaving now: again from 1, until nobody finds any.
    5. Where others ahead of one that asked would start in its place, who may not ask these
       victims themselves, it asks in vain: again from the start, and nobody like it asks.
       Where some other rule holds it (``in_vain``), again without it, and without what its owner
       asks for that is like it and takes as long.
    6. Whoever need not go, since somebody larger was asked later for the same request, stays.

    So the next cycle, which sees them leaving, asks nobody again for the same requests, and
    whoever has a stop made for it starts when that is over.

    Attributes:
        requests: those that lack devices, or that a limit of a group above holds.
        pool: what is free now; it is not changed, nor is ``tally``.
        forms: a request with each model that its group may have.
        allowed: whether its limits, and what is kept for others, let it start, given devices.
        may_return: whether something that runs could start again now, were it stopped.
        reserved: devices by group that it keeps as well, above its guarantee or not.
        in_vain: of those for whom something is asked back, who would not start all the same.
    """
    fresh = partial(PreemptiblePool, pool, tally, tree, allocations, reserved)
    preemptible = fresh()
    claims = [ReclaimClaim(request, forms(request)) for request in requests if request.devices]
    futile: set[ClaimShape] = set()

    def is_free(claim: ReclaimClaim, placed: Placement) -> bool:
        """Whether that is free already, and nothing has to leave for the request's limits."""
        room = pool.is_available if placed.share is not None else pool.is_free
        return all(map(room, placed.devices)) and any(
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
    """Neither these, nor what is of one kind with one of them and takes as long."""
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
    """Whether it can be seen at once that ``reclaim`` will find nothing: nobody leaves, and of
    all that may be stopped some group of the chain holds no more than it is guaranteed, and has
    nothing smaller than what somebody asks for.

    A group on the chain of those that ask may come to hold more by what it asks for. Of work of
    its own group, or of one below it, only an urgent request takes.
    """
    stoppable: dict[str, int] = {}
    for allocation in allocations:
        if allocation.leaving:
            return False
        if allocation.preemptible and allocation.devices:
            count = len(allocation.devices)
            stoppable[allocation.group] = min(count, stoppable.get(allocation.group, count))
    asking: dict[str, int] = {}
    for request in requests:
        asking[request.group] = max(largest_member(request), asking.get(request.group, 0))
    urgent = any(request.priority is PriorityClass.URGENT for request in requests)
    growing = {each.name for group in asking for each in tree.chain(group)}
    return not any(
        (urgent or diverging_group(tree.ancestry(other), tree.chain(group)) is not None)
        and (
            smallest < largest
            or all(
                each.name in growing or entitlement.unused(each.name) < 0
                for each in tree.ancestry(other)
            )
        )
        for other, smallest in stoppable.items()
        for group, largest in asking.items()
    )


def _without_unneeded(
    found: ReclaimPlan,
    claims: Sequence[ReclaimClaim],
    fresh: Callable[[], PreemptiblePool],
    select: Callable[[PreemptiblePool], VictimSelection],
) -> ReclaimPlan:
    """Step 6, opportunistic work last. Whoever is served at all is served without them, those for
    whom anybody is asked before others. Where anything is moved, it was chosen with the rest."""
    if not found.early or any(stop.relocated for stop in found.stops):
        return found
    preemptible = fresh()
    made_for = {stop.for_request for stop in found.stops}
    in_turn = sorted(claims, key=lambda claim: claim.request.id not in made_for)

    def served(stops: Iterable[Stop]) -> Mapping[str, Placement]:
        then = preemptible.next_to(preemptible.pool, preemptible.tally)
        then.preempt(each.request_id for each in stops)
        selection = select(then)
        taken = ((claim.request.id, selection.take(claim)) for claim in selection.in_order(in_turn))
        return {name: placed for name, placed in taken if placed is not None}

    everybody = served(found.stops).keys() | found.placements.keys()

    def worth(stop: Stop) -> tuple[bool, float]:
        return preemptible.priority(stop.request_id) is not PriorityClass.OPPORTUNISTIC, stop.lost

    for stop in sorted(found.early, key=worth, reverse=True):
        fewer = tuple(each for each in found.stops if each is not stop)
        having = served(fewer)
        if having.keys() >= everybody:
            placements = {name: having[name] for name in found.placements}
            found = replace(found, stops=fewer, placements=placements)
    return found
