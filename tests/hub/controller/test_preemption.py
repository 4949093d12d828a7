"""Preemption, with the service killed at every stage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.hub.controller.loop import Loop
from carrel.hub.controller.preemption import PreemptionController
from carrel.hub.records.events import NewEvent
from carrel.hub.records.leases import LeaseRecord
from carrel.hub.records.requests import RequestRecord
from carrel.hub.requests.attempt_reports import AttemptReports
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.plan import Reason, Start, Stop
from carrel.hub.schemas import RequestOut
from carrel.spawners.fake import FakeBackend

from ...stores import new_store
from ..doubles import STUDENT2, Clock, FakeHub, build, device, no_time
from ..requests.samples import job
from ..world import World, charged

GRACE = 120.0
FIRST_ATTEMPT = [*("queued", "granted", "starting", "running", "stopping", "preempted", "queued")]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    clock = Clock()
    hub = FakeHub()
    backend = FakeBackend(devices=(device(0),), clock=clock)
    context = build(new_store(), backend, hub, clock, tmp_path, devices=1)
    made = World(context, backend, hub, clock, Loop(context, node="local", decision_clock=no_time))
    yield made
    made.loop.close()


def ask(world: World, victim: RequestOut, waits: RequestOut, *, moved: bool = False) -> None:
    stop = Stop(
        request_id=victim.id,
        for_request=waits.id,
        why=Reason.GUARANTEE,
        group="cs102",
        lost=1.0,
        relocated=moved,
    )
    PreemptionController(world.context).give_notices([stop], world.clock())


def pair(world: World) -> tuple[RequestOut, RequestOut]:
    """Return a victim on the only device, and its preemptor."""
    runs = world.running_job()
    waits = JobService(world.context).submit(STUDENT2, job())
    world.settle()
    ask(world, runs, waits)
    return runs, waits


def went(world: World, request: RequestOut) -> list[object]:
    """Return the states of the first attempt, until it is queued again."""
    events = world.context.store.events(request.id, kinds=frozenset({"state"}))
    return [event.data["state"] for event in events][: len(FIRST_ATTEMPT)]


def notices(world: World) -> list[float]:
    return [notice.stops_at for notice in world.backend.notices.values()]


def test_a_notice_is_shown_and_sent_while_the_job_runs(world: World) -> None:
    runs, _ = pair(world)
    world.settle()
    shown = world.see(runs)
    assert shown.state == "running"
    assert shown.warning is not None
    assert (shown.warning.stops_at, shown.warning.final) == (world.clock.now + GRACE, True)
    assert shown.warning.message == (
        "cs102 reclaims devices of its guaranteed quota that cs101 borrows. "
        "This request is then queued again at its old position."
    )
    assert notices(world) == [world.clock.now + GRACE]


def test_the_victim_is_queued_again_after_the_grace_period(world: World) -> None:
    runs, waits = pair(world)
    world.clock.pass_(GRACE - 1)
    world.settle()
    assert world.see(runs).state == "running"
    world.clock.pass_(1)
    world.settle(4)
    assert went(world, runs) == FIRST_ATTEMPT
    assert charged(world, runs) == pytest.approx(GRACE)
    assert world.see(runs).warning is None
    # The device is free: one of the two requests gets it.
    assert {world.see(runs).state, world.see(waits).state} == {"starting", "queued"}


def test_relocated_work_has_its_own_notice_and_is_queued_first(world: World) -> None:
    runs = world.running_job()
    waits = JobService(world.context).submit(STUDENT2, job())
    world.settle()
    ask(world, runs, waits, moved=True)
    world.settle()
    (notice,) = world.backend.notices.values()
    assert notice.message == (
        "cs102 needs several devices of one node for its guaranteed quota, and this request uses "
        "some of them. It is relocated: it is queued again ahead of all others and continues on "
        "other devices."
    )
    world.clock.pass_(GRACE)
    while world.see(runs).state != "queued":
        world.settle()
    assert world.context.store.request(runs.id).moved_for == waits.id


@pytest.mark.parametrize("killed", ["asked", "told", "stopping"])
def test_a_preemption_continues_after_the_service_was_killed(world: World, killed: str) -> None:
    runs, _ = pair(world)
    if killed == "asked":
        world.restart()
    world.settle()
    assert len(notices(world)) == 1
    if killed == "told":
        world.restart()
        world.settle()
    world.clock.pass_(GRACE)
    if killed == "stopping":
        PreemptionController(world.context).reconcile(pairs_of(world), world.clock())
        assert world.see(runs).state == "stopping"
        world.restart()
    world.settle(4)
    assert went(world, runs) == FIRST_ATTEMPT
    assert charged(world, runs) == pytest.approx(GRACE)


def pairs_of(world: World) -> list[tuple[LeaseRecord, RequestRecord]]:
    (lease,) = world.context.store.leases()
    return [(lease, world.context.store.request(lease.request_id))]


def test_a_victim_that_ends_during_the_grace_period_has_succeeded(world: World) -> None:
    runs, waits = pair(world)
    world.settle()
    world.report(runs, "ended", code="succeeded", message="All 3 cells ran.")
    world.backend.end(world.lease(runs))
    world.clock.pass_(GRACE)
    world.settle(3)
    assert world.see(runs).state == "succeeded"
    assert world.see(waits).state == "starting"


def test_a_notice_without_a_preemptor_is_withdrawn(world: World) -> None:
    runs, waits = pair(world)
    world.settle()
    RequestTermination(world.context).cancel(STUDENT2, waits.id)
    world.settle(2)
    assert world.see(runs).warning is None
    assert notices(world) == []
    world.clock.pass_(GRACE + 1)
    world.settle(2)
    assert world.see(runs).state == "running"


def test_a_victim_that_has_not_started_is_queued_immediately(world: World) -> None:
    world.backend.refuse_starts = "not now"
    made = JobService(world.context).submit(STUDENT2, job())
    store, now = world.context.store, world.clock()
    store.grant([Start(request_id=made.id, devices=("SIM-0",))], now=now, lease_seconds=30)
    ask(world, made, JobService(world.context).submit(STUDENT2, job()))
    assert world.see(made).state == "queued"
    assert charged(world, made) == 0


def test_a_job_reports_its_checkpoint(world: World) -> None:
    runs = world.running_job()
    event = NewEvent(seq=1, at=world.clock.now, kind="saved")
    AttemptReports(world.context).store_events(world.lease(runs), [event])
    assert world.context.store.allocations()[0].saved_at == world.clock.now
