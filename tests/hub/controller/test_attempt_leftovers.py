"""When an attempt has ended, the service removes what it was offered, however it ended."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.attempts.compile_cache_side import COMPILED, COURSE, NEW, OWN
from carrel.hub.attempts.compile_caches import OwnerCompileCaches, withdraw_offers
from carrel.hub.controller.loop import Loop
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas import RequestOut

from ..doubles import STUDENT1, no_time
from ..mortal import Fuse, Killed, mortal
from ..requests.samples import job
from ..world import World

DRAFTS = (f".{NEW}.7", f".{NEW}.tar.7", f".{OWN}.part")
OFFERED = {COMPILED, OWN, COURSE, NEW, *DRAFTS}


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World.over(tmp_path)
    caches = OwnerCompileCaches(tmp_path / "compile-caches", 1 << 20)
    made.context = replace(made.context, compile_caches=caches)
    made.restart()
    return made


def submitted(world: World) -> RequestOut:
    return JobService(world.context).submit(STUDENT1, job())


def fill(world: World, made: RequestOut) -> Path:
    """Leave in the folder of an attempt what a runner that is killed leaves there."""
    folder = world.context.files.attempt_folder(made.id, 1)
    assert (folder / COMPILED).is_dir()
    (folder / COMPILED / "graph").mkdir()
    for name in (f"{COMPILED}/graph/a.so", OWN, COURSE, NEW, *DRAFTS, "log.txt"):
        (folder / name).write_bytes(b"x")
    return folder


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def running(world: World, **changes: object) -> tuple[RequestOut, Path]:
    made = world.running_job(**changes)
    return made, fill(world, made)


def lost(world: World) -> tuple[RequestOut, Path]:
    made, folder = running(world)
    world.backend.end(world.lease(made))
    return made, folder


def stopped_by_the_engine(world: World) -> tuple[RequestOut, Path]:
    made, folder = running(world)
    attempt = world.backend.attempts[world.lease(made)]
    attempt.alive = False
    attempt.cause = Cause(code=CauseCode.OUT_OF_MEMORY, message="It ran out of memory.")
    return made, folder


def cancelled(world: World) -> tuple[RequestOut, Path]:
    made, folder = running(world)
    RequestTermination(world.context).cancel(STUDENT1, made.id)
    return made, folder


def ended(world: World) -> tuple[RequestOut, Path]:
    made, folder = running(world)
    world.report(made, "ended", code="succeeded", message="Ran.", details="")
    world.backend.end(world.lease(made))
    return made, folder


def never_claimed(world: World) -> tuple[RequestOut, Path]:
    made = submitted(world)
    world.settle()
    folder = fill(world, made)
    world.backend.end(world.lease(made))
    return made, folder


ENDS = (lost, stopped_by_the_engine, cancelled, ended, never_claimed)


@pytest.mark.parametrize("end", ENDS, ids=lambda each: each.__name__)
def test_nothing_of_the_offers_is_left(
    world: World, end: Callable[[World], tuple[RequestOut, Path]]
) -> None:
    _, folder = end(world)
    assert left(folder) >= OFFERED
    world.settle(3)
    assert left(folder) == {"log.txt"}
    world.loop.close()


def test_nothing_is_left_where_the_engine_refuses_to_start(world: World) -> None:
    world.backend.refuse_starts = "The image cannot be read."
    made = submitted(world)
    world.settle()
    assert world.see(made).state == State.QUEUED
    assert left(world.context.files.attempt_folder(made.id, 1)) == set()
    world.loop.close()


@pytest.mark.parametrize("end", ENDS, ids=lambda each: each.__name__)
def test_nothing_is_left_wherever_the_service_is_killed(
    world: World, end: Callable[[World], tuple[RequestOut, Path]]
) -> None:
    kills = 0
    for actions in range(20):
        made, folder = end(world)
        fuse = Fuse(actions)
        context = mortal(world.context, fuse)
        world.loop.close()
        world.loop = Loop(context, node="local", decision_clock=no_time)
        try:
            world.settle(3)
        except Killed:
            kills += 1
        fuse.left = None
        world.restart()
        world.settle(3)
        assert left(folder) == {"log.txt"}, actions
        RequestTermination(world.context).cancel(STUDENT1, made.id)
        world.settle(3)
    assert kills
    world.loop.close()


def test_a_folder_of_any_depth_is_deleted(tmp_path: Path) -> None:
    """A job may make folders that are deeper than Python's recursion goes."""
    deep = os.open(tmp_path, os.O_RDONLY)
    for name in (COMPILED, *("d" for _ in range(1500))):
        os.mkdir(name, dir_fd=deep)
        below = os.open(name, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    withdraw_offers(tmp_path)
    assert not any(tmp_path.iterdir())
