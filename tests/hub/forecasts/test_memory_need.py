"""What the owner of a job that ran out of memory is told, on any engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.interfaces.run_times import Basis, NoRunTimes, RunTimeForecast
from carrel.hub.records.requests import Cause, CauseCode, NewRequest, RequestRecord
from carrel.hub.records.utilization import UtilizationPoint, UtilizationSeries
from carrel.hub.schemas import RequestOut

from ..world import World, world

__all__ = ["world"]

MIB = 1 << 20
GIB = 1 << 30


def measure(world: World, made: RequestOut, *memory: int) -> None:
    """Store what the job has used, in readings five seconds apart."""
    points = tuple(UtilizationPoint(memory_bytes=each, readings=1) for each in memory)
    world.context.store.put_utilization({world.lease(made): UtilizationSeries(points=points)})


def succeed(world: World, peak: int, **parameters: object) -> None:
    made = world.running_job(parameters=parameters)
    measure(world, made, peak)
    world.report(made, "ended", code="succeeded", message="Ran 1 cell without an error.")
    world.backend.end(world.lease(made))
    world.settle(2)


def told(world: World, made: RequestOut, **memory: object) -> str:
    """End a job for lack of memory as its runner reports it; return the message of its cause."""
    world.report(made, "ended", code="out_of_memory", message="Killed for memory.", memory=memory)
    world.backend.end(world.lease(made))
    world.settle(2)
    return message(world, made)


def message(world: World, made: RequestOut) -> str:
    cause = world.see(made).cause
    assert cause is not None
    assert cause.code == "out_of_memory"
    return cause.message


def test_without_earlier_jobs_it_is_a_lower_bound(world: World) -> None:
    assert told(world, world.running_job(), used=9 * GIB, limit=8 * GIB) == (
        "Killed for memory. It would have needed at least 9.0 GiB. Submit it again with a memory "
        "limit of 14 GiB or more, or use less."
    )


def test_what_was_asked_for_counts(world: World) -> None:
    said = told(world, world.running_job(), used=100 * MIB, wanted=7 * GIB)
    assert "at least 7.1 GiB." in said
    said = told(world, world.running_job(), used=100 * MIB, wanted=74_000 * GIB)
    assert said.endswith("Use less memory: nodes do not have so much.")


def test_an_earlier_job_with_the_same_parameters_tells_it(world: World) -> None:
    succeed(world, 12 * GIB, epochs=64)
    made = world.running_job(parameters={"epochs": 64})
    assert told(world, made, used=9 * GIB, limit=8 * GIB) == (
        "Killed for memory. It would have needed about 12 GiB, as 1 earlier job with the same code "
        "and parameters did. Submit it again with a memory limit of 15 GiB, or use less."
    )


def test_earlier_jobs_with_other_parameters_tell_it(world: World) -> None:
    for epochs in (16, 32, 64):
        succeed(world, GIB + epochs * GIB // 16, epochs=epochs)
    made = world.running_job(parameters={"epochs": 128})
    said = told(world, made, used=8 * GIB, limit=8 * GIB)
    assert "about 9.0 GiB, by what 3 earlier jobs of the same code used with other" in said
    assert "a memory limit of 12 GiB, or" in said


def test_a_machine_without_memory_says_nothing_on_the_limit_of_the_job(world: World) -> None:
    made = world.running_job(memory_bytes=8 * GIB)
    measure(world, made, 2 * GIB)
    said = told(world, made, used=0, limit=0)
    assert "at least 2.0 GiB. Its memory limit of 8.0 GiB is above that" in said
    assert "memory limit of 3" not in said


def test_what_the_engine_alone_has_seen_is_completed_by_what_was_measured(world: World) -> None:
    made = world.running_job()
    measure(world, made, 300 * MIB, 700 * MIB)
    cause = Cause(code=CauseCode.OUT_OF_MEMORY, message="Its container exceeded its limit.")
    world.backend.end(world.lease(made), exit_status=-9, cause=cause)
    world.settle(2)
    assert message(world, made) == (
        "Its container exceeded its limit. It would have needed at least 700 MiB. Submit it again "
        "with a memory limit of 1050 MiB or more, or use less."
    )


def test_memory_of_a_device_needs_another_model(world: World) -> None:
    said = told(world, world.running_job(), used=10 * GIB, wanted=GIB, device=True)
    assert "at least 11 GiB. Use less device memory: no other model of this pool has more" in said
    said = told(world, world.running_job(), used=900 * GIB, wanted=GIB, device=True)
    assert "Use less device memory: no other model of this pool has more than 901 GiB." in said


def test_only_models_with_more_memory_than_its_own_device_are_named(world: World) -> None:
    made = world.running_job()
    store, lease = world.context.store, world.context.store.request(made.id).lease
    assert lease is not None
    listed = [
        each
        if each.id in lease.devices
        else replace(each, model="Larger", memory_bytes=2 * each.memory_bytes)
        for each in store.devices()
    ]
    store.sync_devices("local", listed)
    said = told(world, made, used=GIB, wanted=GIB, device=True)
    assert said.endswith("or a model with more: Larger.")


class OneHour(NoRunTimes):
    """Each job is expected to run for an hour."""

    def forecast(self, request: NewRequest | RequestRecord, now: float) -> RunTimeForecast:
        return RunTimeForecast(seconds=3600, low=3600, high=3600, basis=Basis.OWNER)


def test_growth_of_several_devices_is_that_of_one(world: World) -> None:
    world.context = replace(world.context, run_times=OneHour())
    world.restart()
    made = world.running_job(devices=2)
    points = tuple(
        UtilizationPoint(device_bytes=2 * (GIB + each * MIB), readings=1) for each in range(64)
    )
    world.context.store.put_utilization({world.lease(made): UtilizationSeries(points=points)})
    said = told(world, made, used=GIB, device=True)
    assert "grew steadily, by 12 MiB a minute" in said, "a MiB in 5 seconds"


@pytest.mark.parametrize("memory", [{}, {"used": -1, "wanted": True}, {"used": "9"}, {"used": 1e9}])
def test_a_damaged_report_tells_nothing(world: World, memory: dict[str, object]) -> None:
    said = told(world, world.running_job(), **memory)
    assert "What it would have needed is not known" in said
