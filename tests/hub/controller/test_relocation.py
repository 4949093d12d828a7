"""Relocation of a job within its guaranteed quota, from the notice to the new start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.interfaces.backend import NodeState
from carrel.hub.requests.explanation import WaitExplanations
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.schemas import RequestOut

from ..doubles import STUDENT1, STUDENT2, device
from ..requests.samples import job
from ..world import World

GRACE = 120.0


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two machines with two devices each; cs101 and lab are guaranteed two devices each."""
    made = World.over(tmp_path)
    made.backend.devices = tuple(
        replace(device(number, node=node), id=f"{node}-{number}")
        for node in ("far", "local")
        for number in range(2)
    )
    made.backend.machines = (NodeState(name="local"), NodeState(name="far"))
    for name in ("cs101", "lab"):
        made.context.store.put_group(
            Group(name=name, max_devices=4, max_devices_per_user=4, guaranteed=2)
        )
    made.hub.members = {"cs101": {"student1"}, "lab": {"student2"}}
    made.settle()
    made.loop.inventory()
    return made


def on(world: World, request: RequestOut) -> str:
    """Return the machine of a running or starting job."""
    seen = world.see(request)
    return seen.lease.node if seen.lease and seen.state in {"starting", "running"} else ""


def in_pieces(world: World) -> tuple[RequestOut, RequestOut]:
    """Fragment the free devices: a job of lab runs on each machine, another on each has ended."""
    made = [JobService(world.context).submit(STUDENT2, job(group="lab")) for _ in range(4)]
    world.settle()
    for each in made:
        world.claim(each)
    by_node: dict[str, list[RequestOut]] = {}
    for each in made:
        by_node.setdefault(on(world, each), []).append(each)
    for _, ends in by_node.values():
        RequestTermination(world.context).cancel(STUDENT2, ends.id)
    world.settle(4)
    stay = tuple(first for first, _ in by_node.values())
    assert {on(world, each) for each in stay} == {"far", "local"}
    return stay[0], stay[1]


def test_both_requests_run_on_separate_machines_after_one_grace_period(world: World) -> None:
    small = in_pieces(world)
    wants = JobService(world.context).submit(STUDENT1, job(devices=2, group="cs101"))
    world.settle(2)
    (moved,) = (each for each in small if world.see(each).warning)
    why = WaitExplanations(world.context).why(STUDENT1, wants.id)
    assert why.sentences[0] == (
        "Queued at position 1. Devices in use are being preempted for it; it starts when the "
        "grace period ends."
    )
    world.clock.pass_(GRACE)
    world.settle(6)
    assert on(world, wants)
    assert on(world, moved) == ({"far", "local"} - {on(world, wants)}).pop()
    attempts = [each.lease.epoch for each in map(world.see, small) if each.lease]
    assert sorted(attempts) == [1, 2]


def test_a_long_job_without_a_checkpoint_is_not_relocated(world: World) -> None:
    small = in_pieces(world)
    world.clock.pass_(301)
    world.settle()
    wants = JobService(world.context).submit(STUDENT1, job(devices=2, group="cs101"))
    world.settle(3)
    assert world.see(wants).state == "queued"
    assert not any(world.see(each).warning for each in small)
