"""Expected ends of graphs of jobs on the present queue."""

from __future__ import annotations

from dataclasses import replace

from carrel.hub.scheduling.cycle.graph_estimates import GraphJob, graph_ends
from carrel.hub.scheduling.model.snapshot import (
    UNTIL_RELEASED,
    Allocation,
    Device,
    Group,
    Kind,
    PendingRequest,
    Snapshot,
)

LAB = Group(name="lab", max_devices=9, max_devices_per_user=9)


def snapshot(*pending: PendingRequest, devices: int = 2, busy: int = 0) -> Snapshot:
    """Return a pool of which some devices are busy until 100 by expectation, 500 by limit."""
    found = [
        Device(id=f"D{number}", node="n", index=number, model="H100", memory_bytes=1)
        for number in range(devices)
    ]
    allocations = [
        Allocation(
            request_id=f"other{number}",
            owner="ben",
            group="lab",
            devices=(f"D{number}",),
            since=0.0,
            until=500.0,
            expected=100.0,
        )
        for number in range(busy)
    ]
    return Snapshot(
        devices=tuple(found),
        groups=(LAB,),
        pending=pending,
        allocations=tuple(allocations),
    )


def job(name: str, *, held: bool = False) -> PendingRequest:
    return PendingRequest(
        id=name,
        kind=Kind.JOB,
        owner="ada",
        group="lab",
        devices=1,
        seconds=1000.0,
        submitted_at=0.0,
        not_before=UNTIL_RELEASED if held else None,
    )


DIAMOND = {
    "a": GraphJob(seconds=10.0),
    "b": GraphJob(after=frozenset("a"), seconds=20.0),
    "c": GraphJob(after=frozenset("a"), seconds=30.0),
    "d": GraphJob(after=frozenset("bc"), seconds=5.0),
}
JOBS = (job("a"), *(job(name, held=True) for name in "bcd"))


def test_branches_run_side_by_side_where_there_are_devices() -> None:
    ends = graph_ends(snapshot(*JOBS), DIAMOND, 0.0)
    assert ends == {"a": 10.0, "b": 30.0, "c": 40.0, "d": 45.0}


def test_branches_wait_for_each_other_on_one_device() -> None:
    ends = graph_ends(snapshot(*JOBS, devices=1), DIAMOND, 0.0)
    assert ends["d"] == 65.0


def test_the_graph_waits_for_running_requests_as_expected_or_by_their_limits() -> None:
    pool = snapshot(*JOBS, devices=1, busy=1)
    assert graph_ends(pool, DIAMOND, 0.0)["d"] == 165.0
    assert graph_ends(pool, DIAMOND, 0.0, others_to_limits=True)["d"] == 565.0


def test_a_running_job_has_its_remaining_time() -> None:
    pool = snapshot(*JOBS[1:])
    running = Allocation(
        request_id="a", owner="ada", group="lab", devices=("D0",), since=-50.0, until=950.0
    )
    pool = replace(pool, allocations=(running,))
    assert graph_ends(pool, DIAMOND, 0.0) == {"a": 10.0, "b": 30.0, "c": 40.0, "d": 45.0}


def test_a_job_that_can_never_start_has_no_end_nor_those_after_it() -> None:
    wide = replace(job("a"), devices=3)
    assert graph_ends(snapshot(wide, *JOBS[1:]), DIAMOND, 0.0) == {}
    # Without a job before it that is known, a held one is not released.
    assert graph_ends(snapshot(job("b", held=True)), {"b": GraphJob(seconds=1.0)}, 0.0) == {}


def test_saved_work_is_not_repeated_unless_others_use_their_limits() -> None:
    saved = replace(job("a"), done=300.0)
    jobs = {"a": GraphJob(seconds=500.0)}
    (end,) = graph_ends(snapshot(saved), jobs, 0.0).values()
    assert round(end) == 200
    (latest,) = graph_ends(snapshot(saved), jobs, 0.0, others_to_limits=True).values()
    assert latest == 500.0
