"""Idle culling on a service without its web layer, with samples and time controlled by tests."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.controller.idle_culling import SETTLE_SECONDS, IdleCulling
from carrel.hub.controller.loop import Loop
from carrel.hub.errors import Conflict, Forbidden, NotFound
from carrel.hub.interfaces.backend import ActivitySample
from carrel.hub.records.leases import Handle
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.idleness import ActivityLevel, DeviceActivity
from carrel.hub.schemas import KernelsIn
from carrel.hub.transitions import lifecycle
from carrel.spawners.fake import FakeBackend

from ...stores import new_store
from ..doubles import ADMIN, STUDENT1, STUDENT2, Clock, FakeHub, build, device, no_time
from .idle_room import COUNTDOWN, NOTHING, Room


@pytest.fixture
def room(tmp_path: Path) -> Room:
    clock = Clock()
    backend = FakeBackend(devices=(device(0), device(1)), clock=clock)
    context = build(new_store(), backend, FakeHub(), clock, tmp_path)
    made = Room(context, backend, clock, IdleCulling(context, COUNTDOWN))
    made.culling.reconcile()
    made.start()
    return made


def test_an_idle_session_is_warned_and_stopped_with_the_evidence(room: Room) -> None:
    assert room.pass_(1700).warning is None
    warning = room.pass_(200).warning
    assert warning is not None
    assert warning.message == "This session has been idle for 30 min and holds 1 device."
    assert warning.seen == [
        "Its kernel ran no cell.",
        "Its processes used 0.0 s of CPU.",
        "SIM-0 has no measured utilization.",
    ]
    assert 0 < warning.stops_at - room.clock.now <= COUNTDOWN
    assert room.pass_(warning.stops_at - room.clock.now - 1).state == "running"
    ended = room.pass_(60)
    assert ended.state == "stopping"
    assert ended.cause is not None
    assert ended.cause.code == "idle"
    assert ended.cause.message.startswith("Stopped after being idle for 40 min. Its kernel ran")
    assert ended.warning is None
    assert room.context.store.request(room.session).target == "cancelled"
    assert room.history() == ["idle_warning"]


def test_the_loop_samples_in_a_thread_as_often_as_the_groups_need_it(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    activity = FakeBackend.activity

    def recorded(backend: FakeBackend, leases: Mapping[str, Handle | None]) -> ActivitySample:
        threads.append(threading.current_thread())
        return activity(backend, leases)

    monkeypatch.setattr(FakeBackend, "activity", recorded)
    loop = Loop(room.context, node="local", decision_clock=no_time, idle_culling=room.culling)
    for _ in range(4):
        room.clock.pass_(15)
        room.activity.report(STUDENT1, room.session, NOTHING)
        loop.cycle()
        assert loop.wait_for_actions(60)
    loop.close()
    assert room.culling.every == 30
    assert len(threads) == 2
    assert threading.current_thread() not in threads


def test_a_sample_without_consequence_notifies_no_subscriber(room: Room) -> None:
    loop = Loop(room.context, node="local", decision_clock=no_time, idle_culling=room.culling)
    loop.cycle()
    assert loop.wait_for_actions(60)
    version = room.context.notifier.version
    room.clock.pass_(room.culling.every)
    loop.cycle()
    assert loop.wait_for_actions(60)
    loop.close()
    assert room.context.notifier.version == version


def test_a_running_cell_and_cpu_time_are_activity(room: Room) -> None:
    room.tells = replace_kernels(running=1)
    assert room.pass_(4000).warning is None
    room.tells = NOTHING
    for _ in range(200):
        room.backend.cpu_seconds[room.lease] = room.backend.cpu_seconds.get(room.lease, 0) + 3.0
        assert room.pass_(30).warning is None


def replace_kernels(**changes: object) -> KernelsIn:
    return KernelsIn.model_validate(NOTHING.model_dump() | changes)


def test_device_use_is_activity_and_so_is_a_driver_that_does_not_answer(
    room: Room,
) -> None:
    room.backend.uses["SIM-0"] = DeviceActivity(name="GPU", use=ActivityLevel.WORKED)
    assert room.pass_(4000).warning is None
    room.backend.uses.clear()
    room.backend.silent = True
    assert room.pass_(4000).warning is None


def test_a_session_that_measures_itself_is_believed_more_than_its_engine(room: Room) -> None:
    """Slurm counts the Jupyter server of a session, and knows nothing of its devices."""
    room.backend.devices = ()

    def measures(cpu: float, devices: str) -> None:
        room.tells = replace_kernels(cpu_seconds=cpu, devices=devices)
        busy = room.backend.cpu_seconds.get(room.lease, 0.0) + 30.0
        room.backend.cpu_seconds[room.lease] = busy

    for number in range(200):
        measures(3.0 * number, "quiet")
        assert room.pass_(30).warning is None, "its processes worked"
    for _ in range(200):
        measures(600.0, "worked")
        assert room.pass_(30).warning is None, "its device worked"
    for _ in range(200):
        measures(600.0, "unknown")
        assert room.pass_(30).warning is None, "its device may have worked"
    for _ in range(100):
        measures(600.0, "quiet")
        room.pass_(30)
    assert room.now().warning is not None or room.now().state != "running"


def test_a_session_without_kernel_reports_counts_as_active(room: Room) -> None:
    room.tells = None
    assert room.pass_(4000).warning is None


def test_activity_withdraws_the_warning_with_its_reason(room: Room) -> None:
    room.pass_(1900)
    room.tells = replace_kernels(running=1)
    assert room.pass_(30).warning is None
    assert room.history() == ["idle_warning", "idle_over"]
    over = RequestQueries(room.context).events(None, room.session)[-1]
    assert over.data == {"why": "Its kernel runs a cell."}


def test_keeping_a_session_restarts_its_idle_time_once(room: Room) -> None:
    room.pass_(1830)
    kept = room.activity.keep(STUDENT1, room.session)
    assert kept.warning is None
    assert room.pass_(1740).warning is None
    again = room.pass_(120).warning
    assert again is not None
    assert not again.can_keep
    with pytest.raises(Conflict, match=r"kept only once.*running a cell"):
        room.activity.keep(STUDENT1, room.session)
    assert room.pass_(700).state == "stopping"
    assert room.history() == ["idle_warning", "idle_kept", "idle_warning"]


def test_a_session_without_a_warning_cannot_be_kept(room: Room) -> None:
    with pytest.raises(Conflict, match="not about to be stopped"):
        room.activity.keep(STUDENT1, room.session)


def test_only_the_owner_keeps_a_session_or_reports_its_kernels(room: Room) -> None:
    room.pass_(1900)
    with pytest.raises(NotFound):
        room.activity.keep(STUDENT2, room.session)
    with pytest.raises(Forbidden, match="owner"):
        room.activity.keep(ADMIN, room.session)
    with pytest.raises(Forbidden, match="owner"):
        room.activity.report(ADMIN, room.session, NOTHING)


def test_the_countdown_continues_after_the_service_was_killed(room: Room) -> None:
    warning = room.pass_(1900).warning
    assert warning is not None
    room.restart()
    room.tells = None
    room.culling.reconcile()
    room.pass_(SETTLE_SECONDS - 30)
    assert room.now().warning == warning  # no kernel report yet: no decision
    room.tells = NOTHING
    room.pass_(warning.stops_at - room.clock.now - 1)
    assert room.now().warning == warning
    assert room.pass_(60).state == "stopping"


def test_a_countdown_that_ended_while_the_service_was_down_restarts(room: Room) -> None:
    first = room.pass_(1900).warning
    assert first is not None
    room.restart()
    room.clock.pass_(2 * COUNTDOWN)
    second = room.pass_(60).warning
    assert second is not None
    assert second.stops_at > room.clock.now + COUNTDOWN / 2
    assert second.seen == first.seen


def test_a_group_may_have_no_idle_rule_or_lose_it(room: Room) -> None:
    group = room.context.store.group("cs101")
    room.context.store.put_group(replace(group, idle_seconds=0))
    assert room.pass_(4000).warning is None
    room.context.store.put_group(group)
    assert room.pass_(60).warning is not None
    room.context.store.put_group(replace(group, idle_seconds=0))
    assert room.pass_(30).warning is None
    assert room.history() == ["idle_warning", "idle_over"]


def test_a_cpu_session_is_not_culled_and_reports_rarely(room: Room) -> None:
    RequestTermination(room.context).cancel(STUDENT1, room.session)
    room.context.store.apply_to_lease(
        room.lease, lifecycle.finish, now=room.clock.now, charge_until=room.clock.now
    )
    room.start(devices=0)
    assert room.pass_(4000).warning is None
    assert room.activity.report(STUDENT1, room.session, NOTHING).again_seconds == 30


def test_a_warned_session_reports_more_often(room: Room) -> None:
    calm = room.activity.report(STUDENT1, room.session, NOTHING)
    assert (calm.warning, calm.again_seconds) == (None, 15)
    warning = room.pass_(1900).warning
    told = room.activity.report(STUDENT1, room.session, NOTHING)
    assert (told.warning, told.again_seconds) == (warning, 5)
