"""A clock that is set, and a machine that was suspended, cost nothing and end nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.controller.loop import Loop
from carrel.hub.runtime.service_clock import ServiceClock
from carrel.hub.scheduling.model.states import State

from ..doubles import Clock, Stopwatch, no_time
from ..world import World, charged

HOURS = 3600.0


class SteppedWorld(World):
    """A world whose service has its own clock beside that of the system."""

    wall: Clock
    elapsed: Stopwatch

    def boot(self) -> None:
        self.wall, self.elapsed = self.clock, Stopwatch(now=100.0)
        self.start_service()

    def start_service(self) -> None:
        """End the service, if it runs, and start another life of it in the same boot."""
        self.loop.close()
        kept = self.context.store.clock_offset()
        clock = ServiceClock(kept, system=self.wall, elapsed=self.elapsed, boot="one")
        self.context = replace(self.context, clock=clock)
        self.loop = Loop(self.context, node="local", decision_clock=no_time, service_clock=clock)

    def run_for(self, seconds: float) -> None:
        """Let time pass on both clocks, with a cycle every five seconds."""
        for _ in range(round(seconds / 5)):
            self.wall.pass_(5)
            self.elapsed.pass_(5)
            self.settle()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SteppedWorld]:
    made = SteppedWorld.over(tmp_path)
    assert isinstance(made, SteppedWorld)
    made.boot()
    yield made
    made.loop.close()


@pytest.mark.parametrize("set_by", [2 * HOURS, -2 * HOURS])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_job_is_charged_and_limited_by_the_time_that_it_ran(
    world: SteppedWorld, set_by: float, restarted: bool
) -> None:
    job = world.running_job()
    limit = world.see(job).seconds
    world.run_for(60)
    world.wall.pass_(set_by)
    if restarted:
        world.start_service()
    world.run_for(120)
    assert world.see(job).state == State.RUNNING
    assert charged(world, job) == pytest.approx(180, abs=70)
    world.run_for(limit - 240)
    assert world.see(job).state == State.RUNNING, "its time limit moves with the clock"
    world.run_for(120)
    assert world.see(job).state in (State.STOPPING, State.TIMED_OUT)
    world.run_for(30)
    assert charged(world, job) == pytest.approx(limit, abs=30)


def test_a_suspended_machine_charges_nothing_for_the_sleep(world: SteppedWorld) -> None:
    job = world.running_job()
    world.run_for(60)
    world.wall.pass_(9 * HOURS)  # The monotonic clock stands still meanwhile.
    world.run_for(60)
    assert world.see(job).state == State.RUNNING
    world.backend.end(world.lease(job))
    world.run_for(10)
    assert charged(world, job) == pytest.approx(120, abs=15)


def test_a_held_device_is_held_as_long_as_it_was_promised(world: SteppedWorld) -> None:
    session = world.running_session()
    world.run_for(10)
    began = world.see(session).lease
    world.wall.pass_(2 * HOURS)
    world.run_for(5)
    moved = world.see(session).lease
    assert began is not None
    assert moved is not None
    assert moved.granted_at == pytest.approx(began.granted_at + 2 * HOURS)
