"""Preemption: named cases on small trees, as Kueue tests its preemption."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from carrel.hub.scheduling.model.plan import Reason, Stop
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    Device,
    GangRole,
    Group,
    PendingRequest,
    PriorityClass,
    Share,
)
from carrel.hub.scheduling.placement.device_pool import DevicePool, Placement
from carrel.hub.scheduling.preemption.reclaim import reclaim
from carrel.hub.scheduling.preemption.reclaim_rounds import ReclaimPlan
from carrel.hub.scheduling.quota.tree import GroupTree, Tally, guarantees

from .. import values
from ..values import HOUR, NOW, allocation, node, pending

OPPORTUNISTIC, URGENT = PriorityClass.OPPORTUNISTIC, PriorityClass.URGENT


def group(name: str, guaranteed: int = 0, parent: str | None = None) -> Group:
    return replace(values.group(name, parent=parent), guaranteed=guaranteed)


def job(
    request_id: str,
    *devices: str,
    group: str = "lab",
    lost: float = 100.0,
    priority: PriorityClass = PriorityClass.NORMAL,
    leaving: bool = False,
    ends_in: float = HOUR,
) -> Allocation:
    """Return the allocation of a preemptible job that would lose so many seconds on each device."""
    return replace(
        allocation(request_id, *devices, group=group, ends_in=ends_in),
        saved_at=NOW - lost,
        preemptible=True,
        priority=priority,
        leaving=leaving,
    )


def stop(
    request_id: str, lost: float, why: Reason = Reason.GUARANTEE, group: str = "cs101"
) -> Stop:
    return Stop(request_id=request_id, for_request="r", why=why, group=group, lost=lost)


FLAT = (group("cs101", 2), group("lab", 2))


@dataclass(frozen=True, kw_only=True)
class Case:
    devices: tuple[Device, ...] = field(default_factory=lambda: node("a", 4))
    groups: tuple[Group, ...] = FLAT
    allocations: tuple[Allocation, ...]
    request: PendingRequest = field(default_factory=lambda: pending("r", 1))
    expected: tuple[Stop, ...]


def full(*lost: float, group: str = "lab") -> tuple[Allocation, ...]:
    """Return allocations ``v0``, ``v1``, … of one device each."""
    return tuple(job(f"v{i}", f"a{i}", lost=each, group=group) for i, each in enumerate(lost))


CASES = {
    "the job that loses the least work goes": Case(
        allocations=full(40, 30, 20, 50), expected=(stop("v2", 20),)
    ),
    "what was never saved is lost from its start": Case(
        allocations=(replace(full(0)[0], saved_at=None), *full(0, 5000, 4000, 6000)[1:]),
        expected=(stop("v0", 3600),),
    ),
    "a job says itself what it does again": Case(
        allocations=(replace(full(0)[0], saved_at=None, restart_cost=60), *full(0, 70, 65, 80)[1:]),
        expected=(stop("v0", 60),),
    ),
    "of jobs that lose the same, the one goes that has the most left": Case(
        allocations=(
            job("v0", "a0", ends_in=600),
            job("v1", "a1", ends_in=5 * HOUR),
            job("v2", "a2", ends_in=4 * HOUR),
            job("v3", "a3", ends_in=HOUR),
        ),
        expected=(stop("v1", 100),),
    ),
    "what is expected to be left counts, not the time limit": Case(
        allocations=(
            replace(job("v0", "a0", ends_in=9 * HOUR), expected=HOUR + 600),
            *full(100, 100, 100, 100)[1:],
        ),
        expected=(stop("v1", 100),),
    ),
    "an hour of work is more than any delay": Case(
        allocations=(
            job("v0", "a0", lost=3700, ends_in=9 * HOUR),
            job("v1", "a1", lost=3700, ends_in=90 * HOUR),
            *full(0, 0, 10, 20)[2:],
        ),
        expected=(stop("v2", 10),),
    ),
    "a job that is nearly done stays, where another loses a few minutes more": Case(
        allocations=(
            job("v0", "a0", lost=300, ends_in=60),
            job("v1", "a1", lost=900, ends_in=9 * HOUR),
            *full(0, 0, 2000, 2000)[2:],
        ),
        expected=(stop("v1", 900),),
    ),
    "of equal jobs the first id goes": Case(
        allocations=full(9, 9, 9, 9), expected=(stop("v0", 9),)
    ),
    "as many go as are needed": Case(
        allocations=full(40, 30, 20, 50),
        request=pending("r", 2),
        expected=(stop("v1", 30), stop("v2", 20)),
    ),
    "no victim where it fits": Case(allocations=full(1, 1, 1), expected=()),
    "what is free is used first": Case(
        allocations=full(3, 2, 1), request=pending("r", 2), expected=(stop("v2", 1),)
    ),
    "one large job is cheaper than two small ones": Case(
        allocations=(
            job("big", "a0", "a1", lost=30),
            job("x", "a2", lost=40),
            job("y", "a3", lost=45),
        ),
        request=pending("r", 2),
        expected=(stop("big", 60),),
    ),
    "two small jobs are cheaper than a large one that loses more": Case(
        allocations=(
            job("big", "a0", "a1", lost=250),
            job("x", "a2", lost=40),
            job("y", "a3", lost=45),
        ),
        request=pending("r", 2),
        expected=(stop("x", 40), stop("y", 45)),
    ),
    "a large job is cheaper than two small ones that lose a little less, as it has more left": Case(
        allocations=(
            job("big", "a0", "a1", lost=60),
            job("x", "a2", lost=40),
            job("y", "a3", lost=40),
        ),
        request=pending("r", 2),
        expected=(stop("big", 120),),
    ),
    "the cheapest jobs are of no use where they are on two nodes": Case(
        devices=(*node("a", 2), *node("b", 2)),
        allocations=(
            job("a-cheap", "a0", lost=1),
            job("a-dear", "a1", lost=90),
            job("b-cheap", "b0", lost=2),
            job("b-middle", "b1", lost=50),
        ),
        request=pending("r", 2),
        expected=(stop("b-cheap", 2), stop("b-middle", 50)),
    ),
    "a gang empties whole nodes where the cheapest lie on nodes that stay in use": Case(
        devices=(*node("a", 2), *node("b", 2), *node("c", 2), *node("d", 2)),
        groups=(group("cs101", 4), group("lab", 2), group("other", 2)),
        allocations=(
            job("a-cheap", "a0", lost=1),
            job("b-cheap", "b0", lost=2),
            job("a-kept", "a1", lost=1, group="other"),
            job("b-kept", "b1", lost=1, group="other"),
            job("c-dear", "c0", "c1", lost=50),
            job("d-dear", "d0", "d1", lost=60),
        ),
        request=replace(
            pending("r", 4), gang=(GangRole(name="node", devices=2, wanted=2, minimum=2),)
        ),
        expected=(stop("c-dear", 100), stop("d-dear", 120)),
    ),
    "a job on other models is not a victim": Case(
        devices=(*node("a", 2), *node("b", 2, model="A100")),
        allocations=(
            job("v0", "a0", lost=9),
            job("v1", "a1", lost=8),
            job("v2", "b0", lost=1),
            job("v3", "b1", lost=2),
        ),
        request=pending("r", 1, model="H200"),
        expected=(stop("v1", 8),),
    ),
    "opportunistic work goes first, whatever it loses": Case(
        allocations=(
            *full(1, 1, 1),
            job("low", "a3", lost=9000, priority=OPPORTUNISTIC),
        ),
        expected=(stop("low", 9000),),
    ),
    "where opportunistic work is not enough, the least is lost": Case(
        allocations=(
            *full(20, 10, 30),
            job("low", "a3", lost=9000, priority=OPPORTUNISTIC),
        ),
        request=pending("r", 2),
        expected=(stop("v0", 20), stop("v1", 10)),
    ),
    "a group keeps its guarantee": Case(
        groups=(group("cs101", 4), group("lab", 2)),
        allocations=full(1, 1, 1, 1),
        request=pending("r", 3),
        expected=(),
    ),
    "a job that would take its group below the guarantee stays": Case(
        groups=(group("cs101", 2), group("lab", 2)),
        allocations=(
            job("two", "a0", "a1", lost=1),
            job("one", "a2", lost=500),
            job("c", "a3", group="cs101"),
        ),
        expected=(stop("one", 500),),
    ),
    "each group of the victims is looked at by itself": Case(
        groups=(group("cs101", 2), group("lab", 1), group("ml", 1)),
        allocations=(
            job("l0", "a0", lost=1),
            job("l1", "a1", lost=1),
            job("m0", "a2", lost=90, group="ml"),
            job("m1", "a3", lost=80, group="ml"),
        ),
        request=pending("r", 2),
        expected=(stop("l0", 1), stop("m1", 80)),
    ),
    "above its guaranteed quota a group does not preempt": Case(
        groups=(group("cs101", 1), group("lab")),
        allocations=(job("own", "a0", group="cs101"), *full(1, 1, 1, 1)[1:]),
        expected=(),
    ),
    "a request that is larger than the guaranteed quota does not preempt": Case(
        allocations=full(1, 1, 1, 1), request=pending("r", 3), expected=()
    ),
    "a session is not preempted": Case(
        allocations=tuple(replace(each, preemptible=False) for each in full(1, 1, 1, 1)),
        expected=(),
    ),
    "no victim gets two notices": Case(
        allocations=(*full(1, 1, 1), job("gone", "a3", leaving=True)), expected=()
    ),
    "what is leaving is not enough": Case(
        allocations=(*full(3, 2, 1), job("gone", "a3", leaving=True)),
        request=pending("r", 2),
        expected=(stop("v2", 1),),
    ),
    "a better class is not stopped for a worse one": Case(
        allocations=full(1, 1, 1, 1),
        request=pending("r", priority=OPPORTUNISTIC),
        expected=(),
    ),
    "an urgent request takes opportunistic work of any group": Case(
        groups=(group("cs101"), group("lab")),
        allocations=(*full(1, 1, 1), job("low", "a3", lost=700, priority=OPPORTUNISTIC)),
        request=pending("r", priority=URGENT),
        expected=(stop("low", 700, Reason.BEHIND_OTHERS),),
    ),
    "an urgent request takes opportunistic work of its own group below its guarantee": Case(
        groups=(group("cs101", 4), group("lab", 2)),
        allocations=(
            job("low", "a0", group="cs101", priority=OPPORTUNISTIC),
            *(replace(each, preemptible=False) for each in full(1, 1, 1, 1)[1:]),
        ),
        request=pending("r", priority=URGENT),
        expected=(stop("low", 100, Reason.BEHIND_OTHERS),),
    ),
    "an urgent request leaves another group its guarantee": Case(
        groups=(group("cs101"), group("lab", 4)),
        allocations=(
            *full(1, 1, 1),
            job("low", "a3", lost=700, priority=OPPORTUNISTIC),
        ),
        request=pending("r", priority=URGENT),
        expected=(),
    ),
    "an urgent request leaves normal work alone": Case(
        groups=(group("cs101"), group("lab")),
        allocations=full(1, 1, 1, 1),
        request=pending("r", priority=URGENT),
        expected=(),
    ),
    "a course reclaims what its sibling borrowed, inside the department": Case(
        groups=(group("cs", 4), group("cs101", 2, "cs"), group("cs102", 2, "cs")),
        allocations=full(4, 3, 2, 1, group="cs102"),
        request=pending("r", 2),
        expected=(stop("v2", 2), stop("v3", 1)),
    ),
    "a department reclaims for a course without a guaranteed quota": Case(
        groups=(group("cs", 2), group("cs101", 0, "cs"), group("lab", 2)),
        allocations=full(4, 3, 2, 1),
        expected=(stop("v3", 1, group="cs"),),
    ),
    "a department with all that it is guaranteed asks its sisters for nothing": Case(
        groups=(
            *(group("cs", 2), group("cs101", 1, "cs"), group("cs102", 1, "cs")),
            *(group("lab", 2),),
        ),
        allocations=(
            job("v0", "a0", group="cs102", lost=500),
            job("v1", "a1", group="cs102", lost=400),
            job("v2", "a2", lost=1),
            job("v3", "a3", lost=1),
        ),
        expected=(stop("v1", 400),),
    ),
    "what a course is guaranteed its department is guaranteed too": Case(
        groups=(
            *(group("uni"), group("cs", 0, "uni"), group("cs101", 2, "cs")),
            *(group("math", 0, "uni"), group("lab", 0, "math")),
        ),
        allocations=full(4, 3, 2, 1),
        expected=(stop("v3", 1, group="cs"),),
    ),
    "a department above the victims keeps its guarantee": Case(
        groups=(group("cs101", 2), group("math", 4), group("lab", 0, "math")),
        allocations=full(4, 3, 2, 1),
        expected=(),
    ),
    "a group that is unknown by now has no guarantee to keep": Case(
        groups=(group("cs101", 2),), allocations=full(4, 3, 2, 1), expected=(stop("v3", 1),)
    ),
    "a request without a group does not preempt": Case(
        groups=(group("lab", 2),), allocations=full(4, 3, 2, 1), expected=()
    ),
    "a gang asks for as few members as it starts with": Case(
        devices=(*node("a", 2), *node("b", 2)),
        groups=(group("cs101", 4), group("lab")),
        allocations=(
            job("v0", "a0", lost=4),
            job("v1", "a1", lost=5),
            job("v2", "b0", lost=1),
            job("v3", "b1", lost=9),
        ),
        request=replace(
            pending("r", 4), gang=(GangRole(name="worker", devices=1, wanted=4, minimum=2),)
        ),
        expected=(stop("v0", 4), stop("v2", 1)),
    ),
    "of a gang's victims, unnecessary ones stay": Case(
        devices=(*node("a", 2), *node("b", 2)),
        groups=(group("cs101", 4), group("lab")),
        allocations=(
            job("v0", "a0", lost=1),
            job("v1", "b0", "b1", lost=5),
            job("v2", "a1", lost=9000),
        ),
        request=replace(
            pending("r", 2), gang=(GangRole(name="worker", devices=2, wanted=1, minimum=1),)
        ),
        expected=(stop("v1", 10),),
    ),
    "a share asks for as much as it needs": Case(
        devices=node("a", 1),
        groups=(group("cs101", 1), group("lab")),
        allocations=tuple(
            replace(each, share=Share(compute=0.5), devices=("a0",)) for each in full(8, 6)
        ),
        request=replace(pending("r"), share=Share(compute=0.5)),
        expected=(stop("v1", 3),),
    ),
    "for a whole device all of its shares go": Case(
        devices=node("a", 1),
        groups=(group("cs101", 1), group("lab")),
        allocations=tuple(
            replace(each, share=Share(compute=0.5), devices=("a0",)) for each in full(8, 6)
        ),
        expected=(stop("v0", 4), stop("v1", 3)),
    ),
    "a device that is out of service is not reclaimed": Case(
        devices=(*node("a", 3), values.device("a3", health=values.Health.SICK)),
        allocations=full(40, 30, 20, 1),
        expected=(stop("v2", 20),),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_victims(case: Case) -> None:
    tree = GroupTree(case.groups)

    found = reclaim(
        [case.request],
        pool=DevicePool(case.devices, case.allocations),
        tally=Tally(tree, case.allocations),
        tree=tree,
        allocations=case.allocations,
        now=NOW,
    ).stops

    assert tuple(sorted(found, key=lambda each: each.request_id)) == case.expected


def asked_back(allocations: tuple[Allocation, ...], *requests: PendingRequest) -> ReclaimPlan:
    tree = GroupTree(FLAT)
    return reclaim(
        requests,
        pool=DevicePool(node("a", 4), allocations),
        tally=Tally(tree, allocations),
        tree=tree,
        allocations=allocations,
        now=NOW,
    )


def test_each_request_has_victims_of_its_own_until_the_guarantee_is_full() -> None:
    found = asked_back(full(4, 3, 2, 1), pending("p"), pending("q"), pending("s"))

    assert [(each.for_request, each.request_id) for each in found.stops] == [
        ("p", "v3"),
        ("q", "v2"),
    ]
    assert found.placements.keys() == {"p", "q"}


def test_victims_of_an_earlier_cycle_are_waited_for() -> None:
    leaving = replace(full(1)[0], leaving=True)

    assert asked_back((leaving, *full(1, 1, 1, 1)[1:]), pending("p")) == ReclaimPlan(
        placements={"p": Placement(devices=("a0",))}
    )


def test_a_request_with_free_devices_does_not_wait() -> None:
    assert asked_back(full(1, 1, 1), pending("p")) == ReclaimPlan()


def test_a_preemptor_waits_for_its_victim_although_devices_are_free() -> None:
    """They are for the request ahead of it, which needs two devices of one node."""
    tree = GroupTree((group("cs101", 3), group("lab")))
    allocations = full(9, 3, 2, 1)[1:]

    found = reclaim(
        [pending("p", 2), pending("q")],
        pool=DevicePool(node("a", 4), allocations),
        tally=Tally(tree, allocations),
        tree=tree,
        allocations=allocations,
        now=NOW,
    )

    assert {each.for_request for each in found.stops} == {"p", "q"} == found.placements.keys()


def test_no_victim_for_a_request_that_others_ahead_of_it_would_pass() -> None:
    """``p`` may not preempt in the department, and would start on what ``q`` reclaims."""
    tree = GroupTree((group("cs"), group("cs101", 2, "cs"), group("math", 2)))
    allocations = full(5, group="cs")

    found = reclaim(
        [pending("p", group="math"), pending("q"), pending("s", owner="ada")],
        pool=DevicePool(node("a", 1), allocations),
        tally=Tally(tree, allocations),
        tree=tree,
        allocations=allocations,
        now=NOW,
    )

    assert found == ReclaimPlan()


def test_as_many_are_stopped_as_it_takes_for_both_where_others_are_ahead() -> None:
    tree = GroupTree((group("cs"), group("cs101", 2, "cs"), group("math", 2)))
    allocations = full(5, 4, group="cs")

    found = reclaim(
        [pending("p", group="math"), pending("q")],
        pool=DevicePool(node("a", 2), allocations),
        tally=Tally(tree, allocations),
        tree=tree,
        allocations=allocations,
        now=NOW,
    )

    assert {each.for_request for each in found.stops} == {"q"}
    assert {name: each.devices for name, each in found.placements.items()} == {
        "p": ("a0",),
        "q": ("a1",),
    }


def test_no_victim_is_preempted_that_a_larger_one_made_unnecessary() -> None:
    """``small`` is preempted for ``p``, which is ahead, and ``large`` for ``q``: that is
    enough for both."""
    tree = GroupTree((group("cs"), group("math", 1)))
    small, large = (
        allocation("small", "a0", group="cs"),
        allocation("large", "b0", "b1", group="cs"),
    )
    allocations = [replace(each, preemptible=True) for each in (small, large)]

    found = reclaim(
        [pending("p", group="cs", priority=PriorityClass.URGENT), pending("q", group="math")],
        pool=DevicePool((*node("a", 1), *node("b", 2)), allocations),
        tally=Tally(tree, allocations),
        tree=tree,
        allocations=allocations,
        now=NOW,
    )

    assert [each.request_id for each in found.stops] == ["large"]
    assert {*found.placements} == {"p", "q"}
    assert all(set(each.devices) <= {"b0", "b1"} for each in found.placements.values())


def test_a_victim_of_another_preemptor_is_preempted_all_the_same() -> None:
    """``large`` would be enough for ``p`` as well, but only the victim of its own notice guarantees
    ``p`` a device."""
    tree = GroupTree((group("cs"), group("math", 3)))
    small, large = (
        allocation("small", "a0", group="cs"),
        allocation("large", "b0", "b1", group="cs"),
    )
    allocations = [replace(each, preemptible=True) for each in (small, large)]

    found = reclaim(
        [pending("p", group="math"), pending("q", group="math")],
        pool=DevicePool((*node("a", 1), *node("b", 2)), allocations),
        tally=Tally(tree, allocations),
        tree=tree,
        allocations=allocations,
        now=NOW,
    )

    assert {each.request_id: each.for_request for each in found.stops} == {
        "small": "p",
        "large": "q",
    }


def test_a_limit_of_the_group_above_gets_headroom_by_preemption() -> None:
    groups = (group("cs"), group("cs101", 1, "cs"), group("cs102", 0, "cs"))
    tree = GroupTree(groups)
    allocations = full(2, 1, group="cs102")

    def allowed(
        form: PendingRequest, _fewest: PendingRequest, _pool: DevicePool, tally: Tally
    ) -> bool:
        return tally.of_group("cs") + form.devices <= 2

    found = reclaim(
        [pending("r")],
        pool=DevicePool(node("a", 4), allocations),
        tally=Tally(tree, allocations),
        tree=tree,
        allocations=allocations,
        now=NOW,
        allowed=allowed,
    )

    assert found == ReclaimPlan(
        stops=(stop("v1", 1),), placements={"r": Placement(devices=("a1",))}
    )


def test_the_first_model_with_victims_is_taken() -> None:
    tree = GroupTree(FLAT)
    allocations = (job("v0", "a0", lost=9), job("v1", "b0", lost=1), job("v2", "b1"))

    found = reclaim(
        [pending("r")],
        pool=DevicePool((*node("a", 1), *node("b", 2, model="A100")), allocations),
        tally=Tally(tree, allocations),
        tree=tree,
        allocations=allocations,
        now=NOW,
        forms=lambda request: (replace(request, model=each) for each in ("V100", "H200")),
    )

    assert found.stops == (stop("v0", 9),)


def test_guarantees_go_up_the_tree() -> None:
    groups = (group("uni"), group("cs", 1, "uni"), group("a", 2, "cs"), group("b", 3, "cs"))

    assert guarantees(groups) == {"uni": 5, "cs": 5, "a": 2, "b": 3}


def test_a_circle_of_groups_keeps_each_ones_own_guarantee() -> None:
    assert guarantees((group("a", 1, "b"), group("b", 2, "a"))) == {"a": 1, "b": 2}
