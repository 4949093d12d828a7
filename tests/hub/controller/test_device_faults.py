"""A failed device is quarantined with its evidence; its work is retried elsewhere, uncharged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.controller.loop import Loop
from carrel.hub.controller.retries import MAX_ATTEMPTS
from carrel.hub.records.audit import SERVICE, AuditAction, ChangeFilter
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.snapshot import Health, Mark, MarkKind
from carrel.hub.schemas import RequestOut

from ..doubles import STUDENT1, STUDENT2, device, no_time
from ..requests.samples import job
from ..world import World, charged, world

__all__ = ["world"]

LOST = "The device has fallen off the bus: the driver reports it as lost."
EVERY = ChangeFilter()


def fail(world: World, number: int = 0, health: Health = Health.GONE) -> None:
    """Let the engine report a fault, and the service read it."""
    world.backend.set_health(f"SIM-{number}", health, LOST)
    world.loop.inventory()


def held(world: World, request: RequestOut) -> list[str]:
    lease = world.see(request).lease
    return [device.id for device in lease.devices] if lease else []


@pytest.mark.parametrize("health", [Health.SICK, Health.GONE])
def test_a_job_on_a_failed_device_is_queued_again_in_its_old_place(
    world: World, health: Health
) -> None:
    made = world.running_job()
    world.clock.pass_(1)
    other = JobService(world.context).submit(STUDENT2, job(devices=1))
    world.clock.pass_(1)
    last = JobService(world.context).submit(STUDENT2, job(devices=1))
    world.settle()
    assert held(world, made) == ["SIM-0"]
    assert held(world, other) == ["SIM-1"]

    fail(world, health=health)
    world.settle(3)
    again = world.see(made)
    assert (again.state, again.wait and again.wait.place) == ("queued", 1)
    assert world.see(last).wait is not None

    world.claim(other)
    world.report(other, "ended", code="succeeded", message="", details="")
    world.backend.end(world.lease(other))
    world.settle(3)
    assert held(world, made) == ["SIM-1"]
    assert world.lease(made).endswith(".2")


def test_an_attempt_on_a_failed_device_is_credited_in_the_ledger(world: World) -> None:
    made = world.running_job()
    for _ in range(3):
        world.clock.pass_(70)
        world.settle()
    assert charged(world, made) > 100

    fail(world)
    world.settle(3)
    assert charged(world, made) == 0
    lines = world.context.store.ledger(request_id=made.id)
    assert [line.kind for line in lines][-1] == "credit"
    assert sum(line.device_seconds for line in lines) == 0
    assert (lines[-1].starts_at, lines[-1].ends_at) == (lines[0].starts_at, lines[-2].ends_at)


def test_the_history_names_the_fault_and_its_evidence(world: World) -> None:
    made = world.running_job()
    fail(world)
    world.settle(3)
    events = world.context.store.events(made.id)
    halted = [event for event in events if event.data.get("state") == "halted"]
    assert [event.data["cause"] for event in halted] == [
        {
            "code": "device_fault",
            "message": f"Its device Simulated GPU #0 (simulated) of local failed: {LOST} The job "
            "is queued again, first in its priority class, and this attempt is not charged.",
            "class": "infrastructure",
        }
    ]
    (change,) = world.context.store.changes(EVERY)
    assert (change.who, change.action, change.target, change.why) == (
        SERVICE,
        AuditAction.QUARANTINE,
        "SIM-0",
        LOST,
    )


def test_a_session_ends_with_the_cause_and_is_not_charged(world: World) -> None:
    made = world.running_session()
    world.clock.pass_(100)
    world.settle(2)
    fail(world)
    world.settle(3)
    ended = world.see(made)
    assert ended.state == "failed"
    assert ended.cause is not None
    assert ended.cause.code == "device_fault"
    assert ended.cause.details == LOST
    assert charged(world, made) == 0


def test_a_job_that_reports_its_end_during_the_stop_is_retried(
    world: World,
) -> None:
    made = world.running_job()
    fail(world)
    world.loop.cycle()
    world.report(made, "ended", code="cancelled", message="interrupted", details="")
    world.settle(3)
    assert world.see(made).state in ("queued", "granted", "starting")


def test_an_attempt_on_a_failed_device_does_not_count_as_a_retry(world: World) -> None:
    made = JobService(world.context).submit(STUDENT1, job(devices=1, retries=1))
    world.settle()
    world.claim(made)
    fail(world)
    world.settle(3)
    assert world.lease(made) == f"{made.id}.2"

    for attempt in (3, 3):
        world.claim(made)
        world.backend.end(world.lease(made))
        world.settle(3)
        assert world.lease(made) == f"{made.id}.{attempt}", "lost: one retry, and no second one"
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.code) == ("failed", "lost")


@pytest.mark.parametrize("started", [True, False])
def test_a_device_fault_does_not_count_as_a_failed_start(world: World, started: bool) -> None:
    made = (
        world.running_job()
        if started
        else JobService(world.context).submit(STUDENT1, job(devices=1))
    )
    if not started:
        world.loop.decide()  # Granted; the device fails before the start.
    fail(world)
    world.backend.refuse_starts = "No space left on device."
    world.settle_with_back_offs(9)
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.code) == ("failed", "start_failed")
    assert ended.lease is not None
    assert ended.lease.epoch == 1 + MAX_ATTEMPTS


def test_the_owner_can_cancel_a_job_on_a_failed_device(world: World) -> None:
    made = world.running_job()
    world.backend.attempts[world.lease(made)].stubborn = True
    fail(world)
    world.settle()
    RequestTermination(world.context).cancel(STUDENT1, made.id)
    world.backend.attempts[world.lease(made)].stubborn = False
    world.settle(3)
    assert world.see(made).state == "cancelled"


def test_a_device_that_recovers_stays_in_quarantine(world: World) -> None:
    fail(world, health=Health.SICK)
    world.backend.set_health("SIM-0", Health.OK)
    world.loop.inventory()
    world.loop.close()
    world.loop = Loop(world.context, node="local", decision_clock=no_time)
    world.loop.inventory()
    both = JobService(world.context).submit(STUDENT2, job(devices=2))
    one = JobService(world.context).submit(STUDENT1, job(devices=1))
    world.settle(2)
    waits = world.see(both).wait
    assert waits is not None
    assert waits.reason == "pool_too_small"
    assert held(world, one) == ["SIM-1"]


def test_a_job_that_failed_just_before_the_device_fault_is_retried(world: World) -> None:
    real = replace(device(0), simulated=False)
    world.backend.devices = (real, device(1))
    world.loop.inventory()
    made = world.running_job()
    assert held(world, made) == ["SIM-0"]
    world.clock.pass_(5)
    world.report(made, "ended", code="cell_error", message="CUDA error", details="")
    world.backend.set_health("SIM-0", Health.GONE, LOST)
    world.backend.end(world.lease(made))
    world.settle(4)
    assert world.see(made).state in ("queued", "granted", "starting", "running")
    assert held(world, made) == ["SIM-1"]


def test_a_job_that_failed_on_a_healthy_device_is_not_retried(world: World) -> None:
    world.backend.devices = (replace(device(0), simulated=False), device(1))
    world.loop.inventory()
    made = world.running_job()
    world.clock.pass_(5)
    world.report(made, "ended", code="cell_error", message="ZeroDivisionError", details="")
    world.backend.end(world.lease(made))
    world.settle(4)
    assert world.see(made).state == "failed"


def test_a_device_that_was_only_missing_returns_by_itself(world: World) -> None:
    world.backend.devices = (device(1),)
    world.loop.inventory()
    world.backend.devices = (device(0), device(1))
    world.loop.inventory()
    assert world.context.store.marks() == ()
    assert all(each.schedulable for each in world.context.store.devices())


def drain(world: World, target: str, until: float | None = None) -> None:
    mark = Mark(
        target=target,
        kind=MarkKind.DRAIN,
        since=world.clock.now,
        by="admin",
        until=until,
        why="fan",
    )
    world.context.store.put_mark(mark)


@pytest.mark.parametrize("target", ["SIM-0", "local"])
def test_a_drain_does_not_stop_running_work(world: World, target: str) -> None:
    made = world.running_job()
    drain(world, target)
    world.clock.pass_(300)
    world.settle(3)
    assert world.see(made).state == "running"


@pytest.mark.parametrize("target", ["SIM-0", "local"])
def test_a_drain_stops_remaining_work_at_its_date_and_charges_it(world: World, target: str) -> None:
    made = world.running_job()
    drain(world, target, world.clock.now + 300)
    for _ in range(3):
        world.clock.pass_(100)
        world.settle(3)
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.code) == ("cancelled", "drained")
    assert charged(world, made) > 200


def test_nothing_starts_on_a_drained_node_not_even_on_cpu(world: World) -> None:
    drain(world, "local")
    made = JobService(world.context).submit(STUDENT1, job(devices=0))
    world.settle(2)
    seen = world.see(made)
    assert (seen.state, seen.wait and seen.wait.reason) == ("queued", "draining")
    world.context.store.remove_mark("local", MarkKind.DRAIN)
    world.settle(2)
    assert world.see(made).state == "starting"
