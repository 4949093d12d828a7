from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.plan import Estimate, Plan, Reason, Start, Wait
from carrel.hub.scheduling.model.snapshot import (
    GangRole,
    Health,
    Kind,
    PriorityClass,
    Share,
    Snapshot,
)

from ..values import HOUR, NOW, allocation, group, node, pending

PAIR = node("a", 2)
GROUPS = (group("cs101"), group("math"))


def at(moment: float) -> Estimate:
    return Estimate(at=moment, latest=moment)


def start(request_id: str, *devices: str) -> Start:
    return Start(request_id=request_id, devices=devices)


def wait(
    request_id: str,
    place: int,
    reason: Reason,
    detail: str = "",
    estimate: Estimate | None = None,
) -> Wait:
    return Wait(
        request_id=request_id,
        place=place,
        reason=reason,
        detail=detail,
        estimate=estimate,
    )


CASES = [
    pytest.param(Snapshot(), Plan(), id="nothing waits"),
    pytest.param(
        Snapshot(devices=PAIR, groups=GROUPS, pending=(pending("r"),)),
        Plan(starts=(start("r", "a0"),)),
        id="a request that fits starts",
    ),
    pytest.param(
        Snapshot(
            devices=PAIR,
            groups=GROUPS,
            pending=(pending("new", age=1), pending("old", 2, age=2)),
        ),
        Plan(
            starts=(start("old", "a0", "a1"),),
            waits=(wait("new", 1, Reason.NO_FREE_DEVICE, estimate=at(NOW + HOUR)),),
        ),
        id="first come, first served",
    ),
    pytest.param(
        Snapshot(
            devices=PAIR,
            groups=GROUPS,
            pending=(
                pending("batch", 2, age=9),
                pending("desk", 2, priority=PriorityClass.INTERACTIVE),
            ),
        ),
        Plan(
            starts=(start("desk", "a0", "a1"),),
            waits=(wait("batch", 1, Reason.NO_FREE_DEVICE, estimate=at(NOW + HOUR)),),
        ),
        id="a better class goes before age",
    ),
    pytest.param(
        Snapshot(
            devices=PAIR,
            groups=GROUPS,
            pending=(pending("head", 2, age=3), pending("small", age=2), pending("cpu", 0)),
            allocations=(allocation("run", "a0", ends_in=600),),
        ),
        Plan(
            starts=(start("cpu"),),
            waits=(
                wait("head", 1, Reason.NO_FREE_DEVICE, estimate=at(NOW + 600)),
                wait("small", 2, Reason.BEHIND_OTHERS, estimate=at(NOW + 600 + HOUR)),
            ),
        ),
        id="the one that lacks devices holds all behind it, but not those on CPU",
    ),
    pytest.param(
        Snapshot(
            devices=PAIR,
            groups=(group("cs101", maximum=1), group("math")),
            pending=(pending("full", age=3), pending("other", age=2, group="math")),
            allocations=(allocation("run", "a0", ends_in=600),),
        ),
        Plan(
            starts=(start("other", "a1"),),
            waits=(wait("full", 1, Reason.GROUP_MAXIMUM, "cs101", at(NOW + 600)),),
        ),
        id="a full group does not hold other groups",
    ),
    pytest.param(
        Snapshot(
            devices=node("a", 4),
            groups=(group("cs101", per_user=1),),
            pending=(
                pending("second", age=3, owner="ada"),
                pending("third", age=2, owner="ada", seconds=60),
                pending("other", age=1, owner="bob"),
            ),
            allocations=(allocation("first", "a0", owner="ada", ends_in=600),),
        ),
        Plan(
            starts=(start("other", "a1"),),
            waits=(
                wait("third", 1, Reason.USER_MAXIMUM, "cs101", at(NOW + 600)),
                wait("second", 2, Reason.USER_MAXIMUM, "cs101", at(NOW + 660)),
            ),
        ),
        id="a user at the maximum of one member does not hold other members",
    ),
    pytest.param(
        Snapshot(
            devices=node("a", 8),
            groups=(group("cs101", maximum=4), group("math")),
            pending=(
                pending("large", 4, age=3),
                pending("small", 1, age=2),
                pending("other", 1, age=1, group="math"),
            ),
            allocations=(allocation("run", "a0", "a1", ends_in=600),),
        ),
        Plan(
            starts=(start("other", "a2"),),
            waits=(
                wait("large", 1, Reason.GROUP_MAXIMUM, "cs101", at(NOW + 600)),
                wait("small", 2, Reason.BEHIND_OTHERS, estimate=at(NOW + 600 + HOUR)),
            ),
        ),
        id="no request passes a larger one into the headroom that it waits for",
    ),
    pytest.param(
        Snapshot(
            devices=node("a", 4),
            groups=(group("cs101", maximum=2),),
            pending=(pending("larger than the limit", 3, age=3), pending("small", 1, age=2)),
        ),
        Plan(
            starts=(start("small", "a0"),),
            waits=(wait("larger than the limit", 1, Reason.ABOVE_MAXIMUM, "cs101"),),
        ),
        id="a request that exceeds a lowered limit holds no other, and has no estimate",
    ),
    pytest.param(
        Snapshot(
            devices=(*node("a", 2), *node("b", 2, health=Health.SICK)),
            groups=GROUPS,
            pending=(
                pending("three", 3, age=3),
                pending("model", 1, age=2, model="A100"),
                pending("one", 1, age=1),
            ),
        ),
        Plan(
            starts=(start("one", "a0"),),
            waits=(
                wait("three", 1, Reason.POOL_TOO_SMALL),
                wait("model", 2, Reason.POOL_TOO_SMALL, "A100"),
            ),
        ),
        id="what no node in working order could hold waits alone",
    ),
    pytest.param(
        Snapshot(
            devices=PAIR,
            groups=(group("cs101", parent="gone"),),
            pending=(pending("cpu", 0, age=2), pending("gpu", 1, age=1)),
        ),
        Plan(
            waits=(
                wait("cpu", 1, Reason.ABOVE_MAXIMUM, "cs101"),
                wait("gpu", 1, Reason.ABOVE_MAXIMUM, "cs101"),
            )
        ),
        id="without its group nothing starts",
    ),
    pytest.param(
        Snapshot(
            devices=node("a", 1),
            groups=GROUPS,
            pending=(pending("next", age=2, seconds=60), pending("later", age=1)),
            allocations=(allocation("overdue", "a0", ends_in=-600),),
        ),
        Plan(
            waits=(
                wait("next", 1, Reason.NO_FREE_DEVICE, estimate=at(NOW)),
                wait("later", 2, Reason.BEHIND_OTHERS, estimate=at(NOW + 60)),
            )
        ),
        id="what is overdue keeps its device and is expected to end now",
    ),
    pytest.param(
        Snapshot(
            devices=node("a", 1),
            groups=GROUPS,
            pending=(pending("both", age=1), pending("only one", age=2, seconds=60)),
        ),
        Plan(
            starts=(start("only one", "a0"),),
            waits=(wait("both", 1, Reason.NO_FREE_DEVICE, estimate=at(NOW + 60)),),
        ),
        id="of two for the last device one starts",
    ),
]


@pytest.mark.parametrize(("snapshot", "expected"), CASES)
def test_decide(snapshot: Snapshot, expected: Plan) -> None:
    assert decide(snapshot, NOW) == expected


def test_only_the_first_page_of_the_queue_is_estimated() -> None:
    snapshot = Snapshot(
        devices=node("a", 1),
        groups=GROUPS,
        pending=tuple(pending(f"r{n:02}", age=-n, seconds=60) for n in range(30)),
        allocations=(allocation("run", "a0", ends_in=60),),
    )

    waits = decide(snapshot, NOW).waits

    assert [wait.estimate for wait in waits] == [
        *(at(NOW + 60 * n) for n in range(1, 21)),
        *([None] * 10),
    ]
    assert [wait.place for wait in waits] == list(range(1, 31))


def test_a_gang_that_would_like_more_than_there_is_has_its_least_kept() -> None:
    """It starts with both devices in ten minutes: only requests that end by then pass it."""
    wishes = (GangRole(name="worker", devices=2, wanted=2, minimum=1),)
    snapshot = Snapshot(
        devices=node("a", 2),
        groups=(group(),),
        allocations=(allocation("run", "a0", ends_in=600),),
        pending=(
            replace(pending("gang", 4, age=60, seconds=600), gang=wishes),
            pending("long", 1, age=30, seconds=8 * HOUR),
            pending("short", 1, age=10, seconds=300),
        ),
    )

    plan = decide(snapshot, NOW)

    assert [wait.request_id for wait in plan.waits] == ["gang", "long"]
    assert [start.request_id for start in plan.starts] == ["short"]


def test_what_a_group_does_not_lend_is_kept_by_the_time_the_head_starts() -> None:
    """When math ends, its two devices stay reserved: the head starts with a later end."""
    snapshot = Snapshot(
        devices=node("a", 4),
        groups=(group(), replace(group("math"), guaranteed=2, lending=0)),
        allocations=(
            allocation("own", "a0", "a1", group="math", ends_in=600),
            allocation("run", "a2", ends_in=1200),
        ),
        pending=(
            replace(pending("head", 2, age=60), preemptible=True),
            pending("long", age=30),
        ),
    )

    plan = decide(snapshot, NOW)
    assert plan.starts == ()
    assert plan.waits[0].estimate == at(NOW + 1200)
    short = replace(snapshot.pending[1], seconds=1200.0)
    plan = decide(replace(snapshot, pending=(snapshot.pending[0], short)), NOW)
    assert [start.request_id for start in plan.starts] == ["long"]


def test_no_non_preemptible_request_takes_the_devices_of_a_non_preemptible_head() -> None:
    """Two are math's. When the lent devices are back, cs101 may have two more permanently."""
    snapshot = Snapshot(
        devices=node("a", 4),
        groups=(group(), replace(group("math"), guaranteed=2)),
        allocations=(replace(allocation("lent", "a0", "a1", "a2", ends_in=600), preemptible=True),),
        pending=(
            replace(pending("head", 2, age=60), kind=Kind.SESSION),
            replace(pending("new", age=30), kind=Kind.SESSION),
        ),
    )

    assert decide(snapshot, NOW).starts == ()
    job = replace(snapshot.pending[1], kind=Kind.JOB, preemptible=True)
    plan = decide(replace(snapshot, pending=(snapshot.pending[0], job)), NOW)
    assert [start.request_id for start in plan.starts] == ["new"]


def test_a_share_that_ends_in_time_opens_its_device_no_longer_than_that() -> None:
    part = Share(compute=0.25)
    snapshot = Snapshot(
        devices=(*node("a", 2), *node("b", 1)),
        groups=(group(),),
        allocations=(allocation("run", "a0", ends_in=600), allocation("other", "b0", ends_in=500)),
        pending=(
            pending("head", 2, age=60),
            replace(pending("in time", 1, age=30, seconds=300), share=part),
            replace(pending("too long", 1, age=10, seconds=1200), share=part),
        ),
    )

    assert [start.request_id for start in decide(snapshot, NOW).starts] == ["in time"]


def test_nor_does_one_that_was_there_before_the_head() -> None:
    part = Share(compute=0.25)
    snapshot = Snapshot(
        devices=(*node("a", 2), *node("b", 1)),
        groups=(group(),),
        allocations=(allocation("other", "b0", ends_in=500),),
        pending=(
            replace(pending("first", 1, age=90, seconds=600), share=part),
            pending("head", 2, age=60),
            replace(pending("too long", 1, age=30, seconds=1200), share=part),
        ),
    )

    assert [start.request_id for start in decide(snapshot, NOW).starts] == ["first"]


def test_parts_of_one_device_come_back_one_after_the_other() -> None:
    """The head gets its half when the first share ends: no request takes a quarter for longer."""
    quarter, half = Share(compute=0.25), Share(compute=0.5)
    snapshot = Snapshot(
        devices=node("a", 1),
        groups=(group(),),
        allocations=(
            replace(allocation("first", "a0", ends_in=100), share=quarter),
            replace(allocation("second", "a0", ends_in=600), share=half),
        ),
        pending=(
            replace(pending("head", 1, age=60), share=half),
            replace(pending("too long", 1, age=30, seconds=300), share=quarter),
        ),
    )

    assert decide(snapshot, NOW).starts == ()


def test_the_first_request_of_a_group_preempts_first() -> None:
    """Guaranteed quota goes to the users of the group in their order, not by size."""
    lent = tuple(
        replace(allocation(f"lent{n}", f"a{n}", group="lab"), preemptible=True, saved_at=NOW - n)
        for n in range(4)
    )
    snapshot = Snapshot(
        devices=node("a", 4),
        groups=tuple(replace(group(name), guaranteed=2) for name in ("cs101", "lab")),
        allocations=lent,
        pending=(
            pending("first", 2, age=60, seconds=1800),
            pending("small", 1, age=30, seconds=600),
        ),
    )

    plan = decide(snapshot, NOW)

    assert [(each.request_id, each.reason) for each in plan.waits] == [
        ("first", Reason.RECLAIMING),
        ("small", Reason.BEHIND_OTHERS),
    ]
    assert {(stop.request_id, stop.for_request) for stop in plan.stops} == {
        ("lent0", "first"),
        ("lent1", "first"),
    }


MIXED = (
    *(replace(each, model="MI300X") for each in node("a", 2)),
    *(replace(each, id=f"b{each.index}") for each in node("a", 2)),
)
"""A node with two devices of each of two models."""


def test_devices_of_a_request_without_a_model_are_of_one_model() -> None:
    busy = allocation("other", "b0")
    snapshot = Snapshot(
        devices=MIXED, groups=GROUPS, allocations=(busy,), pending=(pending("two", 2, age=1),)
    )
    assert decide(snapshot, now=NOW).starts == (start("two", "a0", "a1"),)
    second = (allocation("another", "a0"), busy)
    waits = decide(replace(snapshot, allocations=second), now=NOW)
    assert waits.starts == ()
    (only,) = waits.waits
    assert only.reason is Reason.NO_FREE_DEVICE
    assert only.estimate is not None


def test_a_request_for_more_devices_than_one_model_has_is_too_large_for_a_mixed_node() -> None:
    three = Snapshot(devices=MIXED, groups=GROUPS, pending=(pending("three", 3),))
    (only,) = decide(three, now=NOW).waits
    assert only.reason is Reason.POOL_TOO_SMALL


def test_a_group_with_fewer_models_holds_no_group_with_all() -> None:
    snapshot = Snapshot(
        devices=(*node("a", 2, model="A100"), *node("b", 1)),
        groups=(group("cs101"), replace(group("lab"), models=frozenset({"A100"}))),
        allocations=(allocation("run", "a0", "a1", group="lab", ends_in=600),),
        pending=(
            pending("head", 2, age=60),
            pending("bound", 1, age=30, group="lab"),
            pending("free", 1, age=10, seconds=300),
        ),
    )

    assert [start.request_id for start in decide(snapshot, NOW).starts] == ["free"]


@pytest.mark.parametrize(
    ("kind", "preemptible", "allowed", "starts"),
    [
        (Kind.JOB, True, False, True),
        (Kind.JOB, False, False, False),
        (Kind.SESSION, False, False, False),
        (Kind.SESSION, False, True, True),
    ],
)
def test_what_is_never_preempted_borrows_no_guarantee_unless_its_group_allows_it(
    kind: Kind, preemptible: bool, allowed: bool, starts: bool
) -> None:
    """Lab holds its guaranteed quota, and the two free devices are guaranteed to cs101."""
    lab = replace(group("lab"), guaranteed=2, sessions_borrow=allowed)
    snapshot = Snapshot(
        devices=node("a", 4),
        groups=(replace(group("cs101"), guaranteed=2), lab),
        allocations=(allocation("own", "a0", "a1", group="lab"),),
        pending=(replace(pending("r", group="lab"), kind=kind, preemptible=preemptible),),
    )

    plan = decide(snapshot, NOW)

    assert [start.request_id for start in plan.starts] == (["r"] if starts else [])
    assert [wait.reason for wait in plan.waits] == ([] if starts else [Reason.GUARANTEE])


def test_of_nodes_that_fit_alike_a_group_goes_where_it_is_at_home() -> None:
    """Borrowed devices are packed on few nodes; a tighter node still has precedence."""
    alike = Snapshot(
        devices=node("a", 4) + node("b", 4),
        groups=(group("cs101"), group("lab")),
        allocations=(
            allocation("theirs", "a0", "a1", group="lab"),
            allocation("ours", "b0", "b1", group="cs101"),
        ),
        pending=(pending("one", group="cs101"),),
    )
    assert decide(alike, NOW).starts == (Start(request_id="one", devices=("b2",)),)
    tighter = replace(
        alike, allocations=(*alike.allocations, allocation("more", "a2", group="lab"))
    )
    assert decide(tighter, NOW).starts == (Start(request_id="one", devices=("a3",)),)


def test_guaranteed_quota_may_be_held_by_non_preemptible_work() -> None:
    """With both, cs101 holds one device above its guaranteed quota: the first can be reclaimed."""
    snapshot = Snapshot(
        devices=node("a", 4),
        groups=(
            replace(group("cs101"), guaranteed=1),
            replace(group("math"), guaranteed=3),
        ),
        pending=(replace(pending("first", age=1), preemptible=True), pending("second")),
    )
    assert [start.request_id for start in decide(snapshot, NOW).starts] == ["first", "second"]


def test_no_victim_for_a_gang_that_its_limit_holds() -> None:
    """cs101 may hold two and has one: the gang would like two, and could do with one."""
    gang = replace(
        pending("gang", 2), gang=(GangRole(name="worker", devices=1, wanted=2, minimum=1),)
    )
    snapshot = Snapshot(
        devices=node("a", 3),
        groups=(
            replace(group("cs"), guaranteed=3),
            group("cs101", parent="cs", maximum=2),
            group("lab"),
        ),
        allocations=(
            allocation("own", "a0"),
            *(
                replace(allocation(f"lent{n}", f"a{n}", group="lab"), preemptible=True)
                for n in (1, 2)
            ),
        ),
        pending=(gang,),
    )
    plan = decide(snapshot, NOW)
    assert plan.stops == ()
    assert [wait.reason for wait in plan.waits] == [Reason.GROUP_MAXIMUM]


def test_a_group_with_the_limit_of_the_pool_has_the_head_also_beside_its_allocations() -> None:
    """As with a group without this limit: a request that finds it full lacks devices."""
    scene = Snapshot(
        devices=node("a", 4),
        groups=(group(maximum=4, per_user=4),),
        pending=(
            pending("wide", 4, owner="ada", priority=PriorityClass.INTERACTIVE),
            pending("long", 1, owner="bob", seconds=2 * HOUR),
        ),
        allocations=(allocation("run", "a0", owner="ada"),),
    )
    plan = decide(scene, NOW)
    assert plan.starts == ()
    assert [(each.request_id, each.reason) for each in plan.waits] == [
        ("wide", Reason.NO_FREE_DEVICE),
        ("long", Reason.BEHIND_OTHERS),
    ]
