"""Select victims."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import inf

from ..model.plan import Reason, Stop
from ..model.snapshot import Allocation, Group, PendingRequest, PriorityClass
from ..placement.device_pool import DevicePool, Placement
from ..queue.queues import rank
from ..queue.running_set import holding_of
from ..quota.guarantees import Entitlement
from ..quota.tree import THOUSAND, Tally, parting, size
from .defragmentation import again, movable
from .reclaim_rounds import (
    ClaimShape,
    OwnerShape,
    PreemptiblePool,
    ReclaimClaim,
    reclaim_rounds,
)
from .victim_search import (
    Candidate,
    Chosen,
    Spare,
    cheapest_on_one_node,
    cost,
    first_that_do,
    lost,
    take_from,
    without_the_useless,
)

Allowed = Callable[[PendingRequest, PendingRequest, DevicePool, Tally], bool]
"""Whether a form of a request may start, with the least of it, next to what is free and held."""
_Reason = tuple[Reason, str, tuple[str, ...]]
"""Why, in whose name, and which groups keep their guarantee."""


class VictimSelection:
    """What will be free and held, as the requests before have left it."""

    def __init__(
        self,
        ground: PreemptiblePool,
        *,
        now: float,
        allowed: Allowed,
        vain: Collection[ClaimShape] = (),
        may_return: Callable[[PendingRequest], bool] = lambda request: False,
    ) -> None:
        """``vain``: what was asked back for these, others would have. ``may_return``: as in
        ``reclaim``."""
        self._vain, self._may_return = vain, may_return
        self._unmovable: set[ClaimShape] = set()
        self._ground, self._tree = ground, ground.tree
        self._pool, self._tally = ground.pool.copy(), ground.tally.copy()
        self._now, self._allowed = now, allowed
        self._entitled = Entitlement(self._tree, self._tally, ground.guaranteed)
        self._hopeless: set[OwnerShape] = set()

    def in_order(self, claims: Iterable[ReclaimClaim]) -> Iterator[ReclaimClaim]:
        """Those that may ask; of those alike that ask in vain, the first."""
        for claim in claims:
            if claim.least in self._entitled and claim.kind not in self._hopeless:
                yield claim

    def take(self, claim: ReclaimClaim) -> Placement | None:
        """The devices of the first of its forms that starts with what will be free."""
        for form, fewest in claim.forms:
            if self._starts(form, fewest):
                placed = self._pool.take(fewest)
                assert placed is not None
                self._tally.count(holding_of(fewest, placed, now=self._now))
                self._entitled.moved(form.group)
                return placed
        return None

    def victims(self, claim: ReclaimClaim) -> tuple[Stop, ...]:
        """For the first of its forms that can have room; empty where none can.

        1. opportunistic work alone, where that is enough
        2. no work that is within its guarantee, where that is enough (``_moving``)
        3. least cost, in device-seconds: work that is lost, and delay (``cost``)
        4. fewest holdings, then the first node, then the first ids

        A set for a gang, or one that also has to make room under a limit, holds nobody in vain,
        and is close to the cheapest one.
        """
        if claim.alike in self._vain:
            return ()
        ways = [self._choose]
        if claim.alike not in self._unmovable:
            ways.append(self._moving)
        for choose in ways:
            for form, fewest in claim.forms:
                chosen = choose(form, fewest)
                if chosen:
                    return tuple(_stop(form, candidate, self._now) for candidate in chosen)
        self._unmovable.add(claim.alike)
        return ()

    def give_up(self, claim: ReclaimClaim) -> None:
        """Nobody can be asked for it, nor for its like."""
        self._hopeless.add(claim.kind)

    def _starts(self, form: PendingRequest, fewest: PendingRequest, without: Chosen = ()) -> bool:
        """The devices of the least of it are enough."""
        pool, tally = self._pool, self._tally
        if without:
            pool, tally = pool.copy(), tally.copy()
        for candidate in without:
            pool.give_back(candidate.holding)
            tally.count(candidate.holding, -1)
        return pool.fits(fewest) and self._allowed(form, fewest, pool, tally)

    def _choose(self, form: PendingRequest, request: PendingRequest) -> Chosen | None:
        """Whom to stop for the least of a form."""
        candidates, spare = self._candidates(request)
        lowest = tuple(
            each for each in candidates if each.holding.priority is PriorityClass.OPPORTUNISTIC
        )
        for some in (lowest, candidates) if len(lowest) < len(candidates) else (candidates,):
            found = self._among(some, spare, form, request)
            if found:
                return found
        return None

    def _moving(self, form: PendingRequest, request: PendingRequest) -> Chosen | None:
        """The same where that is not enough: together with what may be moved (``movable``), as
        long as it starts again beside what it makes room for, if need be with devices that are
        asked back for it in turn."""
        small = movable(request, self._ground, self._entitled, self._now)
        moved = [each for each in small if self._may_return(self._again(each.holding))]
        if not moved:
            return None
        candidates, spare = self._candidates(request)
        known = {each.holding.request_id for each in candidates}
        more = (each for each in moved if each.holding.request_id not in known)
        found = self._among((*candidates, *more), spare, form, request)
        return found if found and self._go_on(form, found) else None

    def _among(
        self, some: Sequence[Candidate], spare: Spare, form: PendingRequest, request: PendingRequest
    ) -> Chosen | None:
        def enough(chosen: Chosen) -> bool:
            return self._starts(form, request, chosen)

        if self._on_one_node(request, some):
            lacking = partial(self._pool.lacking_on, request=request)
            found = cheapest_on_one_node(some, lacking, spare)
        else:
            found = first_that_do(some, spare, enough)
            if not found and request.gang:
                found = self._member_by_member(request, some, spare, enough)
        return without_the_useless(found, enough) if found else None

    def _go_on(self, form: PendingRequest, chosen: Chosen) -> bool:
        """Whether all that is moved starts again next to what it makes room for."""
        ground = self._ground.next_to(self._pool, self._tally)
        ground.leave(each.holding.request_id for each in chosen)
        claims = [ReclaimClaim(form, (form,))]
        for each in chosen:
            if each.moved:
                request = self._again(each.holding)
                claims.append(ReclaimClaim(request, (request,)))
        ask = partial(VictimSelection, ground, now=self._now, allowed=self._allowed)
        found = reclaim_rounds(claims, ground, ask, lambda claim, placed: False)
        return all(claim.request.id in found.waiting for claim in claims)

    def _again(self, holding: Allocation) -> PendingRequest:
        return again(holding, self._pool, self._now)

    def _member_by_member(
        self,
        request: PendingRequest,
        candidates: Sequence[Candidate],
        spare: Spare,
        enough: Callable[[Chosen], bool],
    ) -> Chosen | None:
        """For a gang, where the cheapest lie on so many nodes that they empty none.

        One member after the other, the largest first, has the cheapest set on one node.
        """
        pool, left = self._pool.copy(), dict(spare)
        chosen: Chosen = ()
        for role in sorted(request.gang, key=lambda role: -role.devices):
            member = replace(request, gang=(), devices=role.devices)
            for _ in range(role.minimum):
                if not pool.fits(member):
                    others = [each for each in candidates if each not in chosen]
                    lacking = partial(pool.lacking_on, request=member)
                    found = cheapest_on_one_node(others, lacking, left)
                    if not found:
                        return None
                    for each in found:
                        pool.give_back(each.holding)
                        take_from(each, left)
                    chosen += found
                pool.take(member)
        return chosen if enough(chosen) else None

    def _on_one_node(self, request: PendingRequest, candidates: Iterable[Candidate]) -> bool:
        """Whether whole devices of one node are all that it takes."""
        return (
            not request.gang
            and request.share is None
            and self._allowed(request, request, self._pool, self._tally)
            and all(each.holding.share is None for each in candidates)
        )

    def _candidates(self, request: PendingRequest) -> tuple[tuple[Candidate, ...], Spare]:
        """Each holding that could help and that this request may take from, and what the groups
        that keep their guarantee hold above it."""
        chain = self._tree.chain(request.group)
        found: list[Candidate] = []
        spare: Spare = {}
        for part in self._ground.parts:
            reason = self._reason(request, *part, chain)
            if reason is None:
                continue
            why, name, keeps = reason
            spare.update((each, self._above(each)) for each in keeps)
            most = min([spare[each] for each in keeps], default=inf)
            if most <= 0:
                continue
            for holding, gains in self._ground.gains(part, request.model).values():
                weight = size(len(holding.devices), holding.share)
                if weight <= most:
                    found.append(
                        Candidate(
                            holding=holding,
                            why=why,
                            group=name,
                            weight=weight,
                            keeps=keeps,
                            cost=cost(holding, self._now),
                            gains=gains,
                        )
                    )
        return tuple(found), spare

    def _above(self, group: str) -> int:
        """Thousandths of a device that a group holds above all that it keeps."""
        reserved = self._ground.reserved.get(group, 0) * THOUSAND
        return min(-self._entitled.left_of(group), self._tally.groups[group] - reserved)

    def _reason(
        self, request: PendingRequest, other: str, priority: PriorityClass, chain: tuple[Group, ...]
    ) -> _Reason | None:
        """Why it may take from a group's work of this class; None where it may not.

        The level is that of the topmost group that is above the request alone.
        """
        if rank(priority) < rank(request.priority):
            return None
        theirs = self._tree.known(other)
        own = parting(theirs, chain)
        mine = {group.name for group in chain}
        keeps = tuple(group.name for group in theirs if group.name not in mine)
        wanted = size(request.devices, request.share)
        if own is not None and wanted <= self._entitled.left_of(own.name):
            return Reason.GUARANTEE, own.name, keeps
        opportunistic = priority is PriorityClass.OPPORTUNISTIC
        if request.priority is PriorityClass.URGENT and opportunistic:
            return Reason.BEHIND_OTHERS, request.group, keeps
        return None


def _stop(request: PendingRequest, candidate: Candidate, now: float) -> Stop:
    return Stop(
        request_id=candidate.holding.request_id,
        for_request=request.id,
        why=candidate.why,
        group=candidate.group,
        lost=lost(candidate.holding, now),
        moved=candidate.moved,
    )
