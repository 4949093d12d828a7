"""Devices that preemptors count on are reserved before later requests start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.cycle.incremental import SchedulerState, step
from carrel.hub.scheduling.explanation.quotes import quotes
from carrel.hub.scheduling.model.plan import Estimate, Plan, Reason
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    Device,
    Group,
    Kind,
    PendingRequest,
    PriorityClass,
    ReservedSpan,
    Share,
    Snapshot,
)

from ..values import NOW, allocation, group, node, pending

GROUPS = (
    replace(group("cs101"), guaranteed=2),
    replace(group("lab"), guaranteed=2),
    group("other"),
)


def lent(request_id: str, *devices: str, priority: PriorityClass) -> Allocation:
    made = allocation(request_id, *devices, group="lab", ends_in=1700)
    return replace(made, preemptible=True, saved_at=NOW - 100, priority=priority)


LENT = (
    lent("two", "a0", "a1", priority=PriorityClass.NORMAL),
    lent("one", "a2", priority=PriorityClass.OPPORTUNISTIC),
)
ASKS = replace(pending("asks", 2, age=10), kind=Kind.SESSION, priority=PriorityClass.NORMAL)
NEW = replace(
    pending("new", 1, group="lab", age=60, seconds=600.0),
    priority=PriorityClass.OPPORTUNISTIC,
    preemptible=True,
)
HEAD = replace(pending("head", 4, group="other"), priority=PriorityClass.INTERACTIVE)


def scene(*queue: PendingRequest, devices: tuple[Device, ...] = node("a", 4)) -> Snapshot:
    return Snapshot(devices=devices, groups=GROUPS, allocations=LENT, pending=queue)


def started(plan: Plan) -> list[tuple[str, tuple[str, ...]]]:
    return [(start.request_id, start.devices) for start in plan.starts]


@pytest.mark.parametrize("new", [NEW, replace(NEW, seconds=36000.0)], ids=["short", "long"])
@pytest.mark.parametrize("ahead", [(), (HEAD,)], ids=["the head", "behind a head"])
def test_a_newcomer_does_not_take_the_device_that_saves_others_from_being_stopped(
    ahead: tuple[PendingRequest, ...], new: PendingRequest
) -> None:
    plan = decide(scene(*ahead, ASKS, new), NOW)

    assert started(plan) == []
    assert [(stop.request_id, stop.for_request) for stop in plan.stops] == [("one", "asks")]


def test_it_starts_on_devices_without_pending_preemptions() -> None:
    plan = decide(scene(ASKS, NEW, devices=(*node("a", 4), *node("b", 1))), NOW)

    assert started(plan) == [("new", ("b0",))]
    assert [stop.request_id for stop in plan.stops] == ["one"]


def test_while_victims_leave_the_preemptor_waits() -> None:
    state = scene(HEAD, ASKS, NEW)
    leaving = tuple(replace(each, leaving=each.request_id == "one") for each in LENT)

    plan = decide(replace(state, allocations=leaving), NOW)

    assert (started(plan), plan.stops) == ([], ())


@pytest.mark.parametrize(
    ("leaves_at", "expected"), [(None, NOW), (NOW - 1, NOW), (NOW + 90, NOW + 90)]
)
def test_devices_of_victims_are_expected_when_the_notice_ends(
    leaves_at: float | None, expected: float
) -> None:
    leaving = tuple(replace(each, leaving=True, leaves_at=leaves_at) for each in LENT)
    (wait,) = decide(replace(scene(ASKS), allocations=leaving), NOW).waits

    assert wait.reason is Reason.RECLAIMING
    assert wait.estimate == Estimate(at=expected, latest=expected)


@pytest.mark.parametrize(
    ("promised", "asked"),
    [(1, {"one": "asks", "other": "asks"}), (2, {}), (3, {})],
    ids=["room for both", "room for the half of it", "all is promised"],
)
def test_no_victim_for_devices_that_a_reservation_keeps_for_others(
    promised: int, asked: dict[str, str]
) -> None:
    snapshot = Snapshot(
        devices=node("a", 3),
        groups=GROUPS,
        allocations=(
            replace(lent("one", "a0", priority=PriorityClass.NORMAL), group="other"),
            replace(lent("other", "a1", priority=PriorityClass.NORMAL), group="other"),
        ),
        pending=(ASKS,),
        reserved=(
            ReservedSpan(
                id="lesson",
                group="lab",
                devices=promised,
                starts_at=NOW - 60,
                ends_at=NOW + 3600,
            ),
        ),
    )

    plan = decide(snapshot, NOW)

    assert {stop.request_id: stop.for_request for stop in plan.stops} == asked
    if not asked:
        assert [wait.reason for wait in plan.waits] == [Reason.NO_FREE_DEVICE]


def test_no_victim_for_quota_that_a_group_does_not_lend_to_its_siblings() -> None:
    """``dept`` has the guaranteed quota of its lab, which does not lend it."""
    dept = replace(group("dept"), guaranteed=0)
    lab = replace(group("quiet", parent="dept"), guaranteed=2, lending=0)
    snapshot = Snapshot(
        devices=node("a", 3),
        groups=(dept, lab, group("other")),
        allocations=(
            replace(lent("one", "a0", "a1", priority=PriorityClass.NORMAL), group="other"),
        ),
        pending=(replace(ASKS, group="dept"),),
    )

    assert decide(snapshot, NOW).stops == ()


def below(name: str, parent: str, guaranteed: int = 0) -> Group:
    return replace(group(name, parent=parent), guaranteed=guaranteed)


def test_no_victim_for_a_session_that_would_use_guaranteed_quota_of_others() -> None:
    """More is guaranteed than exists: cs101 lacks one more device, and the department lends one."""
    snapshot = Snapshot(
        devices=node("a", 2),
        groups=(group("maths"), below("topology", "maths", 1), GROUPS[0]),
        allocations=(
            replace(allocation("lent", "a0", group="maths"), preemptible=True),
            allocation("stays", "a1", group="cs101"),
        ),
    )
    asks = pending("asks", group="topology")
    session = replace(asks, kind=Kind.SESSION)
    assert decide(replace(snapshot, pending=(session,)), NOW).stops == ()
    job = replace(asks, preemptible=True)
    (stop,) = decide(replace(snapshot, pending=(job,)), NOW).stops
    assert stop.request_id == "lent"


def test_a_session_has_its_guarantee_whatever_others_lack_of_each_other() -> None:
    """Within cs, cs101 lacks three devices that its department and cs102 use: not of maths."""
    snapshot = Snapshot(
        devices=node("a", 8),
        groups=(
            replace(group("uni"), guaranteed=8),
            below("cs", "uni"),
            below("cs101", "cs", 3),
            below("cs102", "cs", 1),
            below("maths", "uni", 4),
        ),
        allocations=(
            allocation("one", "a0", group="cs"),
            allocation("two", "a1", "a2", group="cs102"),
            allocation("others", "a3", "a4", group="uni"),
        ),
        pending=(replace(pending("asks", 2, group="maths"), kind=Kind.SESSION),),
    )
    assert started(decide(snapshot, NOW)) == [("asks", ("a5", "a6"))]


@pytest.mark.parametrize(("reserved", "asked"), [(0, ["one"]), (1, ["one"]), (2, [])])
def test_work_in_its_reservation_is_not_preempted(reserved: int, asked: list[str]) -> None:
    """It would go before the preemptor, start again and be preempted again, without end."""
    lesson = ReservedSpan(
        id="lesson", group="other", devices=reserved, starts_at=NOW - 60, ends_at=NOW + 3600
    )
    snapshot = Snapshot(
        devices=node("a", 6),
        groups=(group("uni", maximum=2), below("cs101", "uni", 2), below("other", "uni")),
        allocations=tuple(
            replace(lent(name, f"a{n}", priority=PriorityClass.NORMAL), group="other")
            for n, name in enumerate(("one", "two"))
        ),
        pending=(replace(ASKS, devices=1),),
        reserved=(lesson,),
    )
    assert [stop.request_id for stop in decide(snapshot, NOW).stops] == asked


def test_no_victim_for_a_request_behind_the_first_under_a_limit() -> None:
    """The urgent request waits for all three devices that cs may hold: another request that takes
    one would delay it, so that its victim would only start again."""
    cs = replace(group("cs", maximum=3), guaranteed=3)
    snapshot = Snapshot(
        devices=node("a", 4),
        groups=(cs, below("course", "cs", 3), group("maths")),
        allocations=(
            allocation("stays", "a0", group="cs", ends_in=1000),
            *(
                replace(allocation(f"lent{n}", f"a{n}", group="maths"), preemptible=True)
                for n in (1, 2, 3)
            ),
        ),
        pending=(pending("asks", group="course"),),
    )
    assert len(decide(snapshot, NOW).stops) == 1
    urgent = pending("urgent", 3, group="cs", priority=PriorityClass.URGENT)
    queue = (*snapshot.pending, urgent)
    plan = decide(replace(snapshot, pending=queue), NOW)
    assert plan.stops == ()
    short = replace(snapshot.pending[0], seconds=900.0)
    (stop,) = decide(replace(snapshot, pending=(short, urgent)), NOW).stops
    assert stop.for_request == "asks"


def test_a_step_and_a_quote_say_the_same() -> None:
    scheduler = SchedulerState(scene(ASKS, NEW), NOW)
    _, delta = step(scheduler, (), NOW)
    (quote,) = quotes(scene(ASKS), [NEW], NOW)

    assert [stop.request_id for stop in delta.stops] == ["one"]
    assert (delta.starts, quote.place) == ((), 2)


def of(name: str, request_id: str, *devices: str) -> Allocation:
    made = allocation(request_id, *devices, group=name)
    return replace(made, preemptible=True, saved_at=NOW)


def leaves(made: Allocation) -> Allocation:
    return replace(made, leaving=True)


def test_victims_for_a_request_behind_the_head_are_left_to_it() -> None:
    """The same number of devices would be free now if the head did not get them."""
    guaranteed = {"cs": 4, "cs101": 3, "cs102": 1}
    state = Snapshot(
        devices=(*node("a", 4), *node("b", 4)),
        groups=tuple(replace(group(name), guaranteed=n) for name, n in guaranteed.items()),
        allocations=(
            of("cs101", "j0", "a0"),
            leaves(of("cs102", "j1", "a1")),
            of("cs102", "j2", "a2"),
            leaves(of("cs102", "j3", "b0")),
            leaves(of("cs102", "j4", "b1")),
        ),
        pending=(
            replace(pending("four", 4, group="cs", age=2), preemptible=True),
            replace(pending("two", 2, group="cs101", age=1), preemptible=True),
            replace(pending("new", 1, group="cs102", seconds=600.0), kind=Kind.SESSION),
        ),
    )

    plan = decide(state, NOW)

    assert started(plan) == []
    reasons = {wait.request_id: wait.reason for wait in plan.waits}
    assert reasons["four"] is reasons["two"] is Reason.RECLAIMING


def test_a_leaving_device_is_not_shared_meanwhile() -> None:
    """The request of math for two devices waits for the victim and for that device."""
    part = Share(compute=0.25)
    state = Snapshot(
        devices=(*node("a", 1), *node("b", 4)),
        groups=(
            replace(group("lab"), guaranteed=2),
            replace(group("math"), guaranteed=2),
        ),
        allocations=(
            of("lab", "one", "a0"),
            of("lab", "three", "b0", "b2", "b3"),
            leaves(replace(of("lab", "part", "b1"), share=part)),
        ),
        pending=(
            replace(pending("head", 1, group="lab"), priority=PriorityClass.URGENT),
            replace(pending("pair", 2, group="math"), preemptible=True),
            replace(pending("small", 1, group="lab", seconds=36000.0), share=part),
        ),
    )

    plan = decide(state, NOW)

    assert started(plan) == []
    assert [(stop.request_id, stop.for_request) for stop in plan.stops] == [("three", "pair")]


def test_no_request_uses_up_the_limit_of_a_head_that_preemptions_start_earlier() -> None:
    """The request for two gets two of the three devices that math reclaims."""
    state = Snapshot(
        devices=(*node("a", 3), *node("b", 3, model="A100")),
        groups=(group("lab", maximum=3), replace(group("math"), guaranteed=1), group("other")),
        allocations=(of("other", "three", "b0", "b1", "b2"), allocation("own", "a0", group="lab")),
        pending=(
            pending(
                "pair", 2, group="lab", model="A100", age=4, priority=PriorityClass.INTERACTIVE
            ),
            pending(
                "short", group="other", seconds=600.0, age=3, priority=PriorityClass.INTERACTIVE
            ),
            pending("one", group="math", model="A100", age=2),
            pending("late", group="lab", seconds=3000.0, age=1),
        ),
    )

    plan = decide(state, NOW)

    assert [(stop.request_id, stop.for_request) for stop in plan.stops] == [("three", "one")]
    assert started(plan) == [("short", ("a1",))]


@pytest.mark.parametrize(
    "others",
    [
        pytest.param((), id="before the head is looked at"),
        pytest.param(
            (
                pending(
                    "short",
                    group="other",
                    model="H200",
                    seconds=600.0,
                    priority=PriorityClass.INTERACTIVE,
                ),
                pending("one", 2, group="math", model="V100", age=3),
                pending("behind", group="other", model="V100", age=2),
            ),
            id="before it is looked at again",
        ),
    ],
)
def test_headroom_is_reserved_for_the_head_whatever_else_is_queued(
    others: tuple[PendingRequest, ...],
) -> None:
    """Three requests of lab wait for its limit."""
    low = PriorityClass.OPPORTUNISTIC
    state = Snapshot(
        devices=(*node("a", 5), *node("b", 2, model="A100"), *node("c", 2, model="V100")),
        groups=(group("lab", maximum=3), replace(group("math"), guaranteed=2), group("other")),
        allocations=(
            allocation("own", "a0", group="lab", ends_in=7200.0),
            allocation("pair", "b0", "b1", group="other"),
            of("other", "small", "c0"),
        ),
        pending=(
            pending(
                "head", 2, group="lab", model="A100", age=9, priority=PriorityClass.INTERACTIVE
            ),
            *others,
            pending("three", 3, group="lab", model="H200", age=1, priority=low),
            pending("late", group="lab", model="H200", seconds=5000.0, priority=low),
        ),
    )

    assert "late" not in [name for name, _ in started(decide(state, NOW))]
