"""Owners change queued requests, which then start as suggested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.hub.errors import Conflict, Forbidden, NotAMember, NotFound, OverMaximum
from carrel.hub.requests.amendments import Amendments
from carrel.hub.requests.explanation import WaitExplanations
from carrel.hub.requests.jobs import JobService
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.schemas import ChangeIn

from ..doubles import ADMIN, STUDENT1, STUDENT2, TEACHER
from ..world import World
from .samples import job


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Two devices, one of them used by student2."""
    made = World.over(tmp_path, devices=2)
    JobService(made.context).submit(STUDENT2, job(seconds=1800))
    made.settle()
    yield made
    made.loop.close()


@pytest.fixture
def changing(world: World) -> Amendments:
    return Amendments(world.context)


def test_a_followed_suggestion_starts_the_request(world: World, changing: Amendments) -> None:
    made = JobService(world.context).submit(STUDENT1, job(devices=2))
    world.settle()
    (suggestion,) = WaitExplanations(world.context).why(STUDENT1, made.id).suggestions
    assert suggestion.sentence == "With 1 device instead of 2 it starts now."

    changing.change(STUDENT1, made.id, ChangeIn(devices=suggestion.devices))
    world.settle()

    after = world.see(made)
    assert (after.id, after.submitted_at, after.devices) == (made.id, made.submitted_at, 1)
    assert after.lease is not None
    assert len(after.lease.devices) == 1


def test_only_the_owner_can_change_a_request(world: World, changing: Amendments) -> None:
    made = JobService(world.context).submit(STUDENT1, job(devices=2))
    for who, error in ((TEACHER, Forbidden), (ADMIN, Forbidden), (STUDENT2, NotFound)):
        with pytest.raises(error):
            changing.change(who, made.id, ChangeIn(devices=1))
    assert world.see(made).devices == 2


def test_a_change_of_group_is_checked_like_a_submission(world: World, changing: Amendments) -> None:
    store = world.context.store
    store.put_group(Group(name="math", max_devices=1, max_devices_per_user=1, max_seconds=8 * 3600))
    made = JobService(world.context).submit(STUDENT1, job(devices=2))
    math = ChangeIn(group="math")
    with pytest.raises(NotAMember):
        changing.change(STUDENT1, made.id, math)
    world.hub.members["math"] = {"student1"}
    with pytest.raises(OverMaximum):
        changing.change(STUDENT1, made.id, math)
    found = changing.change(STUDENT1, made.id, ChangeIn(group="math", devices=1))
    assert (found.group, found.devices) == ("math", 1)


def test_urgency_is_checked_again_in_the_new_group(world: World, changing: Amendments) -> None:
    made = JobService(world.context).submit(TEACHER, job(devices=2, priority="urgent"))
    with pytest.raises(Conflict, match="urgent in cs101"):
        changing.change(TEACHER, made.id, ChangeIn(group="math"))
