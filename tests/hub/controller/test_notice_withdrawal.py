"""No victim is stopped for a request that can start without its devices, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.hub.controller.loop import Loop
from carrel.hub.controller.preemption import WITHDRAWAL_SECONDS
from carrel.hub.requests.amendments import Amendments
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.schemas import ChangeIn, RequestOut

from ..doubles import STUDENT1, STUDENT2, no_time
from ..requests.samples import job
from ..world import World

GRACE = 120.0


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Four devices; cs101 and lab are guaranteed two each, and may hold all."""
    made = World.over(tmp_path, devices=4)
    made.loop.close()
    for name in ("cs101", "lab"):
        made.context.store.put_group(
            Group(name=name, max_devices=4, max_devices_per_user=4, guaranteed=2)
        )
    made.hub.members = {"cs101": {"student1"}, "lab": {"student2"}}
    made.loop = Loop(made.context, node="local", decision_clock=no_time)
    yield made
    made.loop.close()


@pytest.fixture
def borrowed(world: World) -> list[RequestOut]:
    """Return four jobs of lab, which run on all four devices."""
    made = [JobService(world.context).submit(STUDENT2, job(group="lab")) for _ in range(4)]
    world.settle()
    for each in made:
        world.claim(each)
    return made


def warned(world: World, requests: list[RequestOut]) -> list[RequestOut]:
    return [each for each in requests if world.see(each).warning]


def states(world: World, requests: list[RequestOut]) -> list[str]:
    return sorted(str(world.see(each).state) for each in requests)


def asks(world: World, devices: int) -> RequestOut:
    made = JobService(world.context).submit(STUDENT1, job(group="cs101", devices=devices))
    world.settle(2)
    return made


def test_a_preemptor_that_needs_fewer_devices_keeps_fewer_victims(
    world: World, borrowed: list[RequestOut]
) -> None:
    wants = asks(world, 2)
    assert len(warned(world, borrowed)) == 2

    Amendments(world.context).change(STUDENT1, wants.id, ChangeIn(devices=1))
    world.clock.pass_(WITHDRAWAL_SECONDS)
    world.settle(2)
    (asked,) = warned(world, borrowed)
    assert len(world.backend.notices) == 1, "the other's attempt is told that it may stay"

    world.clock.pass_(GRACE)
    world.settle(4)
    assert world.see(wants).state == "starting"
    assert states(world, borrowed) == ["queued", "running", "running", "running"]
    assert world.see(asked).state == "queued"


def test_only_the_victims_still_needed_are_stopped(
    world: World, borrowed: list[RequestOut]
) -> None:
    wants = asks(world, 2)
    asked = warned(world, borrowed)
    (ends, _) = (each for each in borrowed if each not in asked)

    RequestTermination(world.context).cancel(STUDENT2, ends.id)
    world.settle(3)
    world.clock.pass_(GRACE)
    world.settle(4)

    assert world.see(wants).state == "starting"
    assert states(world, borrowed) == ["cancelled", "queued", "running", "running"]


def test_no_victim_is_stopped_for_a_preemptor_held_by_another_limit(
    world: World, borrowed: list[RequestOut]
) -> None:
    wants = asks(world, 2)
    assert len(warned(world, borrowed)) == 2
    world.context.store.put_group(
        Group(name="cs101", max_devices=1, max_devices_per_user=1, guaranteed=1)
    )
    world.clock.pass_(WITHDRAWAL_SECONDS)
    world.settle()
    assert len(warned(world, borrowed)) == 2, "the limit may be raised again"

    world.clock.pass_(GRACE)
    world.settle(4)

    assert world.see(wants).state == "queued"
    assert states(world, borrowed) == 4 * ["running"]
    assert warned(world, borrowed) == []


def test_a_withdrawn_notice_has_a_reason(world: World, borrowed: list[RequestOut]) -> None:
    wants = asks(world, 2)
    asked = warned(world, borrowed)
    Amendments(world.context).change(STUDENT1, wants.id, ChangeIn(devices=1))
    world.clock.pass_(WITHDRAWAL_SECONDS)
    world.settle()

    (stays,) = (each for each in asked if not world.see(each).warning)
    events = world.context.store.events(stays.id, kinds=frozenset({"notice_over"}))
    assert [event.data["why"] for event in events] == [
        f"Stopping it would not start {wants.id} sooner."
    ]
