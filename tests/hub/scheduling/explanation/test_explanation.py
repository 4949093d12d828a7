"""Wait reasons, and the effect of suggestions that are followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.cycle.start_estimates import FIRST_PAGE
from carrel.hub.scheduling.explanation.explanation import (
    ESTIMATE_EFFORT,
    MAX_AHEAD,
    SUGGESTION_EFFORT,
    Explanation,
    Precedence,
    QuotaState,
    RequestsAhead,
    explain,
)
from carrel.hub.scheduling.explanation.what_if import SuggestedChange, Suggestion, changed
from carrel.hub.scheduling.model.learned_order import WEIGHTS, LearnedOrder
from carrel.hub.scheduling.model.plan import Estimate, Plan, Reason
from carrel.hub.scheduling.model.snapshot import (
    Allocation,
    Budget,
    BudgetBalance,
    DecayedUsage,
    Device,
    GangRole,
    Group,
    Kind,
    PendingRequest,
    Period,
    PriorityClass,
    ReservedSpan,
    Share,
    Snapshot,
)
from carrel.hub.scheduling.placement.device_pool import Placement
from carrel.hub.scheduling.queue.running_set import allocation_of

from .. import rich, strategies
from ..values import HOUR, NOW, allocation, device, group, node, pending

GROUPS = (group("cs101"), group("math"))


def snapshot(
    *requests: PendingRequest,
    devices: Sequence[Device] = (),
    allocations: Sequence[Allocation] = (),
    groups: Sequence[Group] = GROUPS,
    reserved: Sequence[ReservedSpan] = (),
    budgets: Sequence[BudgetBalance] = (),
    use: Sequence[DecayedUsage] = (),
) -> Snapshot:
    return Snapshot(
        devices=tuple(devices) or node("a", 2),
        groups=tuple(groups),
        pending=requests,
        allocations=tuple(allocations),
        reserved=tuple(reserved),
        budgets=tuple(budgets),
        use=tuple(use),
    )


def explained(asked: Snapshot, request_id: str = "r", groups: Sequence[str] = ()) -> Explanation:
    found = explained_if_it_waits(asked, request_id, groups)
    assert found is not None
    return found


def explained_if_it_waits(
    asked: Snapshot, request_id: str, groups: Sequence[str] = ()
) -> Explanation | None:
    plan = decide(asked, NOW)
    return explain(carried_out(asked, plan), request_id, NOW, waits=plan.waits, groups=groups)


HALF_FREE = (allocation("j", "a0"),)
FEWER = Suggestion(change=SuggestedChange.FEWER_DEVICES, devices=1)

SUGGESTIONS = [
    pytest.param(
        snapshot(pending("r", 2), allocations=HALF_FREE), (), (FEWER,), id="one device is free"
    ),
    pytest.param(
        snapshot(pending("r", 8), devices=node("a", 8), allocations=HALF_FREE),
        (),
        (Suggestion(change=SuggestedChange.FEWER_DEVICES, devices=7),),
        id="of several sizes the largest",
    ),
    pytest.param(
        snapshot(pending("r", 2), allocations=[allocation("j", "a0", "a1")]),
        (),
        (),
        id="all are taken",
    ),
    pytest.param(
        snapshot(
            pending("r", model="A100"),
            devices=(*node("a", 1), *node("b", 1, model="A100")),
            allocations=[allocation("j", "b0")],
        ),
        (),
        (Suggestion(change=SuggestedChange.ANY_MODEL),),
        id="another model is free",
    ),
    pytest.param(
        snapshot(
            pending("head", 2, age=9),
            pending("r", seconds=2 * HOUR, owner="ben"),
            allocations=[allocation("j", "a0", ends_in=HOUR)],
        ),
        (),
        (Suggestion(change=SuggestedChange.SHORTER_LIMIT, seconds=HOUR),),
        id="a shorter one ends before the head starts",
    ),
    pytest.param(
        snapshot(
            pending("r", seconds=3 * HOUR),
            reserved=[
                ReservedSpan(
                    id="lab", group="math", devices=2, starts_at=NOW + HOUR, ends_at=NOW + 3 * HOUR
                )
            ],
        ),
        (),
        (Suggestion(change=SuggestedChange.SHORTER_LIMIT, seconds=HOUR),),
        id="a shorter one ends before the reservation",
    ),
    pytest.param(
        snapshot(
            pending("r"), groups=(group("cs101", maximum=1), group("math")), allocations=HALF_FREE
        ),
        ("cs101", "math"),
        (Suggestion(change=SuggestedChange.OTHER_GROUP, group="math"),),
        id="another group has room",
    ),
    pytest.param(
        snapshot(
            pending("r", seconds=2 * HOUR),
            groups=(group("cs101", maximum=1), group("math", seconds=3600)),
            allocations=HALF_FREE,
        ),
        ("math",),
        (),
        id="another group does not allow as much time",
    ),
    pytest.param(
        snapshot(
            pending("r"),
            pending("next", group="math", age=-5),
            groups=(group("cs101", maximum=1), group("math", maximum=1)),
            allocations=HALF_FREE,
        ),
        ("math",),
        (),
        id="in another group another request is first",
    ),
    pytest.param(
        snapshot(
            pending("head", 4, group="math", age=9),
            pending("r", 2, seconds=2 * HOUR),
            devices=node("a", 4),
            groups=(group("cs101", maximum=2), group("math")),
            allocations=[allocation("j", "a0", ends_in=HOUR), allocation("k", "a1", group="math")],
        ),
        (),
        (),
        id="one that no limit holds has its turn behind the head",
    ),
    pytest.param(
        snapshot(
            pending("head", 2, model="A100", age=9),
            pending("r", seconds=2 * HOUR, owner="ben"),
            devices=(*node("a", 2), *node("b", 2, model="A100")),
            groups=(replace(group("cs101", maximum=3), guaranteed=3), group("math")),
            allocations=[
                allocation("j", "a0", ends_in=3 * HOUR),
                replace(allocation("k", "b0", group="math"), preemptible=True),
            ],
        ),
        (),
        (),
        id="a preemptor starts before devices would be free",
    ),
    pytest.param(
        snapshot(
            replace(
                pending("r", 2), gang=(GangRole(name="worker", devices=1, wanted=2, minimum=2),)
            ),
            allocations=HALF_FREE,
        ),
        (),
        (),
        id="a gang says itself with how few it starts",
    ),
    pytest.param(
        snapshot(
            replace(pending("r"), share=Share(compute=0.5)),
            allocations=[allocation("j", "a0", "a1")],
        ),
        (),
        (),
        id="a share stays a share",
    ),
]


@pytest.mark.parametrize(("asked", "groups", "expected"), SUGGESTIONS)
def test_suggestions_that_start_a_request_now(
    asked: Snapshot, groups: tuple[str, ...], expected: tuple[Suggestion, ...]
) -> None:
    assert explained(asked, groups=groups).suggestions == expected


@pytest.mark.parametrize(
    ("other", "priority"),
    [
        pytest.param(
            replace(group("math"), budget=Budget(device_seconds=HOUR / 2, period=Period.WEEK)),
            PriorityClass.NORMAL,
            id="its budget is smaller than all that is asked for",
        ),
        pytest.param(group("math"), PriorityClass.URGENT, id="urgent work stays where it is"),
    ],
)
def test_no_group_is_suggested_that_would_refuse_the_request(
    other: Group, priority: PriorityClass
) -> None:
    asked = snapshot(
        pending("r", priority=priority),
        groups=(group("cs101", maximum=1), other),
        allocations=[allocation("j", "a0")],
    )

    assert explained(asked, groups=("math",)).suggestions == ()


def test_if_nothing_starts_now_suggestions_start_sooner() -> None:
    allocations = [allocation("j", "a0", ends_in=HOUR), allocation("k", "a1", ends_in=3 * HOUR)]

    found = explained(snapshot(pending("r", 2), allocations=allocations))

    assert found.wait.estimate == Estimate(at=NOW + 3 * HOUR, latest=NOW + 3 * HOUR)
    assert found.suggestions == (
        replace(FEWER, expected=Estimate(at=NOW + HOUR, latest=NOW + HOUR)),
    )


def test_a_form_with_victims_starts_when_the_notice_ends() -> None:
    """Two of the four borrowed devices are guaranteed to its group; it requests three."""
    borrowed = [
        replace(allocation(f"j{n}", f"a{n}", group="lab", ends_in=n * HOUR), preemptible=True)
        for n in (1, 2, 3, 4)
    ]
    asked = snapshot(
        pending("r", 3),
        devices=tuple(device(f"a{n}") for n in (1, 2, 3, 4)),
        groups=(replace(group("cs101"), guaranteed=2), group("lab")),
        allocations=borrowed,
    )

    found = explained(replace(asked, grace=120.0))

    assert found.wait.estimate == Estimate(at=NOW + 3 * HOUR, latest=NOW + 3 * HOUR)
    assert found.suggestions == (
        Suggestion(
            change=SuggestedChange.FEWER_DEVICES,
            devices=2,
            expected=Estimate(at=NOW + 120.0, latest=NOW + 120.0),
        ),
    )


SOONER = [
    pytest.param(
        snapshot(
            pending("r", 4),
            devices=node("a", 4),
            allocations=[
                allocation(f"j{n}", f"a{n}", ends_in=hours * HOUR)
                for n, hours in enumerate((1, 1, 2, 3))
            ],
        ),
        (),
        Suggestion(change=SuggestedChange.FEWER_DEVICES, devices=2),
        id="of the sizes that start first the largest",
    ),
    pytest.param(
        snapshot(
            pending("r", model="A100"),
            devices=(*node("a", 1), *node("b", 1, model="A100")),
            allocations=[
                allocation("j", "a0", ends_in=HOUR),
                allocation("k", "b0", ends_in=3 * HOUR),
            ],
        ),
        (),
        Suggestion(change=SuggestedChange.ANY_MODEL),
        id="another model is free earlier",
    ),
    pytest.param(
        snapshot(
            pending("head", 2, age=9),
            pending("r", seconds=4 * HOUR),
            allocations=[
                allocation("j", "a0", ends_in=HOUR),
                allocation("k", "a1", ends_in=3 * HOUR),
            ],
        ),
        (),
        Suggestion(change=SuggestedChange.SHORTER_LIMIT, seconds=2 * HOUR),
        id="half the time ends before the head starts",
    ),
    pytest.param(
        snapshot(
            pending("r"),
            groups=(group("cs101", maximum=1), group("math")),
            allocations=[
                allocation("j", "a0", ends_in=3 * HOUR),
                allocation("k", "a1", ends_in=HOUR, group="math"),
            ],
        ),
        ("math",),
        Suggestion(change=SuggestedChange.OTHER_GROUP, group="math"),
        id="another group has room earlier",
    ),
]


@pytest.mark.parametrize(("asked", "groups", "first"), SOONER)
def test_if_nothing_starts_now_the_best_of_each_kind_is_suggested(
    asked: Snapshot, groups: tuple[str, ...], first: Suggestion
) -> None:
    at_one = Estimate(at=NOW + HOUR, latest=NOW + HOUR)

    assert explained(asked, groups=groups).suggestions == (replace(first, expected=at_one),)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(
            snapshot(
                pending("head", 2, age=9),
                replace(pending("r", seconds=4 * HOUR), expected=2.5 * HOUR),
                allocations=[
                    allocation("j", "a0", ends_in=HOUR),
                    allocation("k", "a1", ends_in=3 * HOUR),
                ],
            ),
            id="it would start sooner",
        ),
        pytest.param(
            snapshot(
                pending("head", 2, age=9),
                replace(pending("r", seconds=2 * HOUR), expected=1.8 * HOUR),
                allocations=[allocation("j", "a0", ends_in=HOUR)],
            ),
            id="it would end before the head starts",
        ),
        pytest.param(
            snapshot(
                replace(pending("r", seconds=3 * HOUR), expected=2.5 * HOUR),
                reserved=[
                    ReservedSpan(
                        id="lab",
                        group="math",
                        devices=2,
                        starts_at=NOW + HOUR,
                        ends_at=NOW + 3 * HOUR,
                    )
                ],
            ),
            id="it would end before a reservation",
        ),
    ],
)
def test_no_suggested_time_limit_is_shorter_than_the_expected_runtime(asked: Snapshot) -> None:
    assert explained(asked).suggestions == ()


def test_suggestions_in_a_larger_pool() -> None:
    devices = [device for name in "abcdefghi" for device in node(name, 8)]
    allocations = [
        allocation(each.id, each.id, ends_in=HOUR * (1 + number))
        for number, each in enumerate(devices)
    ]
    asked = snapshot(pending("r", 2), devices=devices, allocations=allocations)

    found = explained(asked)

    assert found.suggestions == (
        replace(FEWER, expected=Estimate(at=NOW + HOUR, latest=NOW + HOUR)),
    )


def test_without_effort_only_suggestions_that_start_now_are_made() -> None:
    many = [
        pending(f"behind{number}", age=-1) for number in range(ESTIMATE_EFFORT + SUGGESTION_EFFORT)
    ]
    allocations = [allocation("j", "a0", ends_in=HOUR), allocation("k", "a1", ends_in=3 * HOUR)]

    assert explained(snapshot(pending("r", 2), *many, allocations=allocations)).suggestions == ()


def a_line(count: int) -> Snapshot:
    """Return requests for one device and one hour each."""
    line = [pending(f"r{number}", age=count - number) for number in range(1, count + 1)]
    return snapshot(*line, devices=node("a", 1), allocations=[allocation("j", "a0")])


def test_an_explained_request_has_an_estimate_past_the_first_page_too() -> None:
    asked = a_line(FIRST_PAGE + 10)
    plan = decide(asked, NOW)

    for place, planned in enumerate(plan.waits, 1):
        found = explained(asked, planned.request_id)
        assert found.wait.estimate == Estimate(at=NOW + place * HOUR, latest=NOW + place * HOUR)
        assert (planned.estimate is not None) == (place <= FIRST_PAGE)
        assert found.wait == planned._replace(estimate=found.wait.estimate)


def test_suggestions_past_the_first_page() -> None:
    asked = a_line(FIRST_PAGE + 9)
    last = pending("r", owner="zoe", model="H200", age=-1)
    more = replace(
        asked,
        devices=(*node("a", 1), *node("b", 1, model="A100")),
        pending=(*(replace(each, model="H200") for each in asked.pending), last),
        allocations=(*asked.allocations, allocation("k", "b0", ends_in=2 * HOUR)),
    )

    found = explained(more)

    at = NOW + 2 * HOUR
    assert found.wait.estimate == Estimate(at=NOW + 30 * HOUR, latest=NOW + 30 * HOUR)
    assert Suggestion(change=SuggestedChange.ANY_MODEL, expected=Estimate(at=at, latest=at)) in (
        found.suggestions
    )


def test_no_estimate_behind_a_very_long_queue() -> None:
    asked = a_line(MAX_AHEAD + 2)
    assert explained(asked, f"r{MAX_AHEAD + 2}").wait.estimate is None


def test_no_estimate_if_its_computation_takes_too_long() -> None:
    assert explained(a_line(MAX_AHEAD), f"r{MAX_AHEAD}").wait.estimate is None


@given(rich.snapshots(), st.integers(0, 15))
def test_an_estimate_of_its_own_is_that_of_a_plan_whose_page_ends_with_it(
    asked: Snapshot, choice: int
) -> None:
    asked = carried_out(asked, decide(asked, NOW))
    plan = decide(asked, NOW)
    sizes = {each.id: each.devices for each in asked.pending}
    with_devices = [each.request_id for each in plan.waits if sizes[each.request_id]]
    if plan.starts or plan.stops or not with_devices:
        return
    last = with_devices[choice % len(with_devices)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "carrel.hub.scheduling.cycle.decision.FIRST_PAGE", with_devices.index(last) + 1
        )
        planned = decide(asked, NOW).waits
        patch.setattr("carrel.hub.scheduling.explanation.explanation.FIRST_PAGE", 0)
        unknown = [each._replace(estimate=None) for each in planned]
        found = explain(asked, last, NOW, waits=unknown)
    assert found is not None
    assert found.wait in planned


def test_free_devices_are_counted_for_the_model_of_the_request() -> None:
    devices = (*node("a", 2), *node("b", 2, model="A100"))
    asked = snapshot(
        pending("r", 2, model="A100"), devices=devices, allocations=[allocation("j", "b0")]
    )

    found = explained(asked)

    assert (found.free, found.schedulable) == (1, 2)
    assert found.wait.reason is Reason.NO_FREE_DEVICE


@pytest.mark.parametrize(
    ("groups", "held", "expected"),
    [
        pytest.param(
            (replace(group("cs101", maximum=1), guaranteed=1), group("math")),
            (allocation("j", "a0"),),
            QuotaState(reason=Reason.GROUP_MAXIMUM, group="cs101", held=1, most=1, guaranteed=1),
            id="of its group",
        ),
        pytest.param(
            (group("cs101", per_user=1), group("math")),
            (allocation("j", "a0", owner="owner of r"),),
            QuotaState(reason=Reason.USER_MAXIMUM, group="cs101", held=1, most=1, guaranteed=0),
            id="of its owner",
        ),
        pytest.param(
            (replace(group("cs101"), guaranteed=1, borrowing=0), group("math")),
            (allocation("j", "a0"),),
            QuotaState(reason=Reason.BORROWING, group="cs101", held=1, most=1, guaranteed=1),
            id="of what its group may borrow",
        ),
        pytest.param(
            (group("cs101", parent="cs"), group("cs", maximum=1)),
            (allocation("j", "a0"),),
            QuotaState(reason=Reason.GROUP_MAXIMUM, group="cs", held=1, most=1, guaranteed=0),
            id="of a group above",
        ),
    ],
)
def test_the_quota_that_holds_a_request_is_named(
    groups: tuple[Group, ...], held: tuple[Allocation, ...], expected: QuotaState
) -> None:
    found = explained(snapshot(pending("r"), groups=groups, allocations=held))

    assert found.quota == expected
    assert found.wait.reason is expected.reason


def test_the_limit_on_sessions_is_a_quota() -> None:
    groups = (replace(group("cs101"), max_sessions=1), group("math"))
    session = replace(allocation("j", "a0", owner="ada"), kind=Kind.SESSION)
    request = replace(pending("r", owner="ada"), kind=Kind.SESSION)

    found = explained(snapshot(request, groups=groups, allocations=[session]))

    assert found.quota == QuotaState(
        reason=Reason.SESSIONS, group="cs101", held=1, most=1, guaranteed=0
    )


def test_the_budget_that_holds_a_request_is_named() -> None:
    left = BudgetBalance(group="cs101", budget=100.0, used=100.0)

    found = explained(snapshot(pending("r"), budgets=[left]))

    assert (found.wait.reason, found.budget) == (Reason.BUDGET, left)


def test_the_reservation_that_holds_a_request_is_named() -> None:
    lab = ReservedSpan(id="lab", group="math", devices=2, starts_at=NOW - 1, ends_at=NOW + HOUR)

    assert explained(snapshot(pending("r"), reserved=[lab])).reserved == lab


FULL = (allocation("j", "a0", "a1", group="math", owner="zoe"),)
LOW = PriorityClass.OPPORTUNISTIC

AHEAD = [
    pytest.param(
        snapshot(pending("x"), pending("r", priority=LOW), allocations=FULL),
        RequestsAhead(rule=Precedence.PRIORITY, count=1),
        id="a better class",
    ),
    pytest.param(
        snapshot(
            pending("x", group="math"),
            pending("r"),
            allocations=[allocation("j", "a0", "a1")],
            groups=(group("cs101"), replace(group("math"), guaranteed=1)),
        ),
        RequestsAhead(rule=Precedence.GUARANTEE, count=1, group="math"),
        id="a group below its guarantee",
    ),
    pytest.param(
        snapshot(
            pending("x", group="math"),
            pending("r"),
            allocations=[allocation("j", "a0", "a1", group="cs101")],
            use=[DecayedUsage(group="cs101", owner="owner of r", device_seconds=1e6)],
        ),
        RequestsAhead(rule=Precedence.LESS_USE, count=1, group="math"),
        id="a group that used less",
    ),
    pytest.param(
        snapshot(
            pending("x"),
            pending("r"),
            allocations=FULL,
            use=[DecayedUsage(group="cs101", owner="owner of r", device_seconds=1e6)],
        ),
        RequestsAhead(rule=Precedence.LESS_USE, count=1),
        id="a member who used less",
    ),
    pytest.param(
        snapshot(
            pending("x", owner="ada", seconds=600), pending("r", owner="ada"), allocations=FULL
        ),
        RequestsAhead(rule=Precedence.SHORTER, count=1),
        id="a shorter one of the same owner",
    ),
    pytest.param(
        replace(
            snapshot(pending("x", 2, owner="ada"), pending("r", 1, owner="ada"), allocations=FULL),
            learned_order=LearnedOrder(
                name="wide", weights=(0.0, 0.0, 10.0, *(WEIGHTS - 3) * (0.0,))
            ),
        ),
        RequestsAhead(rule=Precedence.LEARNED, count=1),
        id="one of the same owner that a learned order discounts",
    ),
    pytest.param(
        snapshot(
            replace(pending("x", owner="ada"), deadline=NOW + HOUR),
            pending("r", owner="ada"),
            allocations=FULL,
        ),
        RequestsAhead(rule=Precedence.DEADLINE, count=1),
        id="one of the same owner with a deadline in danger",
    ),
    pytest.param(
        snapshot(
            replace(pending("x", owner="ben"), deadline=NOW + HOUR),
            pending("r", owner="ada"),
            allocations=FULL,
        ),
        RequestsAhead(rule=Precedence.DEADLINE, count=1),
        id="one of the same group with a deadline in danger",
    ),
    pytest.param(
        snapshot(
            replace(pending("x", owner="ada", group="math"), submitted_at=NOW),
            pending("r"),
            allocations=[allocation("j", "a0", "a1")],
            reserved=[
                ReservedSpan(
                    id="lab", group="math", devices=2, starts_at=NOW - 1, ends_at=NOW + HOUR
                )
            ],
        ),
        RequestsAhead(rule=Precedence.RESERVATION, count=1, group="math"),
        id="one whose reservation is due",
    ),
    pytest.param(
        snapshot(
            replace(pending("x", group="math"), moved_for="gone"),
            pending("r", priority=PriorityClass.URGENT),
            allocations=[allocation("j", "a0", "a1")],
            groups=(group("cs101"), replace(group("math"), guaranteed=1)),
        ),
        RequestsAhead(rule=Precedence.RELOCATED, count=1),
        id="one that was moved",
    ),
]


@pytest.mark.parametrize(("asked", "expected"), AHEAD)
def test_requests_ahead_and_the_rule_that_puts_them_there(
    asked: Snapshot, expected: RequestsAhead
) -> None:
    assert explained(asked).ahead == (expected,)


def test_requests_held_by_another_limit_are_not_ahead() -> None:
    asked = snapshot(
        pending("x", age=9),
        pending("r", 2, group="math"),
        groups=(group("cs101", maximum=1), group("math")),
        allocations=HALF_FREE,
    )

    assert explained(asked).ahead == ()


def test_starting_and_unknown_requests_have_no_explanation() -> None:
    assert explained_if_it_waits(snapshot(pending("r")), "r") is None
    assert explained_if_it_waits(snapshot(), "r") is None


def expected(plan: Plan, request_id: str) -> float:
    if request_id in {start.request_id for start in plan.starts}:
        return NOW
    wait = next(each for each in plan.waits if each.request_id == request_id)
    assert wait.estimate is not None
    return wait.estimate.at


def check_a_suggestion_that_is_followed_comes_true(
    asked: Snapshot, other: str, choice: int
) -> None:
    asked = carried_out(asked, decide(asked, NOW))
    plan = decide(asked, NOW)
    if plan.starts or not plan.waits:
        return
    wait = plan.waits[choice % len(plan.waits)]
    found = explained(asked, wait.request_id, (other,))
    assert found.wait == wait
    for suggestion in found.suggestions:
        followed = changed(found.request, suggestion)
        waits = [followed if each is found.request else each for each in asked.pending]
        after = decide(replace(asked, pending=tuple(waits)), NOW)
        if suggestion.expected is None:
            assert followed.id in {start.request_id for start in after.starts}
        else:
            assert expected(after, followed.id) == suggestion.expected.at
            assert expected(after, followed.id) < expected(plan, followed.id)


ASKED = st.one_of(
    st.tuples(strategies.snapshots(), st.sampled_from(("cs101", "math"))),
    st.tuples(rich.snapshots(), st.sampled_from(rich.NAMES)),
)
"""A snapshot, and another group of the owner of the explained request."""


@given(ASKED, st.integers(0, 15))
def test_a_followed_suggestion_keeps_its_promise(asked: tuple[Snapshot, str], choice: int) -> None:
    check_a_suggestion_that_is_followed_comes_true(*asked, choice)


def carried_out(asked: Snapshot, plan: Plan) -> Snapshot:
    """Return the snapshot after the plan: starts are running, and victims have their notices."""
    started_with = {start.request_id: start.devices for start in plan.starts}
    runs = [
        allocation_of(each, Placement(devices=started_with[each.id], share=each.share), now=NOW)
        for each in asked.pending
        if each.id in started_with
    ]
    left = tuple(each for each in asked.pending if each.id not in started_with)
    victims = {stop.request_id for stop in plan.stops}
    held = [
        replace(each, leaving=each.leaving or each.request_id in victims)
        for each in asked.allocations
    ]
    return replace(asked, pending=left, allocations=(*held, *runs))
