"""Readings of what running requests use, with readings and time controlled by tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.controller.idle_culling import IdleCulling
from carrel.hub.controller.utilization import STORE_SECONDS, UtilizationSampler
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.records.utilization import (
    FIRST_SECONDS,
    DeviceReading,
    ProcessReading,
    UtilizationPoint,
    UtilizationSeries,
)
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.transitions import lifecycle
from carrel.spawners.fake import FakeBackend

from ...stores import new_store
from ..doubles import STUDENT1, Clock, FakeHub, build, device
from .idle_room import COUNTDOWN, Room

GIB = 1 << 30
LOST = Cause(code=CauseCode.LOST, message="Its process is gone.")


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """A session on one of two devices."""
    clock = Clock()
    backend = FakeBackend(devices=(device(0), device(1)), clock=clock)
    context = build(new_store(), backend, FakeHub(), clock, tmp_path)
    made = Room(context, backend, clock, IdleCulling(context, COUNTDOWN))
    made.start()
    return made


def uses(room: Room, cpu_seconds: float, memory: int, percent: float | None = None) -> None:
    room.backend.readings[room.lease] = ProcessReading(cpu_seconds=cpu_seconds, memory_bytes=memory)
    if percent is not None:
        (held,) = room.context.store.lease(room.lease).devices
        room.backend.device_readings = {
            held: DeviceReading(percent=percent, used_bytes=2 * GIB),
            "another": DeviceReading(percent=100.0, used_bytes=80 * GIB),
        }


def stored(room: Room) -> UtilizationSeries:
    (found,) = room.context.store.utilization(room.session)
    return found.series


def test_readings_become_points_with_the_devices_of_the_lease(room: Room) -> None:
    sampler = UtilizationSampler(room.context)
    uses(room, 100.0, GIB, 50.0)
    sampler.reconcile()
    room.clock.pass_(STORE_SECONDS)
    uses(room, 130.0, 3 * GIB, 70.0)
    sampler.reconcile()
    first, *rest = stored(room).points
    assert first == UtilizationPoint(
        memory_bytes=GIB, device_percent=50.0, device_bytes=2 * GIB, readings=1
    )
    assert {(point.cores, point.memory_bytes, point.device_percent) for point in rest} == {
        (2.0, 3 * GIB, 70.0)
    }
    out = RequestQueries(room.context).request(STUDENT1, room.session).utilization
    assert out is not None
    assert (out.mean_cores, out.peak_memory_bytes) == (2.0, 3 * GIB)
    assert out.peak_device_bytes == 2 * GIB


def test_simulated_devices_are_not_measured(room: Room) -> None:
    uses(room, 1.0, GIB)
    UtilizationSampler(room.context).reconcile()
    assert stored(room).summary.mean_device_percent is None
    assert stored(room).summary.peak_memory_bytes == GIB


def test_the_last_readings_are_stored_when_a_lease_has_ended(room: Room) -> None:
    sampler = UtilizationSampler(room.context)
    uses(room, 0.0, GIB)
    sampler.reconcile()
    room.clock.pass_(FIRST_SECONDS)
    uses(room, 5.0, 4 * GIB)
    sampler.reconcile()
    assert stored(room).summary.peak_memory_bytes == GIB
    store, now = room.context.store, room.clock.now
    store.apply_to_lease(room.lease, lifecycle.lose, LOST, now=now, charge_until=now)
    sampler.reconcile()
    assert stored(room).summary.peak_memory_bytes == 4 * GIB


def test_a_restarted_service_continues_the_series_with_a_gap(room: Room) -> None:
    sampler = UtilizationSampler(room.context)
    uses(room, 50.0, GIB)
    sampler.reconcile()
    room.clock.pass_(30.0)
    uses(room, 2.0, 2 * GIB)  # another process counts from another start
    UtilizationSampler(room.context).reconcile()
    memory = [point.memory_bytes for point in stored(room).points]
    assert (memory[0], memory[-1], set(memory[1:-1])) == (GIB, 2 * GIB, {None})
    assert stored(room).summary.mean_cores is None


def test_expensive_readings_are_made_less_often(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = UtilizationSampler(room.context)
    uses(room, 1.0, GIB)
    spent = iter([10.0, 10.1])
    monkeypatch.setattr("time.thread_time", lambda: next(spent))
    sampler.reconcile()
    assert sampler.every == pytest.approx(25.0)


def test_nothing_is_read_while_nothing_runs(tmp_path: Path) -> None:
    context = build(new_store(), FakeBackend(silent=True), FakeHub(), Clock(), tmp_path)
    sampler = UtilizationSampler(context)
    sampler.reconcile()
    assert sampler.every == FIRST_SECONDS
