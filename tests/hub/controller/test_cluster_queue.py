"""A lease on a cluster with a queue of its own: charged from the cluster's start to its end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from carrel.hub.interfaces.backend import AttemptStatus, ProcessState
from carrel.hub.records.leases import Handle
from carrel.hub.requests.jobs import JobService
from carrel.hub.schemas import RequestOut
from carrel.spawners.fake import FakeBackend

from ..doubles import STUDENT1
from ..requests.samples import job
from ..world import World, charged, world

__all__ = ["world"]

WAITS = "It waits in Slurm's queue as job 7: jobs from outside Carrel use the node (Resources)."


def pending(world: World, made: RequestOut) -> None:
    world.backend.cluster[world.lease(made)] = AttemptStatus(
        life=ProcessState.ALIVE,
        handle=Handle(pid=7, started_at=world.clock.now),
        waiting=WAITS,
        expected_at=world.clock.now + 100,
    )


def submitted(world: World, seconds: int = 60) -> RequestOut:
    """Return a job that waits in the queue of the cluster."""
    made = JobService(world.context).submit(STUDENT1, job(devices=1, seconds=seconds))
    world.settle(2)
    pending(world, made)
    world.settle(2)
    return made


def ended(world: World, made: RequestOut, **found: object) -> None:
    world.backend.end(world.lease(made))
    world.backend.cluster[world.lease(made)] = AttemptStatus(life=ProcessState.DEAD, **found)
    world.settle(3)


def test_a_wait_in_the_cluster_is_told_and_neither_charged_nor_limited(world: World) -> None:
    made = submitted(world)
    for _ in range(20):
        world.clock.pass_(10)  # longer than the time limit
        world.settle()
    seen = world.see(made)
    assert seen.state == "starting"
    assert seen.wait is not None
    assert (seen.wait.reason, seen.wait.sentence) == ("cluster", WAITS)
    assert seen.wait.expected_at is not None
    assert seen.device_seconds < 6


def test_the_charge_is_the_time_between_the_start_and_the_end_in_the_cluster(world: World) -> None:
    made = submitted(world)
    world.clock.pass_(100)
    began = world.clock.now
    world.backend.cluster[world.lease(made)] = AttemptStatus(
        life=ProcessState.ALIVE, started_at=began
    )
    world.clock.pass_(1)
    world.settle()
    assert world.see(made).wait is None
    world.claim(made)
    world.clock.pass_(20)
    world.settle()
    world.report(made, "ended", code="succeeded", message="", details="")
    world.clock.pass_(3)
    ended(world, made, started_at=began, ended_at=began + 22, exit_status=0)
    seen = world.see(made)
    assert (seen.state, seen.device_seconds) == ("succeeded", 22)


def test_a_job_that_the_cluster_cancelled_in_its_queue_costs_nothing(world: World) -> None:
    made = submitted(world)
    world.clock.pass_(50)
    world.settle()
    ended(world, made, ended_at=0.0)
    assert world.see(made).device_seconds == 0


def test_a_job_whose_node_failed_is_queued_again_with_that_reason(world: World) -> None:
    made = submitted(world)
    began = world.clock.now
    world.backend.cluster[world.lease(made)] = AttemptStatus(
        life=ProcessState.ALIVE, started_at=began
    )
    world.settle()
    world.claim(made)
    world.clock.pass_(10)
    ended(world, made, started_at=began, ended_at=began + 9, lost="Its node failed.")
    events = world.context.store.events(made.id)
    assert any("Lost: Its node failed." in str(event.data.get("cause")) for event in events)
    assert world.see(made).state in ("queued", "starting")


def test_a_job_that_the_cluster_queues_again_is_lost_and_gets_a_new_attempt(world: World) -> None:
    made = submitted(world)
    first = world.lease(made)
    world.backend.cluster[first] = AttemptStatus(
        life=ProcessState.ALIVE, started_at=world.clock.now
    )
    world.settle()
    world.claim(made)
    world.clock.pass_(10)
    world.settle()
    pending(world, made)
    world.settle(3)
    assert not world.backend.attempts[first].alive
    events = world.context.store.events(made.id)
    causes = [str(event.data.get("cause")) for event in events]
    assert any("Lost: The cluster has queued its job again" in cause for cause in causes)
    assert (world.see(made).state, world.lease(made)) == ("starting", f"{made.id}.2")


def test_a_cluster_that_answers_late_is_charged_up_to_the_end_that_it_tells(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = submitted(world)
    began = world.clock.now
    world.backend.cluster[world.lease(made)] = AttemptStatus(
        life=ProcessState.ALIVE, started_at=began
    )
    world.settle()
    world.claim(made)
    world.report(made, "ended", code="succeeded", message="", details="")
    answer = type(world.backend).status

    def late(backend: FakeBackend, *arguments: Any, **more: Any) -> Any:
        world.clock.pass_(5)  # slurmctld comes up again meanwhile
        return answer(backend, *arguments, **more)

    monkeypatch.setattr(type(world.backend), "status", late)
    ends = world.clock.now + 4
    ended(world, made, started_at=began, ended_at=ends, exit_status=0)
    seen = world.see(made)
    assert (seen.state, seen.device_seconds) == ("succeeded", ends - began)


def test_an_attempt_that_never_reported_is_charged_as_the_cluster_does(world: World) -> None:
    made = submitted(world, seconds=600)
    first = world.lease(made)
    began = world.clock.now
    world.backend.cluster[first] = AttemptStatus(life=ProcessState.ALIVE, started_at=began)
    for _ in range(8):
        world.clock.pass_(10)
        world.settle()
    ended(world, made, started_at=began, ended_at=began + 75, lost="Its node failed.")
    assert charged(world, made) == 75


def test_an_attempt_that_the_accounting_lost_is_charged_to_its_last_sign_of_life(
    world: World,
) -> None:
    made = submitted(world)
    began = world.clock.now
    world.backend.cluster[world.lease(made)] = AttemptStatus(
        life=ProcessState.ALIVE, started_at=began, seen_at=began + 3
    )
    world.clock.pass_(10)
    world.settle()
    ended(world, made, started_at=began, lost="Slurm's controller crashed.")
    assert charged(world, made) == 3


def test_a_job_is_not_charged_past_the_time_at_which_the_cluster_listed_it(world: World) -> None:
    made = submitted(world, seconds=600)
    began = world.clock.now
    running = AttemptStatus(life=ProcessState.ALIVE, started_at=began)
    world.backend.cluster[world.lease(made)] = replace(running, seen_at=began)
    world.settle()
    world.claim(made)
    world.report(made, "ended", code="succeeded", message="", details="")
    world.clock.pass_(70)  # a charge is due, and the list is some seconds old
    world.backend.cluster[world.lease(made)] = replace(running, seen_at=began + 65)
    world.settle()
    assert charged(world, made) == 65
    ended(world, made, started_at=began, ended_at=began + 66, exit_status=0)
    assert charged(world, made) == 66


def test_nothing_is_charged_before_the_cluster_has_told_the_start(world: World) -> None:
    made = submitted(world, seconds=600)
    world.clock.pass_(3)
    # The runner reports itself while slurmctld is away, and the service starts again.
    world.backend.silent = True
    world.claim(made)
    world.restart()
    for _ in range(8):
        world.clock.pass_(10)
        world.settle()
    assert charged(world, made) == 0
    world.backend.silent = False
    began = world.clock.now - 75
    world.backend.cluster[world.lease(made)] = AttemptStatus(
        life=ProcessState.ALIVE, started_at=began
    )
    world.settle()
    world.report(made, "ended", code="succeeded", message="", details="")
    ended(world, made, started_at=began, ended_at=world.clock.now, exit_status=0)
    assert charged(world, made) == 75
