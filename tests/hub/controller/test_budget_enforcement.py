"""Budgets during running work: display, warnings, and the stop at the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.controller.loop import Loop
from carrel.hub.errors import OverMaximum
from carrel.hub.groups.membership import Membership
from carrel.hub.groups.quotas import GroupQuotas
from carrel.hub.requests.explanation import WaitExplanations
from carrel.hub.requests.jobs import JobService
from carrel.hub.scheduling.model.snapshot import Budget, Group, Period
from carrel.hub.schemas import RequestOut
from carrel.hub.usage.budgets import BudgetQueries
from carrel.spawners.fake import FakeBackend

from ...stores import new_store
from ..doubles import ADMIN, STRANGER, STUDENT1, Clock, FakeHub, build, device, no_time
from ..requests.samples import job
from ..world import World

GRACE = 120.0
MONDAY = 1_795_392_000.0  # 2026-11-23


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    clock = Clock(now=MONDAY + 3600)
    hub = FakeHub()
    backend = FakeBackend(devices=(device(0), device(1)), clock=clock)
    context = build(new_store(), backend, hub, clock, tmp_path)
    made = World(context, backend, hub, clock, Loop(context, node="local", decision_clock=no_time))
    yield made
    made.loop.close()


def give(world: World, device_seconds: float, period: Period = Period.WEEK) -> Group:
    before = world.context.store.group("cs101")
    after = replace(before, budget=Budget(device_seconds=device_seconds, period=period))
    world.context.store.put_group(after)
    return after


def live(world: World, seconds: float) -> None:
    """Let time pass, with heartbeats."""
    world.clock.pass_(seconds)
    world.settle()
    world.clock.pass_(61)
    world.settle(2)


def shown(world: World) -> tuple[float, float, float, str]:
    (budget,) = BudgetQueries(
        world.context.store, world.context.clock, Membership.of(world.context)
    ).budgets(STUDENT1)
    return budget.used, budget.running, budget.left, budget.warning


def test_a_budget_is_shown_to_its_group_only(world: World) -> None:
    runs = world.running_job()
    give(world, 1000)
    assert shown(world) == (0, runs.seconds, 1000, "")
    world.clock.pass_(100)
    world.settle()
    world.context.store.charge([world.lease(runs)], now=world.clock())
    assert shown(world) == (100, runs.seconds - 100, 900, "")
    (for_admin,) = BudgetQueries(
        world.context.store, world.context.clock, Membership.of(world.context)
    ).budgets(ADMIN)
    assert for_admin.used == 100
    assert for_admin.ends_at == MONDAY + 7 * 86400
    assert (
        BudgetQueries(
            world.context.store, world.context.clock, Membership.of(world.context)
        ).budgets(STRANGER)
        == []
    )


def test_users_are_warned_at_80_percent_and_at_the_end(world: World) -> None:
    world.running_job()
    give(world, 1000)
    for seconds, warning in (
        (799, ""),
        (1, "cs101 has used 80% of its budget for this week."),
        (
            200,
            "cs101 has used up its budget for this week: no request starts, and running "
            "requests are stopped after a notice.",
        ),
    ):
        world.clock.pass_(seconds)
        (lease,) = world.context.store.leases()
        world.context.store.renew({lease.id: world.clock()}, until=world.clock() + 30)
        world.context.store.charge([lease.id], now=world.clock())
        assert shown(world)[3] == warning


def test_running_requests_are_warned_once_of_a_low_budget(world: World) -> None:
    runs = world.running_job()
    give(world, 600)
    live(world, 440)
    world.restart()
    world.clock.pass_(10)
    world.settle()
    events = world.context.store.events(runs.id, kinds=frozenset({"budget_low"}))
    (told,) = events
    assert str(told.data["message"]).startswith("cs101 has used 8")
    assert (told.data["group"], told.data["of"]) == ("cs101", 600)
    assert world.see(runs).warning is None


def test_running_jobs_are_checkpointed_and_stopped_at_the_end_of_a_budget(world: World) -> None:
    runs = world.running_job()
    give(world, 300)
    live(world, 300)
    warned = world.see(runs)
    assert warned.state == "running"
    assert warned.warning is not None
    assert warned.warning.final
    assert "cs101 has used up its budget" in warned.warning.message
    assert len(world.backend.notices) == 1
    world.restart()
    world.clock.pass_(GRACE)
    world.settle(4)
    ended = world.see(runs)
    assert ended.state == "cancelled"
    assert ended.cause is not None
    assert ended.cause.code == "budget"
    assert ended.cause.message == (
        "Stopped, as announced: cs101 has used up its budget for this period. Save your work."
    )


def test_a_session_is_warned_and_stopped_too(world: World) -> None:
    session = world.running_session()
    give(world, 300)
    live(world, 300)
    shown_ = world.see(session)
    assert shown_.warning is not None
    assert (shown_.warning.final, shown_.warning.can_keep) == (True, False)
    world.clock.pass_(GRACE)
    world.settle(3)
    assert world.see(session).state in ("stopping", "cancelled")


def test_a_larger_budget_withdraws_the_notice(world: World) -> None:
    runs = world.running_job()
    give(world, 300)
    live(world, 300)
    give(world, 5000)
    world.clock.pass_(10)
    world.settle()
    assert world.see(runs).warning is None
    world.clock.pass_(GRACE)
    world.settle()
    assert world.see(runs).state == "running"


def test_work_on_cpu_and_between_terms_continues(world: World) -> None:
    runs: RequestOut = world.running_job()
    give(world, 300, Period.TERM)
    world.clock.pass_(10)
    world.settle()
    assert world.see(runs).warning is None
    assert shown(world)[3] == "cs101 has no budget between two terms, so its requests do not start."


def test_the_preview_shows_the_effect_of_a_budget(world: World) -> None:
    world.running_job()
    live(world, 300)
    tree = GroupQuotas(world.context.store, world.clock)
    group = world.context.store.group("cs101")
    low = replace(group, budget=Budget(device_seconds=60, period=Period.WEEK))
    assert any("has already used 0.1 device-hours of these 0.02" in s for s in tree.preview(low))
    term = replace(group, budget=Budget(device_seconds=60, period=Period.TERM))
    assert any("There is no current term" in sentence for sentence in tree.preview(term))


def test_a_request_above_the_whole_budget_is_refused_and_others_wait(
    world: World,
) -> None:
    running = world.running_job()
    give(world, running.seconds)  # it holds all of it, up to its time limit
    with pytest.raises(OverMaximum, match=r"budget of 0\.2 device-hours in a week") as refused:
        JobService(world.context).submit(STUDENT1, job(devices=1, seconds=running.seconds + 60))
    assert refused.value.accepted == "Ask for at most 10 minutes."
    waits = JobService(world.context).submit(STUDENT1, job(devices=1, seconds=running.seconds))
    world.settle()
    why = WaitExplanations(world.context).why(STUDENT1, waits.id)
    assert why.sentences[:2] == [
        "Queued at position 1. cs101 has used up its budget for this period.",
        "cs101 has used 0.0 of its budget of 0.2 device-hours.",
    ]
    assert why.refills_at == MONDAY + 7 * 86400
    give(world, running.seconds, Period.TERM)
    without = WaitExplanations(world.context).why(STUDENT1, waits.id)
    assert without.sentences[1] == "cs101 has no budget now. No later term is defined."
    assert without.refills_at is None
