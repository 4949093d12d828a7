"""Placement on several machines: by image, and CPU work on the least loaded machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.interfaces.backend import NodeState
from carrel.hub.requests.explanation import WaitExplanations
from carrel.hub.requests.jobs import JobService
from carrel.hub.runtime.snapshots import SnapshotReader
from carrel.hub.schemas import RequestOut

from ..doubles import STUDENT1, STUDENT2, device
from ..images import BASE, CATALOGUE, NEW
from ..requests.samples import job
from ..world import World

DOWN = "The Docker engine on far does not answer."


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two machines with a device each; the newest torch is only on ``far``."""
    made = World.over(tmp_path)
    everywhere = ("far", "local")
    base, new, old = (replace(image, nodes=everywhere) for image in CATALOGUE)
    made.backend.built = (base, replace(new, nodes=("far",)), old)
    made.backend.devices = (
        device(0, node="local"),
        replace(device(0, node="far"), id="SIM-far"),
    )
    made.backend.machines = (NodeState(name="local"), NodeState(name="far"))
    made.settle()
    made.loop.inventory()
    return made


def asked(world: World, name: str, digest: str, devices: int = 1) -> RequestOut:
    who = STUDENT1 if devices else STUDENT2
    return JobService(world.context).submit(who, job(devices=devices, image=f"{name}@{digest}"))


def place(world: World, request: RequestOut) -> str:
    lease = world.see(request).lease
    return lease.node if lease else ""


def test_a_device_is_taken_where_the_image_is(world: World) -> None:
    made = asked(world, "torch", NEW)
    world.settle()
    assert place(world, made) == "far"


def test_running_work_can_be_relocated_only_where_its_image_is(world: World) -> None:
    asked(world, "torch", NEW)
    world.settle()
    asked(world, "torch", NEW)
    placed = SnapshotReader.of(world.context).snapshot(world.clock())
    assert [each.nodes for each in placed.allocations] == [frozenset({"far"})]


def test_a_request_waits_for_the_machine_with_its_image(world: World) -> None:
    first = asked(world, "torch", NEW)
    world.settle()
    second = asked(world, "torch", NEW)
    third = asked(world, "base", BASE)
    world.settle()
    assert [place(world, each) for each in (first, second, third)] == ["far", "", "local"]
    why = WaitExplanations(world.context).why(STUDENT1, second.id)
    assert "Its image is on far." in why.sentences
    assert "It requests 1 device; 0 of 1 device are free now." in why.sentences


def test_an_image_only_on_machines_without_devices_is_refused_at_admission(world: World) -> None:
    world.backend.built = tuple(
        replace(image, nodes=("third",)) if image.digest == NEW else image
        for image in world.backend.built or ()
    )
    with pytest.raises(InvalidInput) as refused:
        asked(world, "torch", NEW)
    assert str(refused.value) == (
        "torch@bbbbbbbbbbbb is not on far and local, where 1 device can be had. "
        "Images there: base, torch. An administrator can load it there."
    )


def test_cpu_work_goes_to_the_least_loaded_machine(world: World) -> None:
    made = [asked(world, "base", BASE, 0) for _ in range(4)]
    world.settle(2)
    assert sorted(place(world, each) for each in made) == ["far", "far", "local", "local"]


def test_cpu_work_waits_for_a_machine_with_its_image(world: World) -> None:
    made = [asked(world, "torch", NEW, 0) for _ in range(2)]
    world.settle(2)
    assert [place(world, each) for each in made] == ["far", "far"]
    world.backend.machines = (NodeState(name="local"), NodeState(name="far", why_not=DOWN))
    late = asked(world, "torch", NEW, 0)
    world.settle(2)
    found = world.see(late)
    assert found.state == "queued"
    assert found.wait is not None
    assert DOWN in found.wait.sentence
