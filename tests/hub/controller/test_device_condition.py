"""Devices are quarantined by their readings and by the jobs that fail on them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.controller.devices.device_condition import DeviceCondition
from carrel.hub.controller.utilization import UtilizationSampler
from carrel.hub.interfaces.devices import DeviceSignals
from carrel.hub.interfaces.run_times import NoRunTimes
from carrel.hub.inventory.pool import PoolQueries
from carrel.hub.records.audit import SERVICE, AuditEntry, ChangeFilter
from carrel.hub.records.events import NewEvent
from carrel.hub.records.identity import Identity
from carrel.hub.records.requests import Cause, CauseCode, RequestRecord
from carrel.hub.records.utilization import ProcessReading
from carrel.hub.requests.attempt_reports import AttemptReports
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.snapshot import Mark, MarkKind
from carrel.hub.schemas import RequestOut
from carrel.hub.store import SqlStore

from ..doubles import ADMIN, STUDENT1, STUDENT2, TEACHER
from ..doubles import device as simulated
from ..requests.samples import job
from ..world import World, charged, world

__all__ = ["world"]

GOOD = DeviceSignals(utilization=90.0, pcie_lanes=16.0)


def read(world: World, times: int = 1, **signals: DeviceSignals) -> None:
    """Let the service read the devices; SIM_0 and SIM_1 are named, others are in order."""
    world.backend.signals = {
        f"SIM-{number}": signals.get(f"SIM_{number}", GOOD) for number in range(2)
    }
    for _ in range(times):
        world.loop.inventory()


def quarantine(world: World, number: int = 0) -> Mark | None:
    marks = world.context.store.marks()
    return next((mark for mark in marks if mark.target == f"SIM-{number}"), None)


def test_a_hardware_error_ends_the_work_uncharged_and_it_runs_elsewhere(world: World) -> None:
    made = world.running_job()
    world.clock.pass_(70)
    world.settle()
    read(world, SIM_0=DeviceSignals(xids=(79,)))
    world.settle(3)
    found = quarantine(world)
    assert found is not None
    assert found.fault
    assert found.why == "The kernel log reports Xid 79 (the device has fallen off the bus)."
    assert world.lease(made) == f"{made.id}.2"
    assert charged(world, made) == 0
    (change,) = world.context.store.changes(ChangeFilter())
    assert (change.who, change.why) == (SERVICE, found.why)


def test_a_suspect_device_takes_no_new_work_and_runs_on(world: World) -> None:
    made = world.running_job()
    read(world)
    read(world, times=3, SIM_0=DeviceSignals(utilization=90.0, pcie_lanes=4.0))
    world.settle(3)
    found = quarantine(world)
    assert found is not None
    assert (found.by, found.kind) == (SERVICE, MarkKind.QUARANTINE)
    assert found.why == "Its link to the host has 4 lanes, usual are 16."
    assert world.see(made).state == "running"

    read(world, SIM_0=DeviceSignals(xids=(48,)))
    world.settle(3)
    found = quarantine(world)
    assert found is not None
    assert found.fault
    assert "4 lanes, usual are 16. The kernel log reports Xid 48" in found.why
    assert world.lease(made) == f"{made.id}.2"


def test_the_quarantine_of_an_administrator_stays_as_it_is(world: World) -> None:
    own = Mark(target="SIM-0", kind=MarkKind.QUARANTINE, since=1.0, why="fan", by="root")
    world.context.store.put_mark(own)
    read(world, SIM_0=DeviceSignals(xids=(79,)))
    assert quarantine(world) == own


def test_a_quarantine_that_could_not_be_stored_is_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = SqlStore.put_mark

    def fail_for_first(store: SqlStore, mark: Mark, change: AuditEntry | None = None) -> None:
        if mark.target == "SIM-0":
            raise OSError("disk full")
        put(store, mark, change=change)

    broken = DeviceSignals(xids=(79,))
    with monkeypatch.context() as patched:
        patched.setattr(SqlStore, "put_mark", fail_for_first)
        read(world, SIM_0=broken, SIM_1=broken)
        assert quarantine(world) is None
        assert quarantine(world, 1) is not None
    read(world)
    assert quarantine(world) is not None


def test_evidence_of_the_same_kind_is_added_once(world: World) -> None:
    read(world)
    for lanes in (4.0, 8.0):
        read(world, times=3, SIM_0=DeviceSignals(utilization=90.0, pcie_lanes=lanes))
        read(world)
    found = quarantine(world)
    assert found is not None
    assert found.why == "Its link to the host has 4 lanes, usual are 16."
    assert len(world.context.store.changes(ChangeFilter())) == 1


@pytest.mark.parametrize(
    ("seconds", "accused"),
    [(1.0, True), (120.0, False)],
    ids=["seen until its end", "its node was away"],
)
def test_attempts_that_may_have_died_with_their_node_accuse_no_device(
    world: World, seconds: float, accused: bool
) -> None:
    for owner in (STUDENT1, STUDENT2):
        made = JobService(world.context).submit(owner, job(devices=1))
        world.settle()
        world.claim(made)
        world.settle()
        world.clock.pass_(seconds)
        world.backend.end(world.lease(made))
        world.settle(3)
        RequestTermination(world.context).cancel(owner, made.id)
        world.settle(3)
    world.loop.inventory()
    assert (quarantine(world) is not None) == accused


def test_an_attempt_from_before_the_start_of_its_node_doubts_no_device(world: World) -> None:
    made = world.running_job()
    request = world.context.store.request(made.id)
    lease = request.lease
    assert lease is not None
    lost = replace(request, cause=Cause(code=CauseCode.LOST, message="Its process is gone."))
    now = world.clock.now + 5
    sampler = UtilizationSampler(world.context)
    restarted = DeviceCondition(world.context, sampler, booted_at=now - 1, node=lease.node)
    restarted.record_end(lease, lost, now, seen=now)
    elsewhere = DeviceCondition(world.context, sampler, booted_at=now - 1, node="another")
    elsewhere.record_end(lease, lost, now, seen=now)
    assert (restarted.doubted_at("SIM-0"), elsewhere.doubted_at("SIM-0")) == (0.0, now)


class SlowCells(NoRunTimes):
    """Cells take twice as long as before on the first device."""

    def cell_pace(self, ended: RequestRecord, now: float) -> tuple[float, float] | None:
        assert ended.lease is not None
        return (20.0 if ended.lease.devices == ("SIM-0",) else 10.0), 10.0


def ended(
    world: World,
    condition: DeviceCondition,
    made: RequestOut,
    device: str,
    code: CauseCode = CauseCode.SUCCEEDED,
) -> None:
    """Record that a job has ended on a device."""
    request = world.context.store.request(made.id)
    assert request.lease is not None
    lease = replace(request.lease, devices=(device,))
    done = replace(request, lease=lease, cause=Cause(code=code, message=""))
    condition.record_end(lease, done, world.clock.now, seen=world.clock.now)


def wait_for_a_core(world: World, sampler: UtilizationSampler, made: RequestOut) -> None:
    """Let the threads of a job wait for a core for 80 % of their time."""
    used = ProcessReading(cpu_seconds=0.0, memory_bytes=1, waiting_seconds=0.0)
    for seconds in (0.0, 5.0):
        waited = replace(used, cpu_seconds=seconds / 5, waiting_seconds=4 * seconds / 5)
        world.backend.readings[world.lease(made)] = waited
        sampler.reconcile()
        world.clock.pass_(5.0)


def test_slow_cells_are_evidence_about_a_device_unless_its_node_was_busy(world: World) -> None:
    made = world.running_job()
    world.context = replace(world.context, run_times=SlowCells())
    sampler = UtilizationSampler(world.context)
    condition = DeviceCondition(world.context, sampler)
    for _ in range(6):
        ended(world, condition, made, "SIM-1")
    ended(world, condition, made, "SIM-0")
    wait_for_a_core(world, sampler, made)
    ended(world, condition, made, "SIM-0")
    tiles = PoolQueries.of(world.context).pool(ADMIN).devices
    assert [tile.evidence for tile in tiles] == [
        "Of the last 2 runs on it, 1 took longer than on other devices: 2.0 times, at the median. "
        "1 slow run on it waited for something else than the device; in the last one its threads "
        "waited for a core for 80 % of their time.",
        "",
    ]
    seen = PoolQueries.of(world.context).pool(STUDENT1).devices
    assert not any(tile.evidence for tile in seen), "it tells of other users' runs"


def test_what_was_told_about_a_device_ends_with_its_quarantine(world: World) -> None:
    made = world.running_job()
    world.context = replace(world.context, run_times=SlowCells())
    condition = DeviceCondition(world.context, UtilizationSampler(world.context))
    for device in (*["SIM-1"] * 6, "SIM-0"):
        ended(world, condition, made, device)
    assert world.context.device_evidence.of("SIM-0")
    mark = Mark(target="SIM-0", kind=MarkKind.QUARANTINE, since=world.clock.now, why="slow", by="x")
    world.context.store.put_mark(mark)
    condition.observe((), world.clock.now)
    assert world.context.device_evidence.of("SIM-0")
    world.context.store.remove_mark("SIM-0", MarkKind.QUARANTINE)
    condition.observe((), world.clock.now)
    assert not world.context.device_evidence.of("SIM-0")


def train(
    world: World,
    condition: DeviceCondition,
    owner: Identity,
    device: str,
    slower: float = 1.0,
    *,
    step: float = 5.0,
    rate: float = 0.0,
    code: CauseCode = CauseCode.SUCCEEDED,
    busy: bool = False,
    steps: int = 40,
) -> None:
    """Run a job of some steps on a device, the second half of which took so many times as long.

    Without a ``rate``, no two jobs are alike.
    """
    parameters = {"lr": rate or world.clock.now}
    made = JobService(world.context).submit(owner, job(devices=1, parameters=parameters))
    world.settle()
    world.claim(made)
    for number in range(steps + 1):
        world.clock.pass_(0.0 if number == 0 else step * (slower if number > steps // 2 else 1.0))
        data = {"number": 1, "done": float(number), "of": float(steps)}
        event = NewEvent(seq=number + 10, at=world.clock.now, kind="progress", data=data)
        AttemptReports(world.context).store_events(world.lease(made), [event])
    if busy:
        wait_for_a_core(world, condition.utilization, made)
    ended(world, condition, made, device, code)
    RequestTermination(world.context).cancel(owner, made.id)
    world.backend.end(world.lease(made))
    world.settle(3)


def with_three_devices(world: World) -> DeviceCondition:
    world.backend.devices = (simulated(0), simulated(1), simulated(2))
    world.loop.inventory()
    return DeviceCondition(world.context, UtilizationSampler(world.context))


def test_steps_that_become_slower_in_the_middle_doubt_their_device(world: World) -> None:
    condition = with_three_devices(world)
    for owner in (STUDENT1, STUDENT2) * 2:
        for sound in ("SIM-1", "SIM-2"):
            train(world, condition, owner, sound)
    for owner in (STUDENT1, STUDENT2, STUDENT1):
        train(world, condition, owner, "SIM-0", slower=1.5)
    assert world.context.device_evidence.of("SIM-0") == (
        "Of the last 3 runs on it, 3 became slower in the middle, unlike on other devices: "
        "1.5 times, at the median."
    )
    assert condition.doubted_at("SIM-0") == 0.0, "three runs are too few"
    train(world, condition, STUDENT2, "SIM-0", slower=1.5)
    assert condition.doubted_at("SIM-0") == world.clock.now
    assert condition.doubted_at("SIM-1") == 0.0
    assert not world.context.device_evidence.of("SIM-1")


def test_a_program_that_becomes_slower_by_design_doubts_no_device(world: World) -> None:
    condition = with_three_devices(world)
    for owner in (STUDENT1, STUDENT2) * 2:
        for sound in ("SIM-1", "SIM-2"):
            train(world, condition, owner, sound)
    for owner in (STUDENT1, STUDENT2) * 3:
        train(world, condition, owner, "SIM-0", slower=1.5, steps=60)
    assert condition.doubted_at("SIM-0") == 0.0, "no other device has run the program"
    assert not world.context.device_evidence.of("SIM-0")
    for owner in (STUDENT1, STUDENT2) * 3:
        train(world, condition, owner, "SIM-1", slower=1.5, steps=60)
    for owner in (STUDENT1, STUDENT2) * 3:
        train(world, condition, owner, "SIM-0", slower=1.5, steps=60)
    assert condition.doubted_at("SIM-0") == 0.0


def test_forged_steps_of_one_user_doubt_no_device(world: World) -> None:
    condition = with_three_devices(world)
    for _ in range(4):
        for device in ("SIM-1", "SIM-2"):
            train(world, condition, STUDENT1, device, rate=0.1, step=2.0)
    for owner in (STUDENT2, TEACHER) * 3:
        train(world, condition, owner, "SIM-0", rate=0.1, step=6.0)
    assert condition.doubted_at("SIM-0") == 0.0
    assert not world.context.device_evidence.of("SIM-0")


@pytest.mark.parametrize(("model", "doubted"), [("Simulated GPU", True), ("T4", False)])
def test_steps_are_compared_with_those_on_devices_of_the_same_model(
    world: World, model: str, doubted: bool
) -> None:
    condition = DeviceCondition(world.context, UtilizationSampler(world.context))
    world.backend.devices = (replace(simulated(0), model=model), simulated(1), simulated(2))
    world.loop.inventory()
    for _ in range(4):
        for owner in (STUDENT1, STUDENT2):
            for sound in ("SIM-1", "SIM-2"):
                train(world, condition, owner, sound, rate=0.1, step=2.0)
    for owner in (STUDENT1, STUDENT2) * 3:
        train(world, condition, owner, "SIM-0", rate=0.1, step=6.0)
    assert (condition.doubted_at("SIM-0") > 0.0) == doubted


def test_slow_steps_count_at_the_time_limit_and_not_on_a_busy_node_or_after_an_error(
    world: World,
) -> None:
    condition = with_three_devices(world)
    for owner in (STUDENT1, STUDENT2) * 2:
        for sound in ("SIM-1", "SIM-2"):
            train(world, condition, owner, sound)
    for number in range(5):
        owner = (STUDENT1, STUDENT2)[number % 2]
        train(world, condition, owner, "SIM-0", slower=1.5, code=CauseCode.CELL_ERROR)
        train(world, condition, owner, "SIM-0", slower=1.5, busy=True)
    assert condition.doubted_at("SIM-0") == 0.0
    assert world.context.device_evidence.of("SIM-0").startswith("5 slowing runs on it waited for")
    for number in range(4):
        owner = (STUDENT1, STUDENT2)[number % 2]
        train(world, condition, owner, "SIM-0", slower=1.5, code=CauseCode.TIME_LIMIT)
    assert condition.doubted_at("SIM-0") == world.clock.now


def fail(world: World, made: RequestOut, message: str) -> None:
    world.claim(made)
    world.report(made, "ended", code="cell_error", message=message, details="")
    world.backend.end(world.lease(made))
    world.settle(3)


@pytest.mark.parametrize(
    ("message", "accused"),
    [("CUDA error: unspecified launch failure", True), ("NameError: x", False)],
)
def test_two_users_that_fail_on_one_device_put_it_into_quarantine(
    world: World, message: str, accused: bool
) -> None:
    for owner in (STUDENT1, STUDENT2):
        made = JobService(world.context).submit(owner, job(devices=1))
        world.settle()
        fail(world, made, message)
    world.loop.inventory()
    found = quarantine(world)
    assert (found is not None) == accused
    if found is not None:
        assert found.by == SERVICE
        assert "of 2 users" in found.why
    world.context.store.remove_mark("SIM-0", MarkKind.QUARANTINE)
    world.loop.inventory()
    assert quarantine(world) is None, "failures accuse once"
