"""Devices are validated while nothing uses them, and released when they pass."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from carrel.hub.controller.devices.device_validation import (
    APART_FAULT_SECONDS,
    APART_SECONDS,
    DOUBT_SECONDS,
    IDLE_SECONDS,
    UNAVAILABLE_SECONDS,
    DeviceValidation,
    without_own_process,
)
from carrel.hub.controller.devices.validation_store import KEPT, ValidationStore
from carrel.hub.controller.loop import Loop
from carrel.hub.errors import BackendFailed
from carrel.hub.interfaces.devices import ValidationReading
from carrel.hub.records.audit import SERVICE, AuditAction, ChangeFilter
from carrel.hub.scheduling.model.snapshot import Health, Mark, MarkKind
from carrel.hub.store import SqlStore
from carrel.spawners.fake import FakeBackend

from ..doubles import device, no_time
from ..world import World, world

__all__ = ["world"]

SLOW = ValidationReading(rates={"compute": 60.0})


@pytest.fixture
def validation(world: World) -> DeviceValidation:
    """The validation of two devices, which are real ones here."""
    store = world.context.store
    assert isinstance(store, SqlStore)
    real = [replace(device(number), simulated=False) for number in range(2)]
    store.sync_devices("local", real)
    return DeviceValidation(world.context, ValidationStore(store.transactions))


def never(device: str) -> float:
    return 0.0


def marks(world: World) -> list[tuple[str, MarkKind]]:
    return [(mark.target, mark.kind) for mark in world.context.store.marks()]


def measure(
    world: World, validation: DeviceValidation, doubted_at: Callable[[str], float] = never
) -> list[str]:
    """Run a validation if one is due; return the devices that were marked for it."""
    action = validation.choose(world.clock.now, doubted_at)
    marked = [name for name, kind in marks(world) if kind is MarkKind.VALIDATION]
    if action is not None:
        action()
    return marked


def put_quarantine(world: World, by: str, number: int = 0) -> None:
    world.context.store.put_mark(
        Mark(
            target=f"SIM-{number}",
            kind=MarkKind.QUARANTINE,
            since=world.clock.now,
            why="Slow.",
            by=by,
        )
    )


def test_devices_are_validated_at_boot_after_failures_and_after_long_idleness(
    world: World, validation: DeviceValidation
) -> None:
    assert measure(world, validation) == ["SIM-0", "SIM-1"]
    assert marks(world) == []
    world.clock.pass_(60)
    assert measure(world, validation) == []
    failed = world.clock.now
    assert measure(world, validation, lambda name: failed * (name == "SIM-1")) == ["SIM-1"]
    world.clock.pass_(IDLE_SECONDS - 30)
    assert measure(world, validation) == ["SIM-0"]
    validation.booted_at = world.clock.now + 1
    world.clock.pass_(2)
    assert measure(world, validation) == ["SIM-0", "SIM-1"]


def test_doubts_make_a_device_due_at_most_once_an_hour(
    world: World, validation: DeviceValidation
) -> None:
    def doubted(device: str) -> float:
        return world.clock.now * (device == "SIM-1")

    measure(world, validation)
    world.clock.pass_(60)
    assert measure(world, validation, doubted) == ["SIM-1"]
    world.clock.pass_(DOUBT_SECONDS - 1)
    assert measure(world, validation, doubted) == []
    world.clock.pass_(2)
    assert measure(world, validation, doubted) == ["SIM-1"]


def test_a_failing_database_leaves_no_device_out_of_service(
    world: World, validation: DeviceValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    action = validation.choose(world.clock.now, never)
    assert action is not None
    with monkeypatch.context() as patched:
        patched.setattr(SqlStore, "remove_mark", fail)
        with pytest.raises(OSError, match="disk full"):
            action()
    assert validation.choose(world.clock.now, never) is None
    assert marks(world) == []


def test_marks_of_devices_that_could_not_all_be_marked_are_removed(
    world: World, validation: DeviceValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = SqlStore.put_mark

    def fail_for_second(store: SqlStore, mark: Mark) -> None:
        if mark.target == "SIM-1":
            raise OSError("disk full")
        put(store, mark)

    with monkeypatch.context() as patched:
        patched.setattr(SqlStore, "put_mark", fail_for_second)
        with pytest.raises(OSError, match="disk full"):
            validation.choose(world.clock.now, never)
    assert measure(world, validation) == ["SIM-0", "SIM-1"]
    assert marks(world) == []


def test_a_device_is_not_measured_while_it_is_leased_or_drained(
    world: World, validation: DeviceValidation
) -> None:
    world.running_job()
    world.context.store.put_mark(Mark(target="SIM-1", kind=MarkKind.DRAIN, since=1.0, by="root"))
    assert measure(world, validation) == []


def test_nothing_is_granted_while_a_device_is_measured(
    world: World, validation: DeviceValidation
) -> None:
    action = validation.choose(world.clock.now, never)
    assert action is not None
    assert validation.choose(world.clock.now, never) is None, "one at a time"
    assert not any(each.schedulable for each in world.context.store.devices())
    action()
    assert all(each.schedulable for each in world.context.store.devices())


def test_the_process_that_measures_is_no_foreign_one() -> None:
    busy = [replace(device(number), health=Health.BUSY, why="a process") for number in range(2)]
    found = without_own_process(busy, {"SIM-1"})
    assert [each.health for each in found] == [Health.BUSY, Health.OK]


def test_the_end_of_the_service_does_not_wait_for_a_measurement(
    world: World, validation: DeviceValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, released = threading.Event(), threading.Event()

    def hang(*_: object) -> dict[str, ValidationReading]:
        begun.set()
        released.wait(60)
        return {}

    monkeypatch.setattr(FakeBackend, "validate_devices", hang)
    loop = Loop(world.context, node="local", validation=validation, decision_clock=no_time)
    loop.cycle()
    assert begun.wait(60)
    assert marks(world), "it is being measured"
    loop.close()
    assert marks(world), "the service ended meanwhile"
    released.set()
    assert loop.wait_for_actions(60)
    assert not marks(world)


def test_the_mark_of_a_killed_service_is_removed(
    world: World, validation: DeviceValidation
) -> None:
    assert validation.choose(world.clock.now, never) is not None
    store = world.context.store
    assert isinstance(store, SqlStore)
    again = DeviceValidation(world.context, ValidationStore(store.transactions))
    assert measure(world, again) == ["SIM-0", "SIM-1"]
    assert marks(world) == []


def test_a_device_that_became_slower_is_quarantined(
    world: World, validation: DeviceValidation
) -> None:
    for _ in range(3):
        measure(world, validation)
        world.clock.pass_(2 * IDLE_SECONDS)
    world.backend.validations["SIM-1"] = SLOW
    measure(world, validation)
    (mark,) = world.context.store.marks()
    assert (mark.target, mark.by) == ("SIM-1", SERVICE)
    assert mark.why == "Validation: compute is 40 % slower than its own before."


@pytest.mark.parametrize(
    ("by", "apart", "needed"), [(SERVICE, APART_SECONDS, 2), ("", APART_FAULT_SECONDS, 3)]
)
def test_a_device_in_quarantine_is_released_after_clean_validations(
    world: World, validation: DeviceValidation, by: str, apart: float, needed: int
) -> None:
    measure(world, validation)
    world.clock.pass_(1)
    put_quarantine(world, by)
    for number in range(needed):
        assert marks(world) == [("SIM-0", MarkKind.QUARANTINE)], number
        assert measure(world, validation) == ["SIM-0"]
        assert measure(world, validation) == [], "some time lies between two of them"
        world.clock.pass_(apart)
    assert marks(world) == []
    (change,) = world.context.store.changes(ChangeFilter())
    assert (change.who, change.action) == (SERVICE, AuditAction.RELEASE)
    assert change.why == f"It has passed {needed} validations in a row."


def test_a_failed_validation_is_added_to_the_evidence_and_counts_again(
    world: World, validation: DeviceValidation
) -> None:
    put_quarantine(world, SERVICE)
    outcomes = [None, ValidationReading(problem="CUDA error."), None, None]
    for outcome in outcomes:
        assert marks(world) == [("SIM-0", MarkKind.QUARANTINE)]
        world.backend.validations = {"SIM-0": outcome} if outcome else {}
        measure(world, validation)
        world.clock.pass_(APART_SECONDS)
    assert marks(world) == []
    changes = world.context.store.changes(ChangeFilter())
    assert "Slow. CUDA error." in [change.why for change in changes]


def test_only_administrators_end_their_own_quarantine(
    world: World, validation: DeviceValidation
) -> None:
    put_quarantine(world, "root")
    assert measure(world, validation) == ["SIM-1"]


def test_where_nothing_can_be_measured_it_is_tried_again_the_next_day(
    world: World, validation: DeviceValidation
) -> None:
    absent = ValidationReading(unavailable="No PyTorch.")
    world.backend.validations = {"SIM-0": absent, "SIM-1": absent}
    assert measure(world, validation) == ["SIM-0", "SIM-1"]
    world.clock.pass_(UNAVAILABLE_SECONDS - 1)
    assert measure(world, validation) == []
    world.clock.pass_(2)
    assert measure(world, validation) == ["SIM-0", "SIM-1"]
    assert validation.store.all() == {}


@pytest.mark.parametrize("error", [None, BackendFailed("No plug-in.")])
def test_a_backend_that_measures_nothing_is_not_asked_again_at_once(
    world: World,
    validation: DeviceValidation,
    monkeypatch: pytest.MonkeyPatch,
    error: BackendFailed | None,
) -> None:
    def nothing(*_: object) -> dict[str, ValidationReading]:
        if error is not None:
            raise error
        return {}

    monkeypatch.setattr(FakeBackend, "validate_devices", nothing)
    with contextlib.suppress(BackendFailed):
        measure(world, validation)
    assert marks(world) == []
    world.clock.pass_(3600)
    assert measure(world, validation) == []


def test_simulated_devices_are_validated_in_quarantine_only(
    world: World, validation: DeviceValidation
) -> None:
    world.context.store.sync_devices("local", [device(number) for number in range(2)])
    assert measure(world, validation) == []
    put_quarantine(world, SERVICE, 1)
    assert measure(world, validation) == ["SIM-1"]


def test_the_last_validations_of_a_device_are_kept(
    world: World, validation: DeviceValidation
) -> None:
    for _ in range(KEPT + 3):
        measure(world, validation)
        world.clock.pass_(2 * IDLE_SECONDS)
    assert len(validation.store.all()["SIM-0"]) == KEPT
