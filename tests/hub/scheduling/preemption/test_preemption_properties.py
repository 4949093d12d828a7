"""Properties of every set of victims, compared with all possible sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.scheduling.model.plan import Stop
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    Device,
    GangRole,
    Group,
    PendingRequest,
    PriorityClass,
)
from carrel.hub.scheduling.placement.device_pool import DevicePool
from carrel.hub.scheduling.placement.gangs import largest_member
from carrel.hub.scheduling.preemption import victim_cost
from carrel.hub.scheduling.preemption.defragmentation import MAX_LOST_SECONDS
from carrel.hub.scheduling.preemption.reclaim import reclaim
from carrel.hub.scheduling.preemption.victim_cost import lost
from carrel.hub.scheduling.queue.queues import rank
from carrel.hub.scheduling.quota.tree import GroupTree, Tally, guarantees

from ..strategies import MODELS, pools
from ..values import HOUR, NOW, allocation, group, pending

NAMES = ("cs", "cs101", "cs102", "math")
PARENTS = {"cs": None, "cs101": "cs", "cs102": "cs", "math": None}
CLASSES = (
    PriorityClass.NORMAL,
    PriorityClass.NORMAL,
    PriorityClass.OPPORTUNISTIC,
    PriorityClass.INTERACTIVE,
)


@dataclass(frozen=True, kw_only=True)
class Scene:
    devices: tuple[Device, ...]
    groups: tuple[Group, ...]
    allocations: tuple[Allocation, ...]

    @property
    def tree(self) -> GroupTree:
        return GroupTree(self.groups)

    def held(self, name: str, without: Iterable[Allocation] = ()) -> int:
        gone = {each.request_id for each in without}
        return sum(
            len(each.devices)
            for each in self.allocations
            if each.request_id not in gone and name in lineage(each.group)
        )

    def fits(self, request: PendingRequest, without: Iterable[Allocation] = ()) -> bool:
        gone = {each.request_id for each in without}
        left = [each for each in self.allocations if each.request_id not in gone]
        return DevicePool(self.devices, left).fits(request)

    def by_id(self, stops: Iterable[Stop]) -> list[Allocation]:
        known = {each.request_id: each for each in self.allocations}
        return [known[stop.request_id] for stop in stops]

    def victims(self, request: PendingRequest) -> tuple[Stop, ...]:
        return reclaim(
            [request],
            pool=DevicePool(self.devices, self.allocations),
            tally=Tally(self.tree, self.allocations),
            tree=self.tree,
            allocations=self.allocations,
            now=NOW,
        ).stops


def lineage(name: str | None) -> list[str]:
    found = []
    while name is not None:
        found.append(name)
        name = PARENTS[name]
    return found


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    devices = draw(pools())
    free = list(draw(st.permutations([device.id for device in devices])))
    allocations = []
    for number in range(draw(st.integers(0, 7))):
        size = draw(st.integers(1, 2))
        held, free = tuple(sorted(free[:size])), free[size:]
        if held:
            made = allocation(
                f"v{number}",
                *held,
                group=draw(st.sampled_from(NAMES)),
                ends_in=draw(st.sampled_from((0.0, HOUR, 3 * HOUR, 7 * HOUR))),
            )
            allocations.append(
                replace(
                    made,
                    preemptible=draw(st.sampled_from((True, True, True, False))),
                    priority=draw(st.sampled_from(CLASSES)),
                    saved_at=NOW - draw(st.sampled_from((0, 10, 20, 30, 600, 5000))),
                )
            )
    groups = tuple(
        replace(group(name, parent=PARENTS[name]), guaranteed=draw(st.integers(0, 5)))
        for name in NAMES
    )
    return Scene(devices=devices, groups=groups, allocations=tuple(allocations))


@st.composite
def requests(draw: st.DrawFn) -> PendingRequest:
    made = replace(
        pending("r", draw(st.integers(1, 3)), group=draw(st.sampled_from(NAMES))),
        model=draw(st.sampled_from((None, None, *MODELS))),
        priority=draw(st.sampled_from((*CLASSES, PriorityClass.URGENT))),
    )
    if draw(st.integers(0, 3)):
        return made
    least = draw(st.integers(1, 2))
    role = GangRole(name="worker", devices=draw(st.integers(1, 2)), wanted=least, minimum=least)
    return replace(made, gang=(role,), devices=role.devices * least)


def may_take(scene: Scene, request: PendingRequest, chosen: Sequence[Allocation]) -> bool:
    """Return whether all of these may be preempted for this request: the rule, written again."""
    promised = guarantees(scene.groups)
    mine = lineage(request.group)
    for each in chosen:
        theirs = lineage(each.group)
        if not each.preemptible or rank(each.priority) < rank(request.priority):
            return False
        own = [name for name in mine if name not in theirs]
        reclaims = bool(own) and scene.held(own[-1]) + request.devices <= promised[own[-1]]
        urgent = (
            request.priority is PriorityClass.URGENT
            and each.priority is PriorityClass.OPPORTUNISTIC
        )
        if not reclaims and not urgent:
            return False
        if any(scene.held(name, chosen) < promised[name] for name in theirs if name not in mine):
            return False
    return True


def may_move(scene: Scene, request: PendingRequest, one: Allocation) -> bool:
    """Return whether this may be relocated for it, although it is within its guaranteed quota."""
    promised = guarantees(scene.groups)
    return (
        one.preemptible
        and rank(one.priority) >= rank(request.priority)
        and any(scene.held(name) <= promised[name] for name in lineage(one.group))
        and len(one.devices) < largest_member(request)
        and lost(one, NOW) <= MAX_LOST_SECONDS * len(one.devices)
    )


def pairs(stops: Sequence[Stop], chosen: Sequence[Allocation]) -> Iterable[tuple[Stop, Allocation]]:
    return zip(stops, chosen, strict=True)


def subsets(allocations: Sequence[Allocation]) -> Iterable[tuple[Allocation, ...]]:
    sizes = range(1, len(allocations) + 1)
    return chain.from_iterable(combinations(allocations, size) for size in sizes)


def cost(chosen: Iterable[Allocation]) -> tuple[bool, float, int]:
    every = list(chosen)
    beyond = any(each.priority is not PriorityClass.OPPORTUNISTIC for each in every)
    return beyond, sum(victim_cost.cost(each, NOW) for each in every), len(every)


def check_victims_make_room_and_none_of_them_goes_in_vain(
    scene: Scene, request: PendingRequest
) -> None:
    chosen = scene.by_id(scene.victims(request))
    if not chosen:
        return

    assert scene.fits(request, chosen)
    for each in chosen:
        assert not scene.fits(request, [other for other in chosen if other is not each])


def check_only_those_are_asked_who_may_be(scene: Scene, request: PendingRequest) -> None:
    stops = scene.victims(request)
    chosen = scene.by_id(stops)

    assert may_take(
        scene, request, [each for stop, each in pairs(stops, chosen) if not stop.relocated]
    )
    for stop, each in pairs(stops, chosen):
        assert not stop.relocated or may_move(scene, request, each)
        assert stop.lost == lost(each, NOW)
        assert stop.group in lineage(request.group)


def check_no_set_that_may_be_asked_is_cheaper(scene: Scene, request: PendingRequest) -> None:
    stops = scene.victims(request)
    chosen = scene.by_id(stops)
    sets = [
        each
        for each in subsets(scene.allocations)
        if not scene.fits(request) and scene.fits(request, each) and may_take(scene, request, each)
    ]

    if any(stop.relocated for stop in stops):
        assert not sets
        return
    assert bool(chosen) <= bool(sets)
    if not request.gang:
        assert bool(chosen) == bool(sets)
        assert not chosen or cost(chosen) == min(map(cost, sets))


def check_the_order_of_the_holdings_does_not_matter(scene: Scene, request: PendingRequest) -> None:
    other = replace(scene, allocations=tuple(reversed(scene.allocations)))

    assert set(other.victims(request)) == set(scene.victims(request))


def check_no_further_notice_in_the_next_cycle(scene: Scene, asked: list[PendingRequest]) -> None:
    """Check that the next cycle, with the victims still leaving, sends no further notice."""
    named = [replace(each, id=f"r{number}") for number, each in enumerate(asked)]

    def cycle(allocations: tuple[Allocation, ...]) -> tuple[Stop, ...]:
        found = reclaim(
            named,
            pool=DevicePool(scene.devices, allocations),
            tally=Tally(scene.tree, allocations),
            tree=scene.tree,
            allocations=allocations,
            now=NOW,
        )
        return found.stops

    first = {stop.request_id for stop in cycle(scene.allocations)}
    left = tuple(replace(each, leaving=each.request_id in first) for each in scene.allocations)
    assert cycle(left) == ()


def check_a_victim_does_not_take_the_devices_back(scene: Scene, request: PendingRequest) -> None:
    """Check that the victims, once queued again, do not preempt the preemptor."""
    stops = scene.victims(request)
    gone = {stop.request_id for stop in stops}
    left = tuple(each for each in scene.allocations if each.request_id not in gone)
    placed = DevicePool(scene.devices, left).take(request)
    if not stops or placed is None:
        return
    runs = replace(
        allocation("r", *placed.devices, group=request.group),
        preemptible=True,
        priority=request.priority,
        saved_at=NOW,
    )
    after = replace(scene, allocations=(*left, runs))
    for victim in scene.by_id(stops):
        again = replace(
            pending(victim.request_id, len(victim.devices), group=victim.group),
            priority=victim.priority,
        )
        assert "r" not in {stop.request_id for stop in after.victims(again)}


ONE = (scenes(), requests())
CHECKS: Mapping[Callable[..., None], tuple[st.SearchStrategy[object], ...]] = {
    check_victims_make_room_and_none_of_them_goes_in_vain: ONE,
    check_only_those_are_asked_who_may_be: ONE,
    check_no_set_that_may_be_asked_is_cheaper: ONE,
    check_the_order_of_the_holdings_does_not_matter: ONE,
    check_no_further_notice_in_the_next_cycle: (
        scenes(),
        st.lists(requests(), min_size=1, max_size=5),
    ),
    check_a_victim_does_not_take_the_devices_back: ONE,
}
IDS = [check.__name__.removeprefix("check_") for check in CHECKS]


@pytest.mark.hypothesis
@pytest.mark.parametrize("check", CHECKS, ids=IDS)
def test_every_scene(check: Callable[..., None]) -> None:
    given(*CHECKS[check])(check)()
