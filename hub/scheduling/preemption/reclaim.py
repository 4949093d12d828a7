"""Who is asked back, so that a group gets what it is guaranteed and urgent work can start.

A request may take from a holding when, at the level of the tree where their groups part, its
own side stays within its guarantee with it, and the side of the holding keeps its guarantee
without it (Kueue's reclaim within cohorts, ``classical/hierarchical_preemption.go``), and what
is reserved for it at this moment. Whoever is asked back does not come back before the one it
made room for (rule 0 of ``ordering.Order``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from types import MappingProxyType

from ..model.plan import Reason, Stop
from ..model.snapshot import Allocation, Group, PendingRequest, PriorityClass
from ..placement.device_pool import DevicePool, Placement, Shape, shape
from ..placement.gangs import largest_member, least
from ..queue.queues import rank
from ..queue.running_set import holding_of
from ..quota.entitlement import Entitlement
from ..quota.tree import THOUSAND, GroupTree, Tally, parting, size
from .defragmentation import again, movable
from .preemptible_pool import PreemptiblePool
from .stop_cost import cost, lost
from .victim_search import (
    Candidate,
    Chosen,
    Spare,
    cheapest_on_one_node,
    first_that_do,
    take_from,
    without_the_useless,
)

Allowed = Callable[[PendingRequest, PendingRequest, DevicePool, Tally], bool]
"""Whether a form of a request may start, with the least of it, next to what is free and held."""
Forms = Callable[[PendingRequest], Iterable[PendingRequest]]
_Reason = tuple[Reason, str, tuple[str, ...]]
"""Why, in whose name, and which groups keep their guarantee."""
_Kind = tuple[str, str, PriorityClass, Shape]
_Alike = tuple[str, PriorityClass, Shape]
"""A group and what is asked for in it, whoever asks."""
_NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimPlan:
    """What is asked back in one cycle.

    Attributes:
        waiting: who waits for it, or for what was asked back earlier, and what each will have.
        early: those of the stops whose request had to ask once more: what they give back went to
            somebody ahead of it.
    """

    stops: tuple[Stop, ...] = ()
    waiting: Mapping[str, Placement] = field(default_factory=dict)
    early: tuple[Stop, ...] = field(default=(), compare=False)


def reclaim(
    requests: Sequence[PendingRequest],
    *,
    pool: DevicePool,
    tally: Tally,
    tree: GroupTree,
    holdings: Sequence[Allocation],
    now: float,
    forms: Forms = lambda request: (request,),
    allowed: Allowed = lambda form, fewest, pool, tally: True,
    may_return: Callable[[PendingRequest], bool] = lambda request: True,
    reserved: Mapping[str, int] = _NOTHING,
    in_vain: Callable[[ReclaimPlan], Collection[str]] = lambda found: (),
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
    fresh = partial(PreemptiblePool, pool, tally, tree, holdings, reserved)
    ground = fresh()
    claims = [_Claim(request, forms(request)) for request in requests if request.devices]
    vain: set[_Alike] = set()

    def is_free(claim: _Claim, placed: Placement) -> bool:
        """Whether that is free already, and nothing has to leave for the request's limits."""
        room = pool.has_room_on if placed.share is not None else pool.is_free
        return all(map(room, placed.devices)) and any(
            pool.fits(fewest) and allowed(form, fewest, pool, tally) for form, fewest in claim.forms
        )

    ask = partial(_Asked, now=now, allowed=allowed, vain=vain, may_return=may_return)
    while True:
        found = _rounds(claims, ground, partial(ask, ground), is_free)
        passed = {stop.for_request for stop in found.stops} - found.waiting.keys()
        held = () if passed or not found.stops else in_vain(found)
        if not passed and not held:
            return _needed(found, claims, fresh, ask)
        vain |= {claim.alike for claim in claims if claim.request.id in passed}
        claims = _without(claims, held)
        ground = fresh()


def _without(claims: Sequence[_Claim], held: Collection[str]) -> list[_Claim]:
    """Neither these, nor what is of one kind with one of them and takes as long."""
    shortest: dict[_Kind, float] = {}
    for claim in claims:
        if claim.request.id in held:
            seconds = claim.request.seconds
            shortest[claim.kind] = min(seconds, shortest.get(claim.kind, seconds))
    return [each for each in claims if each.request.seconds < shortest.get(each.kind, inf)]


def nobody_to_ask(
    requests: Sequence[PendingRequest],
    holdings: Iterable[Allocation],
    tree: GroupTree,
    entitled: Entitlement,
) -> bool:
    """Whether it can be seen at once that ``reclaim`` will find nothing: nobody leaves, and of
    all that may be stopped some group of the chain holds no more than it is guaranteed, and has
    nothing smaller than what somebody asks for.

    A group on the chain of those that ask may come to hold more by what it asks for. Of work of
    its own group, or of one below it, only an urgent request takes.
    """
    stoppable: dict[str, int] = {}
    for holding in holdings:
        if holding.leaving:
            return False
        if holding.preemptible and holding.devices:
            count = len(holding.devices)
            stoppable[holding.group] = min(count, stoppable.get(holding.group, count))
    asking: dict[str, int] = {}
    for request in requests:
        asking[request.group] = max(largest_member(request), asking.get(request.group, 0))
    urgent = any(request.priority is PriorityClass.URGENT for request in requests)
    growing = {each.name for group in asking for each in tree.chain(group)}
    return not any(
        (urgent or parting(tree.known(other), tree.chain(group)) is not None)
        and (
            smallest < largest
            or all(
                each.name in growing or entitled.left_of(each.name) < 0
                for each in tree.known(other)
            )
        )
        for other, smallest in stoppable.items()
        for group, largest in asking.items()
    )


def _rounds(
    claims: Sequence[_Claim],
    ground: PreemptiblePool,
    ask: Callable[[], _Asked],
    is_free: Callable[[_Claim, Placement], bool],
) -> ReclaimPlan:
    """Steps 1 to 4."""
    stops: list[Stop] = []
    early: list[Stop] = []
    while True:
        asked = ask()
        made_for = {stop.for_request for stop in stops}
        waiting: dict[str, Placement] = {}
        found: tuple[Stop, ...] = ()
        for claim in asked.in_order(claims):
            if placed := asked.take(claim):
                if claim.request.id in made_for or not is_free(claim, placed):
                    waiting[claim.request.id] = placed
            elif found := asked.victims(claim):
                break
            else:
                asked.give_up(claim)
        if not found:
            return ReclaimPlan(stops=tuple(stops), waiting=waiting, early=tuple(early))
        asks = found[0].for_request
        early += (each for each in stops if each.for_request == asks and each not in early)
        stops += found
        ground.leave(stop.request_id for stop in found)


def _needed(
    found: ReclaimPlan,
    claims: Sequence[_Claim],
    fresh: Callable[[], PreemptiblePool],
    ask: Callable[[PreemptiblePool], _Asked],
) -> ReclaimPlan:
    """Step 6, opportunistic work last. Whoever is served at all is served without them, those for
    whom anybody is asked before others. Where anything is moved, it was chosen with the rest."""
    if not found.early or any(stop.moved for stop in found.stops):
        return found
    ground = fresh()
    made_for = {stop.for_request for stop in found.stops}
    in_turn = sorted(claims, key=lambda claim: claim.request.id not in made_for)

    def served(stops: Iterable[Stop]) -> Mapping[str, Placement]:
        then = ground.next_to(ground.pool, ground.tally)
        then.leave(each.request_id for each in stops)
        asked = ask(then)
        taken = ((claim.request.id, asked.take(claim)) for claim in asked.in_order(in_turn))
        return {name: placed for name, placed in taken if placed is not None}

    everybody = served(found.stops).keys() | found.waiting.keys()

    def worth(stop: Stop) -> tuple[bool, float]:
        return ground.priority(stop.request_id) is not PriorityClass.OPPORTUNISTIC, stop.lost

    for stop in sorted(found.early, key=worth, reverse=True):
        fewer = tuple(each for each in found.stops if each is not stop)
        having = served(fewer)
        if having.keys() >= everybody:
            waiting = {name: having[name] for name in found.waiting}
            found = replace(found, stops=fewer, waiting=waiting)
    return found


class _Claim:
    """A request that asks, in each of its forms: as it is, and the least of it."""

    def __init__(self, request: PendingRequest, forms: Iterable[PendingRequest]) -> None:
        self.request, self.least = request, least(request)
        self.forms = tuple((form, least(form)) for form in forms)
        self.alike: _Alike = (request.group, request.priority, shape(request))
        self.kind: _Kind = (request.owner, *self.alike)


class _Asked:
    """What will be free and held, as the requests before have left it."""

    def __init__(
        self,
        ground: PreemptiblePool,
        *,
        now: float,
        allowed: Allowed,
        vain: Collection[_Alike] = (),
        may_return: Callable[[PendingRequest], bool] = lambda request: False,
    ) -> None:
        """``vain``: what was asked back for these, others would have. ``may_return``: as in
        ``reclaim``."""
        self._vain, self._may_return = vain, may_return
        self._unmovable: set[_Alike] = set()
        self._ground, self._tree = ground, ground.tree
        self._pool, self._tally = ground.pool.copy(), ground.tally.copy()
        self._now, self._allowed = now, allowed
        self._entitled = Entitlement(self._tree, self._tally, ground.guaranteed)
        self._hopeless: set[_Kind] = set()

    def in_order(self, claims: Iterable[_Claim]) -> Iterator[_Claim]:
        """Those that may ask; of those alike that ask in vain, the first."""
        for claim in claims:
            if claim.least in self._entitled and claim.kind not in self._hopeless:
                yield claim

    def take(self, claim: _Claim) -> Placement | None:
        """The devices of the first of its forms that starts with what will be free."""
        for form, fewest in claim.forms:
            if self._starts(form, fewest):
                placed = self._pool.take(fewest)
                assert placed is not None
                self._tally.count(holding_of(fewest, placed, now=self._now))
                self._entitled.moved(form.group)
                return placed
        return None

    def victims(self, claim: _Claim) -> tuple[Stop, ...]:
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

    def give_up(self, claim: _Claim) -> None:
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
        claims = [_Claim(form, (form,))]
        for each in chosen:
            if each.moved:
                request = self._again(each.holding)
                claims.append(_Claim(request, (request,)))
        ask = partial(_Asked, ground, now=self._now, allowed=self._allowed)
        found = _rounds(claims, ground, ask, lambda claim, placed: False)
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
