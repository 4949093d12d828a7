"""The scenario is the one that docs/benchmarks.md describes, whatever the seed and the size."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from carrel.hub.scheduling.cycle.decision import decide
from carrel.hub.scheduling.model.snapshot import Snapshot

from .scenario import MODELS, NOW, Scenario, Size

WHOLE = Size()
SIZES = (
    WHOLE,
    Size(devices=100, pending=1000),
    Size(devices=64, pending=500, users=60, groups=8),
    Size(devices=200, pending=500, users=60, groups=7),
)
SEEDS = range(1, 6)
every = pytest.mark.parametrize(
    ("size", "seed"),
    [pytest.param(size, seed, id=f"{size.devices}-{seed}") for size in SIZES for seed in SEEDS],
)


@cache
def made(size: Size, seed: int) -> Snapshot:
    return Scenario(seed, size).snapshot()


def held(snapshot: Snapshot) -> Counter[str]:
    devices = Counter[str]()
    for allocation in snapshot.allocations:
        devices[allocation.group] += len(allocation.devices)
    return devices


@every
def test_half_of_the_groups_hold_their_maximum(size: Size, seed: int) -> None:
    snapshot = made(size, seed)
    has = held(snapshot)
    inside = [group for group in snapshot.groups if group.parent]
    assert len(inside) == size.groups
    assert sum(has[group.name] == group.max_devices for group in inside) == size.groups // 2
    assert all(group.guaranteed <= group.max_devices for group in inside)
    assert all(has[group.name] <= group.max_devices for group in inside)


def test_in_a_pool_of_fewer_devices_than_groups_half_of_the_devices_are_held_so() -> None:
    snapshot = made(Size(devices=10, pending=100), 1)
    has = held(snapshot)
    full = [group for group in snapshot.groups if has[group.name] == group.max_devices]
    assert [group.max_devices for group in full] == [1] * 5


@every
def test_the_pool_is_full_and_no_queued_request_could_start(size: Size, seed: int) -> None:
    snapshot = made(size, seed)
    taken = [name for allocation in snapshot.allocations for name in allocation.devices]
    assert len(snapshot.devices) == size.devices
    assert sorted(taken) == sorted(device.id for device in snapshot.devices)
    assert {device.model for device in snapshot.devices} == set(MODELS)
    plan = decide(snapshot, NOW)
    assert plan.starts == ()
    assert len(plan.waits) == len(snapshot.pending) == size.pending


@every
def test_one_reservation_runs_and_another_is_ahead(size: Size, seed: int) -> None:
    runs, ahead = made(size, seed).reserved
    assert runs.starts_at < NOW < runs.ends_at
    assert NOW < ahead.starts_at < ahead.ends_at


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fifth_are_gangs_and_every_user_waits(seed: int) -> None:
    snapshot = made(WHOLE, seed)
    gangs = sum(bool(request.gang) for request in snapshot.pending)
    assert gangs / WHOLE.pending == pytest.approx(0.2, abs=0.015)
    assert len({request.owner for request in snapshot.pending}) == WHOLE.users
    assert len({request.group for request in snapshot.pending}) == WHOLE.groups
    assert {request.model for request in snapshot.pending} == {None, *MODELS}


def test_the_same_seed_makes_the_same() -> None:
    size = SIZES[1]
    assert Scenario(3, size).snapshot() == made(size, 3) != made(size, 4)
