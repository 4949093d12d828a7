"""Devices reserved for others: how many, and the reasons of requests that may not use them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.plan import Reason
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    GangRole,
    Group,
    Health,
    PendingRequest,
    PriorityClass,
    ReservedSpan,
    Share,
    Snapshot,
)

from ..values import HOUR, NOW, allocation, group, node, pending

DEVICE = 1 << 37
KEEPS = replace(group("keeps"), guaranteed=2, lending=0)


def due(name: str, devices: int) -> ReservedSpan:
    return ReservedSpan(
        id="class", group=name, devices=devices, starts_at=NOW - 1, ends_at=NOW + HOUR
    )


@pytest.mark.parametrize(
    ("groups", "reserved", "held", "asked", "reason"),
    [
        pytest.param((KEEPS,), (), (), 2, Reason.GUARANTEE, id="it is not lent"),
        pytest.param((), (due("class", 2),), (), 1, Reason.RESERVATION, id="it is reserved"),
        pytest.param(
            (KEEPS,),
            (due("class", 1),),
            (allocation("c", "a2", group="class"),),
            1,
            Reason.GUARANTEE,
            id="what is reserved is held already",
        ),
        pytest.param((KEEPS,), (due("own", 1),), (), 2, Reason.GUARANTEE, id="it is one's own"),
    ],
)
def test_why_free_devices_are_kept_from_it(
    groups: tuple[Group, ...],
    reserved: tuple[ReservedSpan, ...],
    held: tuple[Allocation, ...],
    asked: int,
    reason: Reason,
) -> None:
    """The reason has no detail: the requested model is not named in it."""
    request = replace(pending("r", asked, group="own", seconds=60.0), model="H200")
    devices = node("a", 3 if groups else 2)
    scene = Snapshot(
        devices=devices,
        groups=(group("own"), group("class"), *groups),
        pending=(request,),
        allocations=held,
        reserved=reserved,
    )

    (wait,) = decide(scene, NOW).waits

    assert (wait.reason, wait.detail) == (reason, "")


@pytest.mark.parametrize("borrowing", [None, 100])
def test_the_lending_limit_of_a_department_covers_the_guaranteed_quota_of_its_labs(
    borrowing: int | None,
) -> None:
    """The request gets no device, whether or not the department may borrow itself."""
    scene = Snapshot(
        devices=node("a", 4),
        groups=(
            replace(group("department"), lending=0, borrowing=borrowing),
            replace(group("lab", parent="department"), guaranteed=3),
            group("other"),
        ),
        pending=(replace(pending("r", 2, group="other"), preemptible=True),),
    )

    assert decide(scene, NOW).starts == ()


def test_headroom_is_reserved_for_the_head_although_its_group_holds_broken_devices() -> None:
    """Its allocations count, so that a limit as large as the pool can be reached."""

    def runs(request_id: str, *devices: str, name: str, hours: float) -> Allocation:
        return allocation(request_id, *devices, group=name, ends_in=hours * HOUR)

    small: PendingRequest = pending("small", group="own", owner="bob", seconds=8 * HOUR)
    scene = Snapshot(
        devices=(*node("a", 2), *node("b", 2), *node("s", 2, health=Health.SICK)),
        groups=(group("own", maximum=4), group("other")),
        allocations=(
            runs("broken", "s0", "s1", name="own", hours=20),
            runs("x", "a1", name="other", hours=1),
            runs("y", "b1", name="other", hours=10),
        ),
        pending=(pending("head", 2, age=9e6, group="own", owner="ann"), small),
    )

    assert decide(scene, NOW).starts == ()


OWN = replace(group("own"), guaranteed=3, lending=0)


def test_no_request_waits_behind_another_group_for_its_own_reserved_devices() -> None:
    """Two of three devices are reserved for it; the head may have only the third, a lent one."""
    head = pending("head", group="other", priority=PriorityClass.INTERACTIVE)
    scene = Snapshot(
        devices=node("a", 3),
        groups=(group("other"), replace(OWN, guaranteed=2)),
        pending=(
            replace(head, preemptible=True),
            *(pending(name, group="own", seconds=8 * HOUR) for name in ("first", "second")),
        ),
        allocations=(allocation("run", "a2", group="other"),),
    )
    assert {start.request_id for start in decide(scene, NOW).starts} == {"first", "second"}


def test_no_request_waits_behind_a_preemptor_for_its_own_reserved_devices() -> None:
    lent = (allocation(f"lent{at}", f"a{at}", group="borrows") for at in range(3))
    scene = Snapshot(
        devices=node("a", 6),
        groups=(group("borrows"), OWN, replace(group("asks"), guaranteed=1)),
        pending=(
            pending("asks", group="asks", age=60),
            *(pending(name, group="own", seconds=8 * HOUR) for name in ("first", "second")),
        ),
        allocations=(
            *(replace(each, preemptible=True) for each in lent),
            allocation("run", "a3", group="own"),
        ),
    )
    plan = decide(scene, NOW)
    assert [stop.for_request for stop in plan.stops] == ["asks"]
    assert {start.request_id for start in plan.starts} == {"first", "second"}


def test_a_gang_that_is_the_head_has_as_many_members_as_without_those_behind_it() -> None:
    """It would start as early with fewer members if the later request took its place."""
    gang = replace(
        pending("head", 4, group="other", priority=PriorityClass.INTERACTIVE),
        gang=(GangRole(name="worker", devices=2, wanted=2, minimum=1),),
    )
    far = ReservedSpan(
        id="class", group="own", devices=1, starts_at=NOW + 900 * HOUR, ends_at=NOW + 901 * HOUR
    )
    scene = Snapshot(
        devices=(*node("a", 2), *node("b", 2), *node("c", 1)),
        groups=(group("other"), group("later"), group("own")),
        pending=(
            gang,
            replace(
                pending("long", group="later", seconds=8 * HOUR),
                nodes=frozenset({"a"}),
            ),
        ),
        allocations=(
            allocation("one", "a1", group="later"),
            allocation("two", "b0", "b1", group="later"),
        ),
        reserved=(far,),
    )
    assert decide(scene, NOW).starts == ()


@pytest.mark.parametrize("count", [1, 2])
def test_a_start_where_the_head_may_not_leaves_the_next_one_its_chance(count: int) -> None:
    """The first placement that is tried is refused, and the second is not."""

    def part(request_id: str, compute: float, memory: float) -> PendingRequest:
        share = Share(compute=compute, memory_bytes=int(memory * DEVICE))
        return replace(pending(request_id, group="z", seconds=20 * HOUR), share=share)

    def runs(name: str, device: str, compute: float, memory: float, hours: float) -> Allocation:
        share = Share(compute=compute, memory_bytes=int(memory * DEVICE))
        found = allocation(name, device, group="o", ends_in=hours * HOUR)
        return replace(found, share=share)

    head = replace(
        part("head", 0.5, 0.5),
        group="o",
        model="A",
        priority=PriorityClass.INTERACTIVE,
        seconds=2 * HOUR,
    )
    later = tuple(part(f"later{at}", 0.35, 0.05) for at in range(count))
    scene = Snapshot(
        devices=(*node("x", 2, model="A"), *node("y", 3, model="B")),
        groups=(group("o"), group("z"), replace(group("own"), guaranteed=2, lending=0)),
        pending=tuple(replace(each, preemptible=True) for each in (head, *later)),
        allocations=(
            runs("long0", "x0", 0.2, 0.0, 40),
            runs("short0", "x0", 0.01, 0.7, 1),
            runs("long1", "x1", 0.1, 0.0, 40),
            runs("short1", "x1", 0.9, 0.1, 1),
        ),
    )
    started = {start.request_id for start in decide(scene, NOW).starts}
    assert started == {each.id for each in later}
