"""Placement of gangs on nodes and of shares on devices, without overcommitment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import (
    Arrangement,
    Device,
    GangRole,
    PendingRequest,
    ReservedSpan,
    Share,
    Snapshot,
)
from carrel.hub.scheduling.placement.device_pool import DevicePool, Placement

from ..values import HOUR, NOW, allocation, device, group, node, pending

PACK, SPREAD, NODE = Arrangement.PACK, Arrangement.SPREAD, Arrangement.NODE


def gang(
    *roles: GangRole, arrangement: Arrangement = Arrangement.PACK, model: str | None = None
) -> PendingRequest:
    wanted = sum(role.devices * role.wanted for role in roles)
    return replace(pending("g", wanted, model=model), gang=roles, arrangement=arrangement)


def members(
    devices: int, wanted: int, minimum: int | None = None, name: str = "worker"
) -> GangRole:
    least = wanted if minimum is None else minimum
    return GangRole(name=name, devices=devices, wanted=wanted, minimum=least)


def on_switch(switch: str, devices: Sequence[Device]) -> tuple[Device, ...]:
    return tuple(replace(each, switch=switch) for each in devices)


GANGS = [
    pytest.param(
        (*node("a", 4), *node("b", 3), *node("c", 8)),
        gang(members(2, 2)),
        ("a0", "a1", "a2", "a3"),
        id="packed, all go on the tightest node that holds them",
    ),
    pytest.param(
        (*node("a", 8), *node("b", 8), *node("c", 8), *node("d", 5)),
        gang(members(8, 2), members(4, 1, name="rest")),
        (*(f"{name}{index}" for name in "ab" for index in range(8)), "d0", "d1", "d2", "d3"),
        id="whole nodes, and the rest where it leaves the least",
    ),
    pytest.param(
        (*node("a", 3), *node("b", 3)),
        gang(members(2, 3)),
        None,
        id="each member sits within one node",
    ),
    pytest.param(
        (*node("a", 4), *node("b", 3)),
        gang(members(3, 1), members(2, 2)),
        ("b0", "b1", "b2", "a0", "a1", "a2", "a3"),
        id="sizes that do not divide each other are laid out tightly",
    ),
    pytest.param(
        (*node("a", 4), *node("b", 4)),
        gang(members(1, 2), arrangement=SPREAD),
        ("a0", "b0"),
        id="spread, each has a node of its own",
    ),
    pytest.param(
        node("a", 4), gang(members(1, 2), arrangement=SPREAD), None, id="one node spreads nothing"
    ),
    pytest.param(
        (*node("a", 2), *node("b", 3)),
        gang(members(1, 1), members(3, 1, name="big"), arrangement=SPREAD),
        ("a0", "b0", "b1", "b2"),
        id="spread, the larger members choose first, and the devices go by role",
    ),
    pytest.param(
        (*node("a", 2, model="A100"), *node("b", 2), *node("c", 1)),
        gang(members(1, 3)),
        ("b0", "b1", "c0"),
        id="all members have one model",
    ),
    pytest.param(
        (*node("a", 2, model="A100"), *node("b", 2, model="A100"), *node("c", 4)),
        gang(members(2, 2)),
        ("c0", "c1", "c2", "c3"),
        id="of the models, the one that takes fewer nodes",
    ),
    pytest.param(
        (*node("a", 4, model="A100"), *node("c", 4)),
        gang(members(2, 2), model="H200"),
        ("c0", "c1", "c2", "c3"),
        id="a model that was asked for is the model of all",
    ),
    pytest.param(
        (*on_switch("s", node("a", 2)), *on_switch("t", (*node("b", 1), *node("c", 1)))),
        gang(members(1, 2), arrangement=SPREAD),
        ("b0", "c0"),
        id="one switch goes before the names of nodes",
    ),
    pytest.param(
        (
            *on_switch("s", (*node("a", 4), *node("b", 1))),
            *on_switch("t", (*node("c", 3), *node("d", 3))),
        ),
        gang(members(1, 6)),
        ("c0", "c1", "c2", "d0", "d1", "d2"),
        id="packed, one switch goes before the fullest node",
    ),
    pytest.param(
        (*on_switch("s", node("a", 2)), *on_switch("t", node("b", 2))),
        gang(members(2, 2)),
        ("a0", "a1", "b0", "b1"),
        id="where no switch has enough, it goes over several",
    ),
    pytest.param(
        (*node("a", 2), *node("b", 1)),
        gang(members(1, 9, minimum=2)),
        ("a0", "a1", "b0"),
        id="it starts with as many members as there is room for",
    ),
    pytest.param(
        node("a", 2), gang(members(1, 9, minimum=3)), None, id="and not with fewer than it needs"
    ),
    pytest.param(
        node("a", 4),
        gang(members(1, 2, 1, "head"), members(1, 9, 1)),
        ("a0", "a1", "a2", "a3"),
        id="the members of the first role come first",
    ),
    pytest.param(
        (*node("a", 3), *node("b", 5), *node("c", 8)),
        gang(members(2, 2), arrangement=NODE),
        ("b0", "b1", "b2", "b3"),
        id="on one node, the tightest that holds all members",
    ),
    pytest.param(
        (*node("a", 3), *node("b", 3)),
        gang(members(2, 2), arrangement=NODE),
        None,
        id="members that are to be on one node are never on two",
    ),
    pytest.param(
        (*node("a", 4), *node("b", 4)),
        replace(gang(members(2, 2)), nodes=frozenset({"b"})),
        ("b0", "b1", "b2", "b3"),
        id="only nodes that have its image",
    ),
    pytest.param(
        (*node("a", 4), *node("b", 4)),
        replace(gang(members(2, 3)), nodes=frozenset({"b"})),
        None,
        id="and no others, even if they are free",
    ),
]


@pytest.mark.parametrize(("devices", "request_", "expected"), GANGS)
def test_gang(
    devices: tuple[Device, ...], request_: PendingRequest, expected: tuple[str, ...] | None
) -> None:
    placed = DevicePool(devices, ()).take(request_)

    assert (placed.devices if placed else None) == expected


def test_a_placement_has_the_number_of_members_of_each_role() -> None:
    placed = DevicePool(node("a", 4), ()).take(gang(members(1, 2, 1, "head"), members(1, 9, 1)))

    assert placed == Placement(devices=("a0", "a1", "a2", "a3"), members=(2, 2))


def test_a_gang_that_does_not_fit_takes_no_devices() -> None:
    pool = DevicePool((*node("a", 2), *node("b", 2)), [allocation("j", "b1")])

    assert pool.take(gang(members(2, 2))) is None
    assert pool.free_count() == 3
    assert pool.could_fit(gang(members(2, 2)))
    assert not pool.could_fit(gang(members(2, 3)))


def test_more_devices_than_one_node_has_need_a_gang() -> None:
    pool = DevicePool((*node("a", 8), *node("b", 8), *node("c", 8)), ())

    assert not pool.could_fit(pending("r", 20))
    assert pool.could_fit(gang(members(8, 2), members(4, 1, name="rest")))


def part(compute: float, gigabytes: int = 0, model: str | None = None) -> PendingRequest:
    return replace(
        pending("s", model=model), share=Share(compute=compute, memory_bytes=gigabytes << 30)
    )


def taken(pool: DevicePool, request: PendingRequest) -> tuple[str, ...] | None:
    placed = pool.take(request)
    return placed.devices if placed else None


def test_shares_fill_a_device_before_the_next_one_is_shared() -> None:
    pool = DevicePool(node("a", 2), ())

    assert [taken(pool, part(each)) for each in (0.6, 0.5, 0.4, 0.25, 0.25)] == [
        ("a0",),
        ("a1",),
        ("a0",),
        ("a1",),
        ("a1",),
    ]
    assert taken(pool, part(0.1)) is None


def test_a_share_goes_where_the_least_is_left_over() -> None:
    pool = DevicePool(node("a", 3), ())
    for each in (0.5, 0.7, 0.9):
        pool.take(part(each))

    assert taken(pool, part(0.3)) == ("a1",)


def test_a_device_is_shared_first_in_the_node_with_the_fewest_free() -> None:
    assert taken(DevicePool((*node("a", 4), *node("b", 1)), ()), part(0.5)) == ("b0",)


def test_memory_limits_shares_as_compute_does() -> None:
    pool = DevicePool(node("a", 1), ())

    assert taken(pool, part(0.1, gigabytes=100)) == ("a0",)
    assert taken(pool, part(0.1, gigabytes=29)) is None
    assert taken(pool, part(0.1, gigabytes=28)) == ("a0",)
    assert not pool.could_fit(part(0.1, gigabytes=129))


@pytest.mark.parametrize("compute", [0.0, -0.5, 1.01, float("nan"), float("inf")])
def test_an_invalid_share_never_fits(compute: float) -> None:
    assert not DevicePool(node("a", 1), ()).could_fit(part(compute))


def test_equal_parts_fill_a_device_exactly() -> None:
    pool = DevicePool(node("a", 1), ())

    assert [taken(pool, part(0.1)) for _ in range(10)] == 10 * [("a0",)]
    assert taken(pool, part(0.1)) is None


def test_a_shared_device_is_whole_again_when_the_last_share_ends() -> None:
    pool = DevicePool(node("a", 1), ())
    first, second = pool.take(part(0.5)), pool.take(part(0.25))
    assert first is not None
    assert second is not None

    pool.release(first)
    assert taken(pool, pending("whole")) is None
    pool.release(second)
    pool.release(second)
    assert taken(pool, pending("whole")) == ("a0",)


def test_an_allocation_of_a_share_leaves_the_rest_to_others() -> None:
    half = replace(allocation("j", "a0"), share=Share(compute=0.5))
    pool = DevicePool([device("a0"), device("b0", model="A100")], [half])

    assert pool.free_count() == 1
    assert taken(pool, part(0.6, model="H200")) is None
    assert taken(pool, part(0.5, model="H200")) == ("a0",)


@pytest.mark.parametrize("starts_in", [-HOUR, HOUR / 2], ids=["due", "ahead"])
@pytest.mark.parametrize(("minimum", "gets"), [(1, 3), (3, 3), (4, None)])
def test_a_gang_takes_as_much_as_a_reservation_of_others_leaves(
    starts_in: float, minimum: int, gets: int | None
) -> None:
    lesson = ReservedSpan(
        id="lesson", group="lab", devices=3, starts_at=NOW + starts_in, ends_at=NOW + 2 * HOUR
    )
    snapshot = Snapshot(
        devices=(*node("a", 4), *node("b", 2)),
        groups=(group("cs101"), group("lab")),
        pending=(gang(members(1, 5, minimum)),),
        reserved=(lesson,),
    )

    starts = decide(snapshot, NOW).starts

    assert [len(each.devices) for each in starts] == ([gets] if gets else [])


def test_a_gang_at_the_head_is_estimated_with_its_minimum_beside_a_reservation() -> None:
    """It starts with three in ten minutes: a request that takes a device for longer waits."""
    lesson = ReservedSpan(
        id="lesson", group="lab", devices=1, starts_at=NOW - HOUR, ends_at=NOW + 9 * HOUR
    )
    snapshot = Snapshot(
        devices=node("a", 4),
        groups=(group("cs101"), group("lab")),
        allocations=(allocation("run", "a0", ends_in=600),),
        pending=(
            gang(members(1, 4, 3)),
            pending("short", 1, age=-10, seconds=500),
            pending("long", 1, age=-10, seconds=8 * HOUR),
        ),
        reserved=(lesson,),
    )

    assert [each.request_id for each in decide(snapshot, NOW).starts] == ["short"]


def test_the_share_of_the_head_opens_no_device_that_is_held_as_a_whole() -> None:
    snapshot = Snapshot(
        devices=(*node("a", 2), *node("b", 1)),
        groups=(group(),),
        allocations=(
            allocation("run", "a0", "a1", ends_in=600),
            replace(allocation("half", "b0", ends_in=9 * HOUR), share=Share(compute=0.5)),
        ),
        pending=(
            replace(part(0.75), id="head"),
            replace(part(0.1), id="long", seconds=8 * HOUR, submitted_at=NOW + 1),
        ),
    )

    assert decide(snapshot, NOW).starts == (Start(request_id="long", devices=("b0",)),)
