"""With an engine that does not answer, requests for it wait with that reason, and none fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.controller.retries import MAX_ATTEMPTS
from carrel.hub.interfaces.backend import NodeState
from carrel.hub.inventory.pool import PoolQueries
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.requests.jobs import JobService
from carrel.hub.schemas import RequestOut

from ..doubles import STUDENT1, device
from ..requests.samples import job
from ..world import World

DOWN = "The Docker engine on local does not answer."


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.over(tmp_path)


def waits(world: World, request: RequestOut) -> str:
    found = world.see(request)
    assert found.wait is not None
    return found.wait.sentence


@pytest.mark.parametrize("devices", [0, 1])
def test_requests_for_an_engine_that_does_not_answer_wait_with_that_reason(
    world: World, devices: int
) -> None:
    world.backend.machines = (NodeState(name="local", why_not=DOWN),)
    made = JobService(world.context).submit(STUDENT1, job(devices=devices))
    world.settle(3)
    assert world.see(made).state == "queued"
    assert DOWN in waits(world, made)
    world.backend.machines = (NodeState(name="local"),)
    world.settle(2)
    assert world.see(made).state == "starting"


def test_devices_of_an_engine_that_does_not_answer_are_unreachable(world: World) -> None:
    world.backend.machines = (NodeState(name="local", why_not=DOWN),)
    world.settle()
    assert {
        (each.state, each.why) for each in PoolQueries.of(world.context).pool(STUDENT1).devices
    } == {("gone", DOWN)}
    world.backend.machines = (NodeState(name="local"),)
    world.settle()
    assert {each.state for each in PoolQueries.of(world.context).pool(STUDENT1).devices} == {"free"}


def test_other_machines_continue(world: World) -> None:
    world.backend.devices = (device(0, node="local"), replace(device(1, node="n2"), id="SIM-n2"))
    world.backend.machines = (NodeState(name="local", why_not=DOWN), NodeState(name="n2"))
    world.settle()
    world.loop.inventory()
    made = JobService(world.context).submit(STUDENT1, job(devices=1))
    world.settle(2)
    lease = world.see(made).lease
    assert lease is not None
    assert [each.node for each in lease.devices] == ["n2"]
    assert world.backend.attempts[lease.id].order.node == "n2"


def test_starts_without_an_answer_do_not_count_as_failed(world: World) -> None:
    made = JobService(world.context).submit(STUDENT1, job(devices=1))
    for _ in range(MAX_ATTEMPTS + 1):
        world.backend.silent = True
        world.settle(2)
        assert world.see(made).state == "starting"
        world.backend.silent = False
        world.settle()
    world.settle()
    world.claim(made)
    assert world.see(made).state == "running"


def test_a_container_killed_for_memory_fails_its_job_with_that_cause(world: World) -> None:
    made = world.running_job()
    cause = Cause(code=CauseCode.OUT_OF_MEMORY, message="Killed for memory: too much.")
    world.backend.end(world.lease(made), exit_status=-9, cause=cause)
    world.settle()
    ended = world.see(made)
    assert ended.cause is not None
    assert ended.state == "failed"
    assert ended.cause.message.startswith(cause.message)


def test_containers_without_a_lease_are_removed(world: World) -> None:
    made = world.running_job()
    lease = world.lease(made)
    world.backend.attempts["j-of-old.1"] = replace(world.backend.attempts[lease])
    world.clock.pass_(60)
    world.settle(2)
    assert not world.backend.attempts["j-of-old.1"].alive
    assert world.backend.attempts[lease].alive
