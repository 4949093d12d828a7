"""The loop reconciles the stored state with the real one after any process was killed."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from carrel.hub.controller.loop import EXIT_GRACE, HUB_WINDOW, Loop
from carrel.hub.controller.reconciler import LEASE_SECONDS
from carrel.hub.controller.retries import MAX_ATTEMPTS
from carrel.hub.controller.time_limits import LAUNCH_WINDOW
from carrel.hub.errors import StaleEpoch, Unavailable
from carrel.hub.interfaces.backend import AttemptStatus, LaunchOrder
from carrel.hub.inventory.pool import PoolQueries
from carrel.hub.records.events import NewEvent
from carrel.hub.records.leases import Handle, LeaseState
from carrel.hub.requests.attempt_reports import AttemptReports
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.snapshot import Health
from carrel.hub.schemas import EventIn, EventsIn, RequestOut, SessionIn, StartedIn
from carrel.hub.sessions.lifecycle import SessionLifecycle
from carrel.spawners.fake import FakeBackend

from ...stores import new_store
from ..doubles import STUDENT1, STUDENT2, Clock, FakeHub, build, device, no_time
from ..mortal import ManualExecutor
from ..requests.samples import job
from ..world import World, charged, world

__all__ = ["world"]


def test_a_job_runs_to_its_end_and_is_charged_for_it(world: World) -> None:
    made = world.running_job()
    world.settle()
    world.clock.pass_(100)
    world.settle()
    world.report(made, "ended", code="succeeded", message="All 2 cells ran.", details="")
    world.backend.end(world.lease(made))
    world.settle()
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.message) == ("succeeded", "All 2 cells ran.")
    assert charged(world, made) == pytest.approx(100)
    assert PoolQueries.of(world.context).pool(STUDENT1).free == 2


def test_a_finished_request_is_never_admitted_again(world: World) -> None:
    """Case 3: restart with finished requests."""
    made = world.running_job()
    world.report(made, "ended", code="succeeded")
    world.backend.end(world.lease(made))
    world.settle()
    world.restart()
    world.settle(3)
    assert world.see(made).state == "succeeded"
    assert len(world.backend.attempts) == 1


def test_case_01_killed_between_the_lease_and_the_start(world: World) -> None:
    made = JobService(world.context).submit(STUDENT1, job())
    world.loop.decide()  # The service is killed right after the grant.
    assert world.see(made).state == "granted"
    world.restart()
    world.settle()
    world.claim(made)
    assert (world.see(made).state, len(world.backend.attempts)) == ("running", 1)


def test_case_01_killed_between_the_intent_and_the_start(world: World) -> None:
    made = JobService(world.context).submit(STUDENT1, job())
    world.loop.decide()
    first = world.lease(made)
    world.context.store.launch(first, now=world.clock.now, token_hash="x")
    world.clock.pass_(50)
    world.restart()
    world.settle(2)
    world.claim(made)
    assert world.see(made).state == "running"
    assert world.lease(made) != first
    assert list(world.backend.attempts) == [world.lease(made)]
    assert charged(world, made) == 0, "nothing ran under the first lease"


def test_case_02_killed_after_the_start_before_the_acknowledgement(world: World) -> None:
    made = JobService(world.context).submit(STUDENT1, job())
    world.settle()
    world.restart()
    world.settle(3)
    world.claim(made)
    assert (world.see(made).state, len(world.backend.attempts)) == ("running", 1)


def test_case_04_a_stop_that_fails_keeps_the_device_until_death(world: World) -> None:
    made = world.running_job()
    lease = world.lease(made)
    world.backend.attempts[lease].stubborn = True
    RequestTermination(world.context).cancel(STUDENT1, made.id)
    world.settle(3)
    assert world.see(made).state == "stopping"
    assert PoolQueries.of(world.context).pool(STUDENT1).free == 1
    world.clock.pass_(20)
    world.settle()
    world.backend.attempts[lease].stubborn = False
    world.settle(3)
    assert world.see(made).state == "cancelled"
    assert PoolQueries.of(world.context).pool(STUDENT1).free == 2
    assert charged(world, made) == pytest.approx(20)


def test_case_10_late_reports_are_fenced(world: World) -> None:
    made = world.running_job(retries=0)
    old = world.lease(made)
    world.backend.end(old)
    world.settle()
    assert world.see(made).state == "failed"
    with pytest.raises(StaleEpoch):
        AttemptReports(world.context).started(old, StartedIn(pid=1, started_at=1.0))
    with pytest.raises(StaleEpoch):
        AttemptReports(world.context).add_events(
            old, EventsIn(events=[EventIn(seq=9, at=1.0, kind="ended")])
        )


def test_a_job_whose_processes_disappear_is_lost(world: World) -> None:
    made = world.running_job(retries=0)
    world.clock.pass_(10)
    world.settle()
    world.clock.pass_(10)
    world.backend.end(world.lease(made))
    world.settle()
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.code) == ("failed", "lost")
    assert charged(world, made) == pytest.approx(10), "charged to the last sign of life"


def test_a_lost_job_is_retried_up_to_its_limit(world: World) -> None:
    made = JobService(world.context).submit(STUDENT1, job(retries=1))
    world.settle()
    world.claim(made)
    first = world.lease(made)
    _lose_after(world, made, 10)
    # Returned, queued again and granted again, in one cycle or in the next.
    world.settle()
    again = world.see(made)
    assert (again.state, again.cause) == ("starting", None)
    assert again.lease is not None
    assert (again.lease.id, again.lease.epoch) == (f"{made.id}.2", 2)
    with pytest.raises(StaleEpoch):
        AttemptReports(world.context).started(first, StartedIn(pid=1, started_at=1.0))
    assert charged(world, made) == pytest.approx(10), "the first attempt did run"

    world.claim(made)
    _lose_after(world, made, 5)
    world.settle(2)
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.code) == ("failed", "lost")
    assert list(world.backend.attempts) == [first, f"{made.id}.2"]
    ledger = world.context.store.ledger(request_id=made.id)
    spent = {e.lease_id: 0.0 for e in ledger}
    for entry in ledger:
        spent[entry.lease_id] += entry.device_seconds
    assert spent == {first: pytest.approx(10), f"{made.id}.2": pytest.approx(5)}
    states = [e.data["state"] for e in world.context.store.events(made.id) if e.kind == "state"]
    attempt = ["queued", "granted", "starting", "running", "lost"]
    assert states == [*attempt, *attempt, "failed"]
    assert PoolQueries.of(world.context).pool(STUDENT1).free == 2


def test_an_attempt_that_never_ran_does_not_count_as_a_retry(world: World) -> None:
    made = JobService(world.context).submit(STUDENT1, job(retries=1))
    world.backend.refuse_starts = "No space left on device."
    world.settle()
    world.backend.refuse_starts = ""
    world.settle()
    world.claim(made)
    assert world.lease(made) == f"{made.id}.2", "the first was given back"

    _lose_after(world, made, 10)
    world.settle()
    again = world.see(made)
    assert (again.state, world.lease(made)) == ("starting", f"{made.id}.3")
    told = [e.data["cause"] for e in world.context.store.events(made.id) if "cause" in e.data]
    assert "(retry 1 of 1)" in str(told)

    world.claim(made)
    _lose_after(world, made, 5)
    world.settle(2)
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.code) == ("failed", "lost")
    assert list(world.backend.attempts) == [f"{made.id}.2", f"{made.id}.3"]


def test_retries_do_not_raise_the_limit_of_failed_starts(world: World) -> None:
    made = JobService(world.context).submit(STUDENT1, job(retries=5))
    world.settle()
    world.claim(made)
    _lose_after(world, made, 10)
    world.backend.refuse_starts = "No space left on device."
    world.backend.end(world.lease(made))
    world.settle_with_back_offs(8)
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.code) == ("failed", "start_failed")
    assert ended.lease is not None
    assert ended.lease.epoch == 1 + MAX_ATTEMPTS


def test_a_job_cannot_forge_its_transitions(world: World) -> None:
    made = world.running_job()
    before = [event.data["state"] for event in world.context.store.events(made.id)]
    world.report(made, "state", state="lost")
    assert [event.data["state"] for event in world.context.store.events(made.id)] == before


def _lose_after(world: World, request: RequestOut, seconds: float) -> None:
    """Let the process run for so many seconds, then disappear."""
    world.clock.pass_(seconds)
    world.settle()
    world.clock.pass_(3)
    world.backend.end(world.lease(request))
    world.settle()


def test_an_end_recorded_only_in_the_journal_counts(world: World) -> None:
    made = world.running_job()
    world.clock.pass_(30)
    world.backend.report(
        world.lease(made), "ended", {"code": "cell_error", "message": "boom"}, at=world.clock.now
    )
    world.backend.end(world.lease(made))
    world.clock.pass_(3600)
    world.restart()
    world.settle(2)
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.code) == ("failed", "cell_error")
    assert charged(world, made) == pytest.approx(30)


@pytest.mark.parametrize("again", ["delivered", "collected"])
def test_case_12_killed_between_the_report_of_an_end_and_the_end(world: World, again: str) -> None:
    """The report is stored, and the service is killed before it ends the request."""
    made = world.running_job()
    data: dict[str, JsonValue] = {"code": "succeeded", "message": "Ran 2 cells."}
    world.backend.report(world.lease(made), "ended", data, at=world.clock.now)
    report = NewEvent(seq=1, at=world.clock.now, kind="ended", data=data)
    world.context.store.add_events(world.lease(made), [report])
    world.restart()
    if again == "delivered":  # its runner got no answer, and repeats itself
        world.report(made, "ended", **data)
    world.backend.end(world.lease(made))
    world.settle(2)
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.message) == ("succeeded", "Ran 2 cells.")


def test_an_engine_that_does_not_answer_frees_nothing(world: World) -> None:
    made = world.running_job()
    world.settle()
    world.backend.silent = True
    world.clock.pass_(LEASE_SECONDS + 60)
    world.settle(2)
    seen = world.see(made)
    assert seen.state == "running"
    assert seen.lease is not None
    assert seen.lease.state == LeaseState.SUSPECT
    assert PoolQueries.of(world.context).pool(STUDENT1).free == 1
    world.backend.silent = False
    world.settle()
    world.clock.pass_(6)
    world.settle()
    again = world.see(made)
    assert again.lease is not None
    assert again.lease.state == LeaseState.LIVE


def test_the_time_limit_stops_a_job_with_its_cause(world: World) -> None:
    made = world.running_job()
    world.clock.pass_(601)
    world.settle(3)
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.code) == ("timed_out", "time_limit")
    assert ended.cause is not None
    assert "10 min" in ended.cause.message


def test_a_job_behind_other_starts_is_not_charged_and_its_limit_does_not_run(
    world: World,
) -> None:
    threads = ManualExecutor()
    loop = Loop(world.context, node="local", decision_clock=no_time, threads=threads)
    made = JobService(world.context).submit(STUDENT1, job(seconds=60))
    loop.cycle()
    world.clock.pass_(90)
    loop.cycle()
    assert world.see(made).state == "granted"
    while threads.waiting:
        threads.work()
    world.claim(made)
    world.clock.pass_(30)
    loop.cycle()
    assert world.see(made).state == "running"
    world.report(made, "ended", code="succeeded")
    world.backend.end(world.lease(made))
    loop.cycle()
    loop.cycle()
    assert (world.see(made).state, charged(world, made)) == ("succeeded", pytest.approx(30))


def test_a_job_whose_start_does_not_begin_is_queued_again(world: World) -> None:
    threads = ManualExecutor()
    loop = Loop(world.context, node="local", decision_clock=no_time, threads=threads)
    made = JobService(world.context).submit(STUDENT1, job(seconds=60))
    loop.cycle()
    first, late = world.lease(made), len(threads.waiting)
    world.clock.pass_(LAUNCH_WINDOW + 1)
    loop.cycle()
    assert world.lease(made) != first, "it has a lease of its own again"
    assert charged(world, made) == 0
    returned = [
        event.data["cause"]
        for event in world.context.store.events(made.id)
        if event.data.get("cause")
    ]
    assert [cause["message"] for cause in returned if isinstance(cause, dict)] == [
        "It was not started within 10 min of the grant."
    ]
    for _ in range(late):
        threads.work()
    assert not world.backend.attempts, "the old start is fenced"
    while threads.waiting:
        threads.work()
    world.claim(made)
    assert world.see(made).state == "running"


def test_an_engine_that_refuses_three_times_fails_the_job(world: World) -> None:
    world.backend.refuse_starts = "No space left on device."
    made = JobService(world.context).submit(STUDENT1, job())
    world.settle_with_back_offs(6)
    ended = world.see(made)
    assert ended.state == "failed"
    assert ended.cause is not None
    assert "No space left" in ended.cause.message
    assert PoolQueries.of(world.context).pool(STUDENT1).free == 2


def test_a_job_that_ended_gets_time_to_exit_by_itself(world: World) -> None:
    made = world.running_job()
    world.report(made, "ended", code="succeeded")
    world.settle(2)
    assert world.backend.attempts[world.lease(made)].alive
    world.clock.pass_(EXIT_GRACE + 1)
    world.settle(2)
    assert world.see(made).state == "succeeded"


def test_a_waiting_session_starts_when_the_one_before_it_dies(world: World) -> None:
    """Case 16: the server dies; the device goes to the next request in the queue."""
    first = world.running_session("a")
    second = world.running_session("b")
    third = SessionLifecycle(world.context).start(STUDENT2, "", SessionIn(devices=1))
    world.context.spawner_listeners.attach(third.id)
    world.settle()
    waiting = world.see(third)
    assert waiting.wait is not None
    assert (waiting.wait.place, waiting.wait.reason) == (1, "no_free_device")
    assert waiting.wait.expected_at == pytest.approx(world.clock.now + 3600)
    world.backend.end(world.lease(first))
    world.settle()
    assert world.see(third).state == "granted"
    assert world.see(first).state == "failed"
    assert world.see(second).state == "running"


def test_a_spawner_may_report_why_a_session_did_not_start(world: World) -> None:
    made = world.running_session()
    world.context.spawner_listeners.attach(made.id)
    world.settle()
    world.backend.end(world.lease(made))
    world.settle()
    assert world.see(made).state == "running"
    world.clock.pass_(4)
    world.settle()
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.code) == ("failed", "server_died")
    assert PoolQueries.of(world.context).pool(STUDENT1).free == 2


def test_a_device_is_granted_no_earlier_than_its_release(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time passes within a cycle, which ends one lease and grants the next one."""
    first = world.running_session("a")
    world.running_session("b")
    third = SessionLifecycle(world.context).start(STUDENT2, "", SessionIn(devices=1))
    world.context.spawner_listeners.attach(third.id)

    def tick(clock: Clock) -> float:
        clock.now += 0.01
        return clock.now

    monkeypatch.setattr(Clock, "__call__", tick)
    world.backend.end(world.lease(first))
    world.settle()
    before, after = world.see(first).lease, world.see(third).lease
    assert before is not None
    assert before.released_at is not None
    assert after is not None
    assert [d.id for d in after.devices] == [d.id for d in before.devices]
    assert after.granted_at >= before.released_at


def test_an_unattended_session_is_started_at_the_hub_again(world: World) -> None:
    made = SessionLifecycle(world.context).start(STUDENT1, "", SessionIn())
    world.hub.asked.clear()
    world.settle()
    assert world.hub.asked == []
    world.clock.pass_(4)
    world.settle()
    assert world.hub.asked == [("start", "student1", "")]
    assert world.see(made).state == "granted"


def test_a_granted_session_is_given_up_after_the_claim_window(world: World) -> None:
    world.hub.away = True
    world.hub.away = False
    made = SessionLifecycle(world.context).start(STUDENT1, "", SessionIn(devices=1))
    world.settle()
    world.hub.away = True
    for _ in range(4):
        world.clock.pass_(HUB_WINDOW / 3)
        world.settle()
    assert world.see(made).state == "failed"
    assert PoolQueries.of(world.context).pool(STUDENT1).free == 2


def test_case_14_a_hub_killed_between_fork_and_report_leaves_an_adopted_process(
    world: World,
) -> None:
    made = SessionLifecycle(world.context).start(STUDENT1, "", SessionIn(devices=1))
    world.context.spawner_listeners.attach(made.id)
    world.settle()
    AttemptReports(world.context).launch(world.lease(made))
    world.process(made)
    world.context.spawner_listeners.detach(made.id)
    world.settle()
    assert world.see(made).state == "running"


def test_a_running_session_unknown_to_the_hub_is_started_there(world: World) -> None:
    world.running_session()
    world.settle()
    world.hub.asked.clear()
    world.clock.pass_(30)
    world.settle()
    assert ("start", "student1", "") in world.hub.asked


def test_a_session_stopped_by_its_owner_ends_as_cancelled(world: World) -> None:
    made = world.running_session()
    SessionLifecycle(world.context).stop(STUDENT1, "")
    world.settle(3)
    ended = world.see(made)
    assert (ended.state, ended.cause and ended.cause.code) == ("succeeded", "stopped")
    assert ("stop", "student1", "") in world.hub.asked


def test_case_07_a_device_used_by_other_processes_is_not_granted(world: World) -> None:
    world.backend.set_health("SIM-0", Health.BUSY, "in use by a process that is not ours")
    world.loop.inventory()
    made = JobService(world.context).submit(STUDENT1, job())
    world.settle()
    seen = world.see(made)
    assert seen.lease is not None
    assert [held.id for held in seen.lease.devices] == ["SIM-1"]
    tiles = {
        tile.id: (tile.state, tile.why)
        for tile in PoolQueries.of(world.context).pool(STUDENT2).devices
    }
    assert tiles == {
        "SIM-0": ("busy", "in use by a process that is not ours"),
        "SIM-1": ("taken", ""),
    }


def test_case_08_the_service_continues_while_the_driver_hangs(world: World) -> None:
    world.backend.silent = True
    world.loop.inventory()
    assert len(PoolQueries.of(world.context).pool(STUDENT1).devices) == 2
    made = SessionLifecycle(world.context).start(STUDENT1, "", SessionIn(devices=0))
    world.settle()
    assert world.see(made).state == "granted"


def test_case_11_a_clock_that_jumps_back_charges_nothing_twice(world: World) -> None:
    made = world.running_job()
    world.clock.pass_(100)
    world.settle()
    world.context.store.charge([world.lease(made)], now=world.clock.now)
    world.clock.pass_(-3600)
    world.settle()
    world.report(made, "ended", code="succeeded")
    world.backend.end(world.lease(made))
    world.settle()
    assert charged(world, made) == pytest.approx(100)


def test_an_attempt_that_starts_for_minutes_and_never_runs_costs_nothing(world: World) -> None:
    made = JobService(world.context).submit(STUDENT1, job())
    world.settle()
    for _ in range(10):
        world.clock.pass_(15)
        world.settle()
    world.backend.end(world.lease(made))
    world.settle()
    assert world.lease(made) == f"{made.id}.2"
    assert charged(world, made) == 0


def test_what_a_slow_engine_shows_as_alive_was_so_when_it_was_asked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = world.running_job()
    world.clock.pass_(100)
    answer = FakeBackend.status

    def slow(backend: FakeBackend, *arguments: Any, **more: Any) -> Any:
        found = answer(backend, *arguments, **more)
        world.clock.pass_(7)
        return found

    monkeypatch.setattr(FakeBackend, "status", slow)
    world.settle()
    world.backend.end(world.lease(made))
    world.settle()
    assert charged(world, made) == 100


def test_warm_containers_are_released_before_a_session_starts(world: World) -> None:
    world.running_session()
    assert world.backend.warm_releases == 1


class Overlapping(FakeBackend):
    """Returns the status of a lease only after its start has ended."""

    asked: threading.Event
    started: threading.Event

    def start(self, order: LaunchOrder) -> Handle:
        assert self.asked.wait(60)
        return super().start(order)

    def status(
        self, leases: Mapping[str, Handle | None], *, trusted: Collection[str] = ()
    ) -> Mapping[str, AttemptStatus]:
        seen = super().status(leases, trusted=trusted)  # nothing yet
        self.asked.set()
        assert self.started.wait(60)
        return seen


def test_a_start_that_finishes_during_a_status_call_is_not_dead(
    tmp_path: Path,
) -> None:
    backend = Overlapping(devices=(device(0),))
    backend.asked, backend.started = threading.Event(), threading.Event()
    context = build(new_store(), backend, FakeHub(), Clock(), tmp_path)
    world = World(
        context, backend, FakeHub(), Clock(), Loop(context, node="local", decision_clock=no_time)
    )
    made = JobService(context).submit(STUDENT1, job())
    world.loop.cycle()
    threading.Thread(
        target=lambda: world.loop.wait_for_actions(60) and backend.started.set(), daemon=True
    ).start()
    eventually_starting(world, made)
    world.loop.cycle()
    assert world.see(made).state == "starting"
    assert world.lease(made).endswith(".1")
    world.loop.close()


def eventually_starting(world: World, made: RequestOut) -> None:
    """Wait until the thread that starts the job has stored its intent."""
    deadline = time.monotonic() + 60
    while world.see(made).state != "starting":
        assert time.monotonic() < deadline


def test_an_action_that_fails_does_not_hurry_the_next_cycle(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would fail again at once: a job can cause that by a folder in the place of its notice."""
    made = world.running_job()
    RequestTermination(world.context).halt(STUDENT1, made.id)
    executor, tried = ManualExecutor(), list[object]()

    def refuse(*arguments: object, **_: object) -> None:
        tried.append(arguments)
        raise Unavailable("The notice cannot be written.")

    monkeypatch.setattr(FakeBackend, "request_checkpoint", refuse)
    loop = Loop(world.context, node="local", decision_clock=no_time, threads=executor)
    for _ in range(3):
        loop.cycle()
        before = world.context.notifier.version
        while executor.waiting:
            executor.work()
    assert len(tried) == 3
    assert world.context.notifier.version == before
