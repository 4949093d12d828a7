"""The order of the queue, rule by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.plan import Estimate
from carrel.hub.scheduling.model.snapshot import (
    DecayedUsage,
    Group,
    PendingRequest,
    PriorityClass,
    ReservedSpan,
    Snapshot,
)
from carrel.hub.scheduling.queue.cycle_state import CycleState
from carrel.hub.scheduling.queue.order import in_order

from ..values import HOUR, NOW, allocation, group, node, pending

TWO = (group("cs101"), group("math"))


def order(*queue: PendingRequest, groups: tuple[Group, ...] = TWO, **more: object) -> list[str]:
    snapshot = Snapshot(devices=node("a", 8), groups=groups, pending=queue, **more)  # type: ignore[arg-type]
    return [request.id for request in in_order(snapshot, CycleState(snapshot, NOW))]


def used(**device_seconds: float) -> tuple[DecayedUsage, ...]:
    return tuple(
        DecayedUsage(group="cs101", owner=owner, device_seconds=seconds)
        for owner, seconds in device_seconds.items()
    )


def test_the_class_comes_before_age_and_age_before_the_id() -> None:
    assert order(
        pending("b", age=1),
        pending("d", age=9),
        pending("f", priority=PriorityClass.URGENT),
        pending("a", age=1000, priority=PriorityClass.OPPORTUNISTIC),
        pending("e", priority=PriorityClass.INTERACTIVE),
        pending("c", age=9),
    ) == ["f", "e", "c", "d", "b", "a"]


def test_relocated_work_goes_first_behind_its_preemptor() -> None:
    groups = (replace(group("cs101"), guaranteed=1), replace(group("math"), guaranteed=2))
    queue = (
        pending("urgent", priority=PriorityClass.URGENT),
        replace(pending("moved", age=5), moved_for="wants"),
        pending("wants", 2, group="math"),
    )
    assert order(*queue, groups=groups) == ["wants", "moved", "urgent"]
    assert order(*queue[:2], groups=groups) == ["moved", "urgent"]


def test_a_preemptor_whose_group_is_gone_has_one_place() -> None:
    gone = pending("wants", group="gone", priority=PriorityClass.URGENT)
    moved = replace(pending("moved"), moved_for="wants")
    groups = (replace(group("cs101"), guaranteed=1),)
    assert order(gone, moved, groups=groups) == ["moved", "wants"]


def test_relocated_work_beyond_its_guarantee_has_its_ordinary_place() -> None:
    queue = (pending("older", age=9), replace(pending("moved", age=5), moved_for="wants"))
    assert order(*queue) == ["older", "moved"]


def test_a_reservation_that_is_due_comes_before_every_class() -> None:
    due = ReservedSpan(id="lab", group="math", devices=2, starts_at=NOW, ends_at=NOW + HOUR)
    queue = (
        pending("urgent", priority=PriorityClass.URGENT),
        pending("first", 1, age=3, group="math"),
        pending("second", 1, age=2, group="math"),
        pending("third", 1, age=1, group="math"),
    )
    assert order(*queue, reserved=(due,)) == ["first", "second", "urgent", "third"]
    ahead = replace(due, starts_at=NOW + 1)
    assert order(*queue, reserved=(ahead,))[0] == "urgent"


def test_what_a_group_is_guaranteed_comes_before_what_others_borrow() -> None:
    groups = (group("cs101"), replace(group("math"), guaranteed=1))
    use = (DecayedUsage(group="math", owner="eve", device_seconds=9e9),)
    found = order(
        pending("a", age=9),
        pending("b", owner="eve", group="math"),
        pending("c", owner="eve", group="math"),
        groups=groups,
        use=use,
    )
    assert found == ["b", "a", "c"]


def test_of_siblings_the_one_with_less_use_over_weight_goes_first() -> None:
    assert order(
        pending("a", owner="ada", age=9), pending("b", owner="bob"), use=used(ada=2.0, bob=1.0)
    ) == ["b", "a"]
    heavy = (group("cs101"), replace(group("math"), weight=4.0))
    use = (
        DecayedUsage(group="cs101", owner="ada", device_seconds=100),
        DecayedUsage(group="math", owner="eve", device_seconds=300),
    )
    asked = (pending("a", owner="ada", age=9), pending("b", owner="eve", group="math"))
    assert order(*asked, groups=heavy, use=use) == ["b", "a"]
    assert order(*asked, use=use) == ["a", "b"]


def test_fifty_submissions_of_one_user_pass_no_other_user() -> None:
    """Each request is charged when it is served, so that users alternate."""
    burst = tuple(pending(f"b{n:02}", owner="bob", age=100) for n in range(50))
    others = tuple(pending(f"a{n}", owner="ada", age=1 - n / 10) for n in range(3))
    found = order(*burst, *others)
    assert found[:6] == ["b00", "a0", "b01", "a1", "b02", "a2"]


def test_running_requests_are_charged_in_advance() -> None:
    running = (allocation("r", "a0", owner="bob"),)
    queue = (pending("b", owner="bob", age=9), pending("a", owner="ada"))
    assert order(*queue, allocations=running) == ["a", "b"]


def test_a_request_that_a_limit_holds_is_not_charged_above_it() -> None:
    """Bob may hold one device, so his queue does not push his group back."""
    groups = (group("cs101", per_user=1), group("math"))
    queue = (
        *(pending(f"b{n}", owner="bob", age=9) for n in range(5)),
        pending("c", owner="cy", age=8),
        pending("e", owner="eve", group="math", age=7),
        pending("f", owner="eve", group="math", age=6),
    )
    found = [name for name in order(*queue, groups=groups) if name in {"b0", "c", "e", "f"}]
    assert found == ["b0", "e", "c", "f"]


def test_a_request_that_a_limit_holds_does_not_go_before_groups_that_owe_less() -> None:
    groups = (group("cs101", maximum=1), group("math"))
    queue = (pending("full", age=9), pending("other", group="math"))
    assert order(*queue, groups=groups, allocations=(allocation("r", "a0"),)) == ["other", "full"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            pending("long", seconds=10 * HOUR, age=9),
            pending("short", seconds=HOUR),
            id="the shortest expected work first",
        ),
        pytest.param(
            pending("wide", 4, age=9), pending("narrow", 1), id="counted in device-seconds"
        ),
        pytest.param(
            pending("limit", seconds=HOUR, age=9),
            replace(pending("history", seconds=9 * HOUR), expected=600.0),
            id="by what is expected rather than by its limit",
        ),
        pytest.param(
            pending("whole", seconds=HOUR, age=9),
            replace(pending("half done", seconds=HOUR), done=1800.0),
            id="what was saved need not be done again",
        ),
        pytest.param(
            pending("short", seconds=60),
            pending("long", seconds=HOUR, age=400 * HOUR),
            id="nothing starves: it has waited for long enough",
        ),
        pytest.param(
            pending("short", seconds=60, age=9),
            replace(pending("due", seconds=HOUR), deadline=NOW + 1.5 * HOUR),
            id="a deadline in danger",
        ),
        pytest.param(pending("b"), pending("a"), id="the id, where all else is the same"),
    ],
)
def test_the_order_within_one_group(first: PendingRequest, second: PendingRequest) -> None:
    queue = (replace(first, owner="ada"), replace(second, owner="ada"))
    assert order(*queue) == [second.id, first.id]


def test_a_deadline_with_enough_time_does_not_change_the_order() -> None:
    asked = replace(pending("due", seconds=HOUR), deadline=NOW + 9 * HOUR)
    assert order(replace(asked, owner="a"), pending("short", seconds=60, owner="a")) == [
        "short",
        "due",
    ]


def hurried(name: str, owner: str) -> PendingRequest:
    return replace(pending(name, owner=owner, seconds=HOUR), deadline=NOW + HOUR)


def test_a_deadline_in_danger_passes_others_of_its_group() -> None:
    older = pending("older", owner="ben", seconds=HOUR, age=9)
    assert order(older, hurried("due", "ada")) == ["due", "older"]
    later = replace(hurried("due", "ada"), deadline=NOW + 9 * HOUR)
    assert order(older, later) == ["older", "due"]


def test_many_deadlines_of_one_user_take_turns_with_others() -> None:
    """The first request of ada goes before the first of ben; then they alternate."""
    many = [hurried(f"due {number}", "ada") for number in range(6)]
    others = [pending(f"ben {n}", owner="ben", seconds=HOUR, age=9) for n in range(3)]
    found = order(*many, *others)
    assert [name[:3] for name in found] == [
        "due", "ben", "due", "ben", "due", "ben", "due", "due", "due"
    ]  # fmt: skip  # by turns


def test_a_deadline_passes_no_group_within_its_guaranteed_quota() -> None:
    snapshot = Snapshot(
        devices=node("a", 1),
        groups=(group("cs101"), replace(group("lab"), guaranteed=1)),
        pending=(hurried("due", "ada"), pending("r", group="lab", seconds=HOUR)),
    )
    assert [each.id for each in in_order(snapshot, CycleState(snapshot, NOW))] == ["r", "due"]


def test_the_example_of_the_documentation() -> None:
    """``docs/explanation/why-this-order.md``; it is noon."""

    def since(hour: int, minute: int = 0) -> float:
        return (12 - hour) * HOUR - minute * 60

    def ada(number: int, hours: int) -> PendingRequest:
        age = since(10, number - 1)
        return pending(f"Ada {number}", owner="Ada", age=age, seconds=hours * HOUR)

    tom = pending("Tom", group="lab", age=since(9), priority=PriorityClass.OPPORTUNISTIC)
    eve = pending("Eve", age=since(10, 30), priority=PriorityClass.INTERACTIVE)
    snapshot = Snapshot(
        devices=node("a", 4),
        groups=tuple(replace(group(name), guaranteed=2) for name in ("cs101", "lab")),
        pending=(
            *(tom, ada(1, 2), ada(2, 1), ada(3, 1)),
            pending("Ben", age=since(10, 5), seconds=2 * HOUR),
            pending("Lea", 2, group="lab", age=since(10, 10)),
            eve,
        ),
    )

    order = [request.id for request in in_order(snapshot, CycleState(snapshot, NOW))]
    plan = decide(snapshot, NOW)

    assert order == ["Eve", "Ada 2", "Lea", "Ben", "Ada 3", "Ada 1", "Tom"]
    assert [start.request_id for start in plan.starts] == ["Eve", "Ada 2", "Lea"]
    ben = next(wait for wait in plan.waits if wait.request_id == "Ben")
    assert ben.estimate == Estimate(at=NOW + HOUR, latest=NOW + HOUR)


def test_expedited_requests_go_first_in_their_class() -> None:
    groups = (replace(group("cs101"), guaranteed=2), group("math"))
    assert order(
        pending("within", 1, age=50),
        pending("urgent", priority=PriorityClass.URGENT),
        replace(pending("later", group="math"), expedited=True),
        replace(pending("first", group="math", seconds=9 * HOUR, age=1), expedited=True),
        replace(pending("low", priority=PriorityClass.OPPORTUNISTIC), expedited=True),
        groups=groups,
    ) == ["urgent", "first", "later", "within", "low"]


def test_a_request_that_backs_off_is_last_and_blocks_nothing() -> None:
    waits = replace(pending("waits", 4, age=HOUR), not_before=NOW + 10)
    snapshot = Snapshot(
        devices=node("a", 4), groups=TWO, pending=(waits, pending("all", 4), pending("next", 4))
    )
    before, after = decide(snapshot, NOW + 9.9), decide(snapshot, NOW + 10)
    assert [start.request_id for start in before.starts] == ["all"]
    assert [(wait.request_id, wait.place, wait.reason.value) for wait in before.waits] == [
        ("next", 1, "no_free_device"),
        ("waits", 2, "back_off"),
    ]
    assert [start.request_id for start in after.starts] == ["waits"]
