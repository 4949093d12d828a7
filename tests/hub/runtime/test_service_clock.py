"""The clock of the service steps only when it is told to."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from carrel.hub.records.clock import ClockOffset
from carrel.hub.runtime.service_clock import ServiceClock

from ..doubles import Clock, Stopwatch


@dataclass
class Machine:
    """The two clocks of a machine."""

    wall: Clock
    elapsed: Stopwatch

    def run(self, seconds: float) -> None:
        self.wall.pass_(seconds)
        self.elapsed.pass_(seconds)

    def clock(self, kept: ClockOffset | None = None, *, boot: str = "one") -> ServiceClock:
        return ServiceClock(kept, system=self.wall, elapsed=self.elapsed, boot=boot)


@pytest.fixture
def machine() -> Machine:
    return Machine(Clock(now=1_000_000.0), Stopwatch(now=50.0))


def test_it_advances_as_the_system_does(machine: Machine) -> None:
    clock = machine.clock()
    assert clock() == 1_000_000.0
    machine.run(5)
    assert (clock(), clock.step()) == (1_000_005.0, 0.0)


@pytest.mark.parametrize("set_by", [7200.0, -7200.0])
def test_a_step_is_reported_and_waits_to_be_adopted(machine: Machine, set_by: float) -> None:
    clock = machine.clock()
    machine.wall.pass_(set_by)
    machine.run(1)
    assert clock() == 1_000_001.0
    assert clock.step() == pytest.approx(set_by)
    clock.adopt(clock.step())
    assert clock() == 1_000_001.0 + set_by
    assert clock.step() == 0.0


def test_drift_is_adopted_at_once(machine: Machine) -> None:
    clock = machine.clock()
    machine.wall.pass_(0.5)
    assert clock.step() == 0.0
    assert clock() == 1_000_000.5


def test_a_step_while_the_service_was_down_is_seen_by_its_next_life(machine: Machine) -> None:
    kept = machine.clock().offset
    machine.run(60)
    machine.wall.pass_(7200)
    assert machine.clock(kept).step() == pytest.approx(7200)
    assert machine.clock(kept, boot="two").step() == 0.0, "no process is left of the last boot"
    assert machine.clock(ClockOffset(boot="", seconds=0.0), boot="").step() == 0.0
