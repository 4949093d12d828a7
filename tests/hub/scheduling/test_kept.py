"""What is kept for others: how much, and what those read that may not have it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.scheduling.cycle import decide
from carrel.hub.scheduling.model import (
    Group,
    Health,
    Holding,
    PriorityClass,
    Reserved,
    Snapshot,
    Waiting,
)
from carrel.hub.scheduling.plan import Reason

from .values import HOUR, NOW, group, holding, node, waiting

KEEPS = replace(group("keeps"), guaranteed=2, lending=0)


def due(name: str, devices: int) -> Reserved:
    return Reserved(id="class", group=name, devices=devices, starts_at=NOW - 1, ends_at=NOW + HOUR)


@pytest.mark.parametrize(
    ("groups", "reserved", "held", "asked", "reason"),
    [
        pytest.param((KEEPS,), (), (), 2, Reason.GUARANTEE, id="it is not lent"),
        pytest.param((), (due("class", 2),), (), 1, Reason.RESERVATION, id="it is reserved"),
        pytest.param(
            (KEEPS,),
            (due("class", 1),),
            (holding("c", "a2", group="class"),),
            1,
            Reason.GUARANTEE,
            id="what is reserved is held already",
        ),
        pytest.param((KEEPS,), (due("own", 1),), (), 2, Reason.GUARANTEE, id="it is one's own"),
    ],
)
def test_why_free_devices_are_kept_from_it(
    groups: tuple[Group, ...],
    reserved: tuple[Reserved, ...],
    held: tuple[Holding, ...],
    asked: int,
    reason: Reason,
) -> None:
    """A model that it asks for is not named as whom they are kept for."""
    request = replace(waiting("r", asked, group="own", seconds=60.0), model="H200")
    devices = node("a", 3 if groups else 2)
    scene = Snapshot(
        devices=devices,
        groups=(group("own"), group("class"), *groups),
        waiting=(request,),
        holdings=held,
        reserved=reserved,
    )

    (wait,) = decide(scene, NOW).waits

    assert (wait.reason, wait.detail) == (reason, "")


@pytest.mark.parametrize("borrowing", [None, 100])
def test_a_department_lends_of_what_its_labs_are_guaranteed_as_much_as_it_says(
    borrowing: int | None,
) -> None:
    """Nothing, whether or not it may borrow itself."""
    scene = Snapshot(
        devices=node("a", 4),
        groups=(
            replace(group("department"), lending=0, borrowing=borrowing),
            replace(group("lab", parent="department"), guaranteed=3),
            group("other"),
        ),
        waiting=(replace(waiting("r", 2, group="other"), preemptible=True),),
    )

    assert decide(scene, NOW).starts == ()


def test_room_is_kept_for_the_head_although_its_group_holds_devices_that_are_broken() -> None:
    """What it holds counts, and a limit as large as what may be lent can be full."""

    def runs(request_id: str, *devices: str, name: str, hours: float) -> Holding:
        return holding(request_id, *devices, group=name, ends_in=hours * HOUR)

    small: Waiting = waiting("small", group="own", owner="bob", seconds=8 * HOUR)
    scene = Snapshot(
        devices=(*node("a", 2), *node("b", 2), *node("s", 2, health=Health.SICK)),
        groups=(group("own", maximum=4), group("other")),
        holdings=(
            runs("broken", "s0", "s1", name="own", hours=20),
            runs("x", "a1", name="other", hours=1),
            runs("y", "b1", name="other", hours=10),
        ),
        waiting=(waiting("head", 2, age=9e6, group="own", owner="ann"), small),
    )

    assert decide(scene, NOW).starts == ()


OWN = replace(group("own"), guaranteed=3, lending=0)


def test_nobody_waits_behind_another_group_for_what_is_kept_for_its_own() -> None:
    """Two of three are kept for it; the head may have only the third, which is lent."""
    head = waiting("head", group="other", priority=PriorityClass.INTERACTIVE)
    scene = Snapshot(
        devices=node("a", 3),
        groups=(group("other"), replace(OWN, guaranteed=2)),
        waiting=(
            replace(head, preemptible=True),
            *(waiting(name, group="own", seconds=8 * HOUR) for name in ("first", "second")),
        ),
        holdings=(holding("run", "a2", group="other"),),
    )
    assert {start.request_id for start in decide(scene, NOW).starts} == {"first", "second"}


def test_nobody_waits_behind_who_asks_something_back_for_what_is_kept_for_its_own() -> None:
    lent = (holding(f"lent{at}", f"a{at}", group="borrows") for at in range(3))
    scene = Snapshot(
        devices=node("a", 6),
        groups=(group("borrows"), OWN, replace(group("asks"), guaranteed=1)),
        waiting=(
            waiting("asks", group="asks", age=60),
            *(waiting(name, group="own", seconds=8 * HOUR) for name in ("first", "second")),
        ),
        holdings=(
            *(replace(each, preemptible=True) for each in lent),
            holding("run", "a3", group="own"),
        ),
    )
    plan = decide(scene, NOW)
    assert [stop.for_request for stop in plan.stops] == ["asks"]
    assert {start.request_id for start in plan.starts} == {"first", "second"}
