"""Retries by the class of the error: limits, back-off, order and history."""

from __future__ import annotations

import pytest

from carrel.hub.records.error_classes import (
    DEVICE_FAULT_RETRIES,
    INFRASTRUCTURE_RETRIES,
    ErrorClass,
    back_off_seconds,
    error_class,
    retry_limit,
)
from carrel.hub.records.requests import CauseCode
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.schemas import RequestOut

from ..doubles import STUDENT1, STUDENT2
from ..requests.samples import job
from ..world import World, world

__all__ = ["world"]

RESET = "error in cell 1: ConnectionResetError: reset by peer"


def end_with(world: World, made: RequestOut, code: str, message: str = RESET) -> None:
    """Let the attempt report this end, and its processes exit."""
    lease = world.lease(made)
    world.report(made, "ended", code=code, message=message, details="")
    world.backend.end(lease)
    world.settle(2)


def lose(world: World, made: RequestOut) -> None:
    world.backend.end(world.lease(made))
    world.settle(2)


def causes(world: World, made: RequestOut, state: str) -> list[str]:
    events = world.context.store.events(made.id)
    return [str(e.data["cause"]) for e in events if e.data.get("state") == state]


def test_a_transient_error_is_retried_after_a_back_off_that_doubles(world: World) -> None:
    made = world.running_job(retries=2)
    end_with(world, made, "connection_failed")

    seen = world.see(made)
    assert seen.wait is not None
    assert (seen.state, seen.wait.reason, seen.cause) == ("queued", "back_off", None)
    assert seen.not_before == pytest.approx(world.clock.now + 5)
    assert "(retry 1 of 2)" in causes(world, made, "halted")[0]
    assert "'class': 'transient'" in causes(world, made, "halted")[0]

    world.clock.pass_(4.9)
    world.settle(2)
    assert world.see(made).state == "queued"
    world.clock.pass_(0.2)
    world.settle(2)
    assert (world.see(made).state, world.lease(made)) == ("starting", f"{made.id}.2")
    assert world.see(made).not_before is None

    world.claim(made)
    end_with(world, made, "connection_failed")
    assert world.see(made).not_before == pytest.approx(world.clock.now + 10)
    world.clock.pass_(10)
    world.settle(2)
    world.claim(made)
    end_with(world, made, "connection_failed")
    ended = world.see(made)
    assert ended.cause is not None
    assert (ended.state, ended.cause.code) == ("failed", "connection_failed")
    assert ended.cause.message == f"{RESET}. It was retried 2 times."


def test_a_request_that_backs_off_holds_nothing_and_blocks_nobody(world: World) -> None:
    made = world.running_job(devices=2, retries=1)
    end_with(world, made, "disk_full")
    other = JobService(world.context).submit(STUDENT2, job(devices=2))
    world.settle(2)
    assert (world.see(made).state, world.see(other).state) == ("queued", "starting")


def test_a_request_that_backs_off_can_be_cancelled(world: World) -> None:
    made = world.running_job(retries=1)
    end_with(world, made, "connection_failed")
    RequestTermination(world.context).cancel(STUDENT1, made.id)
    world.clock.pass_(600)
    world.settle(2)
    assert world.see(made).state == "cancelled"


def test_a_transient_error_without_retries_says_how_to_get_them(world: World) -> None:
    made = world.running_job()
    end_with(world, made, "connection_failed")
    ended = world.see(made)
    assert ended.cause is not None
    assert ended.state == "failed"
    assert "--retries 2" in ended.cause.message


@pytest.mark.parametrize("code", ["cell_error", "command_failed", "out_of_memory", "invalid_job"])
def test_user_errors_and_lack_of_memory_are_never_retried(world: World, code: str) -> None:
    made = world.running_job(retries=5)
    end_with(world, made, code, "why")
    ended = world.see(made)
    assert ended.cause is not None
    assert (ended.state, ended.cause.code) == ("failed", code)
    assert ended.cause.message.startswith("why")
    assert ended.lease is not None
    assert ended.lease.epoch == 1


def test_a_lost_job_is_retried_without_being_asked_for_up_to_the_limit(world: World) -> None:
    made = world.running_job()
    pauses = []
    for _ in range(INFRASTRUCTURE_RETRIES):
        lose(world, made)
        seen = world.see(made)
        pauses.append(0.0 if seen.not_before is None else seen.not_before - world.clock.now)
        world.clock.pass_(pauses[-1])
        world.settle(2)
        world.claim(made)
    lose(world, made)
    ended = world.see(made)
    assert ended.cause is not None
    assert (ended.state, ended.cause.code) == ("failed", "lost")
    assert "It was retried 3 times." in ended.cause.message
    assert pauses == pytest.approx([0, 5, 10])


def test_a_job_with_zero_retries_never_runs_twice(world: World) -> None:
    made = world.running_job(retries=0)
    lose(world, made)
    assert world.see(made).state == "failed"
    assert list(world.backend.attempts) == [f"{made.id}.1"]


def test_a_lost_job_goes_before_older_and_smaller_ones_of_its_class(world: World) -> None:
    older = JobService(world.context).submit(STUDENT2, job(devices=2, seconds=60))
    world.settle(2)
    world.claim(older)
    made = JobService(world.context).submit(STUDENT1, job(devices=2))
    waiting = JobService(world.context).submit(STUDENT1, job(devices=2, seconds=60))
    RequestTermination(world.context).cancel(STUDENT2, older.id)
    world.settle(3)
    first, second = (made, waiting) if world.see(made).state == "starting" else (waiting, made)
    world.claim(first)
    lose(world, first)
    assert (world.see(first).state, world.see(second).state) == ("starting", "queued")
    assert not world.see(first).expedited, "until it is granted devices"


def test_a_retry_survives_a_restart_of_the_service_in_the_back_off(world: World) -> None:
    made = world.running_job(retries=1)
    end_with(world, made, "connection_failed")
    world.restart()
    world.settle(2)
    assert world.see(made).state == "queued"
    world.clock.pass_(5)
    world.settle(2)
    assert world.see(made).state == "starting"


def test_every_error_has_a_class_and_every_class_its_limit() -> None:
    ends = {
        *("succeeded", "server_died", "stopped", "cancelled", "time_limit", "idle", "unclaimed"),
        *("preempted", "budget", "drained", "halted"),
    }
    without = {code for code in CauseCode if error_class(code) is None}
    assert without == {CauseCode(name) for name in ends} & set(CauseCode)
    limits = {
        (code, asked): retry_limit(code, asked)
        for code in (CauseCode.LOST, CauseCode.DEVICE_FAULT, CauseCode.DISK_FULL)
        for asked in (None, 0, 7)
    }
    assert list(limits.values()) == [
        *(INFRASTRUCTURE_RETRIES, 0, 7),
        *(DEVICE_FAULT_RETRIES, 0, DEVICE_FAULT_RETRIES),
        *(0, 0, 7),
    ]
    assert [retry_limit(CauseCode.CELL_ERROR, 7), retry_limit(CauseCode.OUT_OF_MEMORY, 7)] == [0, 0]


def test_the_back_off_doubles_up_to_its_maximum() -> None:
    transient = [back_off_seconds(ErrorClass.TRANSIENT, retry) for retry in (1, 2, 3, 8, 5000)]
    assert transient == [5, 10, 20, 600, 600]
    assert [back_off_seconds(ErrorClass.INFRASTRUCTURE, n) for n in (1, 2, 3)] == [0, 5, 10]
