"""Incremental steps give the same decisions as ``decide``, after any events."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.cycle.incremental import (
    AllocationEnded,
    AllocationStarted,
    BudgetsChanged,
    Event,
    RequestQueued,
    RequestWithdrawn,
    SchedulerState,
    UsageChanged,
    step,
)
from carrel.hub.scheduling.model.snapshot import (
    DecayedUsage,
    GangRole,
    Health,
    PendingRequest,
    PriorityClass,
    ReservedSpan,
    Snapshot,
)

from ....benchmarks.decide import Days
from ....benchmarks.scenario import NOW as BEGINNING
from ....benchmarks.scenario import Scenario, Size
from .. import rich
from ..values import HOUR, NOW, allocation, group, node, pending


class World:
    """The reference for a scheduler state: a snapshot that is built again for each event."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.requests = {request.id: request for request in snapshot.pending}

    def hears(self, event: Event) -> None:
        now = self.snapshot
        match event:
            case RequestQueued(request=request):
                self.requests[request.id] = request
                self.snapshot = replace(now, pending=(*now.pending, request))
            case RequestWithdrawn(request_id=gone):
                self.snapshot = replace(
                    now, pending=tuple(each for each in now.pending if each.id != gone)
                )
            case AllocationEnded(request_id=gone):
                self.snapshot = replace(now, allocations=self.others(gone))
            case AllocationStarted(allocation=allocation):
                others = self.others(allocation.request_id)
                self.snapshot = replace(now, allocations=(*others, allocation))
            case UsageChanged(use=use):
                known = {(each.group, each.owner): each for each in (*now.use, *use)}
                self.snapshot = replace(now, use=tuple(known.values()))
            case BudgetsChanged(budgets=budgets):
                self.snapshot = replace(now, budgets=budgets)

    def others(self, gone: str) -> tuple[rich.Allocation, ...]:
        return tuple(each for each in self.snapshot.allocations if each.request_id != gone)


KINDS = ("submit", "free", "free", "withdraw", "change", "use", "budget")


def happenings(draw: st.DrawFn, world: World, turn: int) -> list[Event]:
    """Generate up to three events."""
    events: list[Event] = []
    for number in range(draw(st.integers(0, 3))):
        snapshot = world.snapshot
        kind = draw(st.sampled_from(KINDS))
        event: Event | None = None
        if kind == "submit":
            event = RequestQueued(request=draw(rich.requests(f"new{turn}-{number}")))
        elif kind == "withdraw" and snapshot.pending:
            event = RequestWithdrawn(request_id=draw(st.sampled_from(snapshot.pending)).id)
        elif kind == "free" and snapshot.allocations:
            event = AllocationEnded(
                request_id=draw(st.sampled_from(snapshot.allocations)).request_id
            )
        elif kind == "change" and snapshot.allocations:
            allocation = draw(st.sampled_from(snapshot.allocations))
            event = AllocationStarted(
                allocation=replace(allocation, leaving=True, until=allocation.until + 600)
            )
        elif kind == "use":
            used = DecayedUsage(
                group="cs101", owner="ada", device_seconds=draw(st.integers(0, 9)) * 900.0
            )
            event = UsageChanged(use=(used,))
        elif kind == "budget":
            event = BudgetsChanged(budgets=draw(rich.budgets()))
        if event is not None:
            events.append(event)
            world.hears(event)
    return events


@st.composite
def lives(draw: st.DrawFn) -> None:
    """Generate a snapshot and several steps; each step is compared immediately."""
    world = World(draw(st.one_of(rich.snapshots(), rich.in_pieces())))
    now = NOW
    scheduler = SchedulerState(world.snapshot, now)
    for turn in range(draw(st.integers(1, 5))):
        now += draw(st.sampled_from((0.0, 1.0, 600.0, 3600.0)))
        events = happenings(draw, world, turn)
        scheduler.apply(events, now)
        same(scheduler.snapshot(), world.snapshot)
        world.snapshot = scheduler.snapshot()
        plan = decide(world.snapshot, now)
        delta = scheduler.decide()
        assert (delta.starts, delta.stops) == (plan.starts, plan.stops)
        world.snapshot = scheduler.snapshot()


def same(one: Snapshot, other: Snapshot) -> None:
    """Compare, without the budget that running work may still use: the state tracks that."""

    def parts(snapshot: Snapshot) -> tuple[object, ...]:
        return (
            {request.id: request for request in snapshot.pending},
            {allocation.request_id: allocation for allocation in snapshot.allocations},
            {(use.group, use.owner): use for use in snapshot.use},
            {left.group: (left.budget, left.used) for left in snapshot.budgets},
        )

    assert parts(one) == parts(other)


@given(lives())
def test_a_step_starts_and_stops_what_the_whole_decision_would(life: None) -> None:
    """The comparison is part of the generation, because later events depend on it."""


def test_a_gang_that_would_like_more_than_the_pool_has_starts_with_fewer_members() -> None:
    worker = GangRole(name="worker", devices=2, wanted=2, minimum=1)
    request = replace(pending("gang", 4), gang=(worker,))
    snapshot = Snapshot(devices=node("a", 2), groups=(group(),), pending=(request,))

    starts = SchedulerState(snapshot, NOW).decide().starts

    assert [start.devices for start in starts] == [("a0", "a1")]
    assert starts == decide(snapshot, NOW).starts


@pytest.mark.slow
def test_steps_equal_whole_decisions_over_a_long_queue() -> None:
    """With a long queue, the scheduler checks at intervals whether any request could start."""
    size = Size(devices=64, pending=500, users=60, groups=8)
    scenario = Scenario(3, size)
    snapshot = scenario.snapshot()
    days, scheduler = Days(scenario, snapshot, 3), SchedulerState(snapshot, BEGINNING)
    for turn in range(1000):
        events, now = days.next(turn)
        scheduler.apply(events, now)
        plan = decide(scheduler.snapshot(), now)
        delta = scheduler.decide()
        assert (delta.starts, delta.stops) == (plan.starts, plan.stops)
        days.hear(delta)


def test_the_head_may_wait_in_a_full_group_that_is_as_large_as_the_pool() -> None:
    """One of the devices of the group is unhealthy, and another one is free."""
    *good, broken = node("a", 4)
    snapshot = Snapshot(
        devices=(*good, replace(broken, health=Health.BUSY)),
        groups=(group("cs", maximum=3), group("math", maximum=12)),
        allocations=(
            allocation("run0", "a0", "a2", group="cs"),
            allocation("run1", "a3", group="cs"),
        ),
        pending=(
            pending("first", 2, group="cs", age=60.0),
            pending("second", 1, group="math", seconds=2 * HOUR),
        ),
        use=(DecayedUsage(group="math", owner="second", device_seconds=99 * HOUR),),
    )

    _, delta = step(SchedulerState(snapshot, NOW), [], NOW)

    plan = decide(snapshot, NOW)
    assert [wait.request_id for wait in plan.waits] == ["first", "second"]
    assert (delta.starts, delta.stops) == (plan.starts, plan.stops)


def test_a_full_group_takes_its_turn_in_a_reservation_all_the_same() -> None:
    snapshot = Snapshot(
        devices=node("a", 3),
        groups=(
            group("cs"),
            group("cs101", parent="cs", maximum=1),
            group("cs102", parent="cs"),
            group("math"),
        ),
        allocations=(allocation("run", "a2", group="cs101"),),
        pending=(
            pending("first", 1, group="cs101", age=90.0),
            pending("later", 1, group="cs102", age=30.0),
            pending("other", 1, group="math", age=60.0),
        ),
        reserved=(
            ReservedSpan(id="lab", group="cs", devices=2, starts_at=NOW - HOUR, ends_at=NOW + HOUR),
        ),
        use=(DecayedUsage(group="cs102", owner="later", device_seconds=99 * HOUR),),
    )

    _, delta = step(SchedulerState(snapshot, NOW), [], NOW)

    assert [start.request_id for start in delta.starts] == ["other", "later"]
    assert delta.starts == decide(snapshot, NOW).starts


def test_the_time_of_the_first_under_a_limit_does_not_depend_on_the_startable_index() -> None:
    """``big`` waits for a victim of ``claim``, which is known only when ``small`` is served; a
    query of the index must not fix the time of ``big`` earlier."""
    lent = replace(allocation("lent", "b0", group="lab", owner="ada", ends_in=2 * HOUR))
    snapshot = Snapshot(
        devices=(*node("a", 2), *node("b", 1, model="A100")),
        groups=(
            group("lab", per_user=2),
            replace(group("cs"), guaranteed=1),
            group("math"),
        ),
        allocations=(
            allocation("long", "a1", group="math", ends_in=3 * HOUR),
            replace(lent, preemptible=True),
        ),
        pending=(
            pending("head", 2, group="math", priority=rich.PriorityClass.INTERACTIVE),
            pending("claim", 1, group="cs", model="A100"),
            pending("big", 2, group="lab", owner="ada", age=HOUR),
            *(pending(f"other{n}", 2, group="math") for n in range(60)),
            pending(
                "small",
                group="lab",
                owner="ada",
                model="H200",
                priority=rich.PriorityClass.OPPORTUNISTIC,
            ),
        ),
    )

    _, delta = step(SchedulerState(snapshot, NOW), [], NOW)

    plan = decide(snapshot, NOW)
    assert (delta.starts, delta.stops) == (plan.starts, plan.stops)
    assert (len(plan.starts), [stop.request_id for stop in plan.stops]) == (0, ["lent"])


def test_a_step_with_events_is_the_two_halves_in_one() -> None:
    asked = PendingRequest(
        id="r",
        kind=rich.Kind.JOB,
        owner="ada",
        group="cs",
        devices=0,
        seconds=60,
        submitted_at=NOW,
    )
    snapshot = Snapshot(groups=(rich.Group(name="cs"),))
    scheduler, delta = step(SchedulerState(snapshot, NOW), [RequestQueued(request=asked)], NOW)
    assert [start.request_id for start in delta.starts] == ["r"]
    assert scheduler.snapshot().pending == ()
    assert [allocation.request_id for allocation in scheduler.snapshot().allocations] == ["r"]


def reclaiming(*waits: PendingRequest) -> Snapshot:
    """a0 is free for A, which also preempts lent devices, and b0 for the head of the queue."""
    return Snapshot(
        devices=(*node("a", 2), *node("b", 2)),
        groups=(
            replace(group("A", maximum=12), guaranteed=2),
            *(group(name, maximum=12) for name in ("L", "M", "X", "Y")),
        ),
        allocations=(
            replace(allocation("lent", "a1", group="L", ends_in=10 * HOUR), preemptible=True),
            allocation("long", "b1", group="M"),
        ),
        pending=(
            replace(
                pending("head", 2, group="M", seconds=600.0, priority=PriorityClass.INTERACTIVE),
                nodes=frozenset("b"),
                preemptible=True,
            ),
            pending("claim", 2, group="A", seconds=600.0),
            *waits,
        ),
        use=(DecayedUsage(group="Y", owner="for good", device_seconds=9e5),),
    )


LATER = replace(pending("later", group="X", seconds=10 * HOUR), preemptible=True)
FOR_GOOD = pending("for good", group="Y", owner="for good", seconds=600.0)


@pytest.mark.parametrize("queue", [(FOR_GOOD, LATER), (LATER, FOR_GOOD)])
def test_what_is_set_aside_for_a_guarantee_counts_as_free_for_it(
    queue: tuple[PendingRequest, ...],
) -> None:
    """Otherwise the order of evaluation would decide whether others could reclaim their quota."""
    snapshot = reclaiming(*queue)

    _, delta = step(SchedulerState(snapshot, NOW), [], NOW)

    assert delta.starts == decide(snapshot, NOW).starts


def test_what_was_set_aside_is_forgotten_with_the_next_step() -> None:
    scheduler, _ = step(SchedulerState(reclaiming(LATER, FOR_GOOD), NOW), [], NOW)

    scheduler.apply([RequestWithdrawn(request_id="later")], NOW + 1)

    plan = decide(scheduler.snapshot(), NOW + 1)
    assert scheduler.decide().starts == plan.starts


def test_a_request_refused_behind_the_head_hides_no_shorter_one_of_its_owner() -> None:
    """Of two equal requests, the one with the earlier expected end may have the longer limit."""
    long = replace(pending("long", group="math", owner="u", seconds=8 * HOUR), expected=1.5 * HOUR)
    others = (pending(f"c{at}", group="math", seconds=4 * HOUR, age=100.0 - at) for at in range(12))
    snapshot = Snapshot(
        devices=(*node("a", 4), *node("b", 3)),
        groups=(group("cs"), group("math"), group("lab")),
        pending=(
            pending("head", 4, group="cs", priority=PriorityClass.INTERACTIVE, seconds=10 * HOUR),
            *others,
            long,
            pending("short", group="math", owner="u", seconds=2 * HOUR),
        ),
        allocations=(
            allocation("run0", "a0", group="math"),
            allocation("run1", "b2", group="math", ends_in=2 * HOUR),
        ),
        reserved=(
            ReservedSpan(
                id="lab", group="lab", devices=2, starts_at=NOW + 3 * HOUR, ends_at=NOW + 9 * HOUR
            ),
        ),
    )
    _, delta = step(SchedulerState(snapshot, NOW), [], NOW)
    plan = decide(snapshot, NOW)
    assert {start.request_id for start in plan.starts} == {"c0", "short"}
    assert (delta.starts, delta.stops) == (plan.starts, plan.stops)
