"""Relocation of work within its guaranteed quota, so that others get guaranteed whole nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.cycle.incremental import (
    AllocationEnded,
    Delta,
    RequestQueued,
    SchedulerState,
    step,
)
from carrel.hub.scheduling.model.plan import Plan, Reason, Stop
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    GangRole,
    Group,
    Kind,
    PendingRequest,
    PriorityClass,
    ReservedSpan,
    Share,
    Snapshot,
)
from carrel.hub.scheduling.placement.device_pool import Placement
from carrel.hub.scheduling.queue.running_set import allocation_of

from .. import values
from ..values import HOUR, NOW, allocation, node, pending

DEVICES = (*node("a", 2), *node("b", 2))


def group(name: str, guaranteed: int, parent: str | None = None) -> Group:
    return replace(values.group(name, parent=parent), guaranteed=guaranteed)


GROUPS = (group("cs101", 2), group("lab", 2), group("math", 0))
WANTS = pending("wants", 2)


def small(request_id: str, *devices: str, group: str = "lab", lost: float = 60.0) -> Allocation:
    """Return the allocation of a job that would lose so many seconds on each device."""
    made = allocation(request_id, *devices, group=group)
    return replace(made, saved_at=NOW - lost, preemptible=True)


IN_PIECES = (small("first", "a0"), small("second", "b0"))


def scene(
    *held: Allocation, queue: tuple[PendingRequest, ...] = (WANTS,), **more: object
) -> Snapshot:
    return replace(
        Snapshot(devices=DEVICES, groups=GROUPS, allocations=held, pending=queue),
        **more,  # type: ignore[arg-type]
    )


def moved(plan: Plan) -> list[str]:
    return [stop.request_id for stop in plan.stops if stop.relocated]


def test_smaller_work_is_relocated_when_free_devices_are_fragmented() -> None:
    plan = decide(scene(*IN_PIECES), NOW)
    assert plan.stops == (
        Stop(
            request_id="first",
            for_request="wants",
            why=Reason.GUARANTEE,
            group="cs101",
            lost=60.0,
            relocated=True,
        ),
    )
    assert [wait.reason for wait in plan.waits] == [Reason.RECLAIMING]


def back(each: Allocation, wanted: str) -> PendingRequest:
    made = pending(each.request_id, len(each.devices), group=each.group, owner=each.owner)
    return replace(made, preemptible=True, moved_for=wanted)


@pytest.mark.parametrize("early", [False, True], ids=["at the end of its notice", "at once"])
def test_the_preemptor_and_its_victim_run_before_others(early: bool) -> None:
    """The relocated work does not take its old device again, although that is free first."""
    first, second = IN_PIECES
    others = (pending("older", 1, age=HOUR, group="math"), pending("colleague", 1, group="lab"))
    leaving = replace(small("borrows", "a1", group="math"), leaving=True)
    held = (second, leaving) if early else (second,)
    queue = (*others, WANTS, back(first, "wants"))
    plan = decide(scene(*held, queue=queue), NOW)
    starts = {start.request_id: start.devices for start in plan.starts}
    assert starts["first"] == ("b1",)
    assert starts.get("wants") == (None if early else ("a0", "a1"))
    assert set(starts) == {"first"} if early else {"first", "wants"}


def test_a_step_says_the_same_up_to_the_new_start() -> None:
    snapshot = scene(*IN_PIECES)
    scheduler, delta = step(SchedulerState(snapshot, NOW), (), NOW)
    assert delta.stops == decide(snapshot, NOW).stops
    again = back(IN_PIECES[0], "wants")
    events = (AllocationEnded(request_id="first"), RequestQueued(request=again))
    _, delta = step(scheduler, events, NOW)
    assert [start.request_id for start in delta.starts] == ["wants", "first"]


def test_a_gang_has_its_nodes_one_after_the_other() -> None:
    gang = (GangRole(name="worker", devices=2, wanted=2, minimum=2),)
    wants = replace(pending("wants", 4), gang=gang)
    devices = (*DEVICES, *node("c", 2), *node("d", 2))
    groups = (group("cs101", 4), group("lab", 4))
    held = tuple(small(f"on {name}", f"{name}0") for name in "abcd")
    plan = decide(scene(*held, queue=(wants,), devices=devices, groups=groups), NOW)
    assert moved(plan) == ["on a", "on b"]


def test_as_few_as_suffice_are_relocated_and_borrowers_go_first() -> None:
    borrows = small("borrows", "b1", group="math", lost=HOUR)
    crowd = (small("first", "a0"), small("third", "a1"))
    groups = (group("cs101", 2), group("lab", 3), group("math", 0))
    devices = (*DEVICES, *node("c", 1))
    plan = decide(
        scene(*crowd, small("second", "b0"), borrows, devices=devices, groups=groups), NOW
    )
    assert {stop.request_id: stop.relocated for stop in plan.stops} == {
        "second": True,
        "borrows": False,
    }


def test_relocated_work_may_reclaim_from_borrowers() -> None:
    """No device is free for it, so that a borrowed one is reclaimed in turn."""
    groups = (group("cs101", 2), group("lab", 1), group("math", 1))
    held = (small("first", "a0"), small("its own", "b0", group="math"))
    borrows = small("borrows", "b1", group="math")
    first = decide(scene(*held, borrows, groups=groups), NOW)
    assert moved(first) == ["first"]
    again = back(held[0], "wants")
    then = decide(scene(held[1], borrows, groups=groups, queue=(WANTS, again)), NOW)
    assert [start.request_id for start in then.starts] == ["wants"]
    assert [(stop.for_request, stop.relocated) for stop in then.stops] == [("first", False)]


def test_no_request_takes_the_last_device_for_relocated_work() -> None:
    """Two new requests find a device each; without one of these, no work can be relocated."""
    soon = (replace(small(f"on {device}", device), until=NOW + 600) for device in ("c0", "d0"))
    short = replace(pending("short", group="lab", seconds=600.0), kind=Kind.SESSION)
    long = replace(pending("long", group="math"), preemptible=True)
    snapshot = scene(
        small("first", "a0"),
        small("second", "b1"),
        *soon,
        allocation("fixed", "c1", group="math"),
        queue=(WANTS, short, long),
        devices=(*DEVICES, *node("c", 2), *node("d", 2)),
        groups=(group("cs101", 3), group("lab", 5), group("math", 0)),
    )
    plan = decide(snapshot, NOW)
    assert moved(plan) == ["first"]
    assert [start.request_id for start in plan.starts] == ["short"]
    assert step(SchedulerState(snapshot, NOW), (), NOW)[1] == Delta(
        starts=plan.starts, stops=plan.stops
    )


@pytest.mark.parametrize("lending", [None, 0], ids=["lends", "does not lend"])
def test_a_newcomer_has_another_device_where_there_is_one(lending: int | None) -> None:
    """Of equal devices, the first one is that on which the relocated work continues."""
    other = tuple(replace(each, model="A100") for each in node("d", 1))
    new = replace(pending("new", group="math"), preemptible=True)
    plan = decide(
        scene(
            *IN_PIECES,
            queue=(replace(WANTS, model="H200"), new),
            devices=(*DEVICES, *other),
            groups=(group("cs101", 2), replace(group("lab", 2), lending=lending), GROUPS[2]),
        ),
        NOW,
    )
    assert moved(plan) == ["first"]
    assert [(start.request_id, start.devices) for start in plan.starts] == [("new", ("d0",))]


LEFT_ALONE = [
    pytest.param(
        scene(*(small(each.request_id, *each.devices, lost=301.0) for each in IN_PIECES)),
        id="it would lose more than five minutes",
    ),
    pytest.param(
        scene(*(replace(each, preemptible=False) for each in IN_PIECES)),
        id="its owner has ruled it out",
    ),
    pytest.param(
        scene(*(replace(each, nodes=frozenset({each.devices[0][0]})) for each in IN_PIECES)),
        id="its image is nowhere else",
    ),
    pytest.param(
        scene(*(replace(each, group="cs101") for each in IN_PIECES), groups=(group("cs101", 4),)),
        id="it is of the same group",
    ),
    pytest.param(
        scene(*(replace(each, priority=PriorityClass.INTERACTIVE) for each in IN_PIECES)),
        id="its class is served before",
    ),
    pytest.param(
        scene(*(replace(each, share=Share(compute=0.5)) for each in IN_PIECES)),
        id="it is a part of a device",
    ),
    pytest.param(
        scene(
            *IN_PIECES,
            reserved=(
                ReservedSpan(
                    id="class",
                    group="math",
                    devices=2,
                    starts_at=NOW + 60,
                    ends_at=NOW + HOUR,
                ),
            ),
        ),
        id="it would run into a reservation",
    ),
    pytest.param(
        scene(*IN_PIECES, groups=(group("cs101", 1), group("lab", 2))),
        id="no group is guaranteed as much",
    ),
    pytest.param(
        scene(
            small("first", "a0", "a1"),
            allocation("fixed", "b0"),
            groups=(*GROUPS[:1], group("lab", 2)),
        ),
        id="nothing smaller can be relocated",
    ),
]


@pytest.mark.parametrize("snapshot", LEFT_ALONE)
def test_it_is_left_alone_where(snapshot: Snapshot) -> None:
    assert decide(snapshot, NOW).stops == ()


def test_it_is_left_alone_where_it_could_not_go_on() -> None:
    """The free devices are reserved: a group that does not lend would lose guaranteed quota."""
    math = replace(group("math", 1), lending=0)
    groups = (group("cs101", 2), group("lab", 1), math)
    snapshot = scene(small("first", "a0"), allocation("fixed", "b0", group="cs102"), groups=groups)
    assert decide(snapshot, NOW).stops == ()


def test_an_allocation_keeps_the_nodes_of_its_image() -> None:
    request = replace(pending("r"), image="torch@sha256:1", nodes=frozenset({"a"}))
    made = allocation_of(request, Placement(devices=("a0",)), now=NOW)
    assert (made.image, made.nodes) == ("torch@sha256:1", frozenset({"a"}))
