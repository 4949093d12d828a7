"""Results of each policy for a few jobs, computed by hand."""

from __future__ import annotations

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.simulation.policies.policy import BASELINES, LAS_THRESHOLD, Policy
from carrel.hub.simulation.workload.jobs import TraceJob

from ..kit import job, played, site, spans

BLOCKED = (job("a", 0, 100), job("big", 1, 50, 2), job("late", 2, 10))


@pytest.mark.parametrize(
    ("policy", "jobs", "expected"),
    [
        pytest.param(
            "fifo",
            BLOCKED,
            {"a": [(0, 100)], "big": [(100, 150)], "late": [(150, 160)]},
            id="first come, strictly",
        ),
        pytest.param(
            "greedy",
            BLOCKED,
            {"a": [(0, 100)], "big": [(100, 150)], "late": [(2, 12)]},
            id="a job that fits passes",
        ),
        pytest.param(
            "sjf",
            (job("a", 0, 100, 2), job("long", 1, 50, 2), job("short", 2, 10, 2)),
            {"a": [(0, 100)], "long": [(110, 160)], "short": [(100, 110)]},
            id="the shortest of those that wait is next",
        ),
        pytest.param(
            "sjf",
            (job("a", 0, 100), job("big", 1, 5, 2), job("late", 2, 10)),
            {"a": [(0, 100)], "big": [(100, 105)], "late": [(105, 115)]},
            id="no job passes the shortest",
        ),
        pytest.param(
            "srtf",
            (job("a", 0, 100, 2), job("b", 10, 20, 2), job("c", 20, 95, 2)),
            {"a": [(0, 10), (30, 120)], "b": [(10, 30)], "c": [(120, 215)]},
            id="the one with less left stops the other",
        ),
    ],
)
def test_start_times_of_each_policy(
    policy: str, jobs: tuple[TraceJob, ...], expected: dict[str, list[tuple[float, float]]]
) -> None:
    assert spans(played(BASELINES[policy], jobs)) == expected


def test_the_job_with_the_least_predicted_service_is_next() -> None:
    jobs = (job("a", 0, 10, 2), job("long", 1, 50, 2), job("short", 2, 10, 2))
    told = {"long": 1.0, "short": 99.0}
    found = spans(played(BASELINES["qssf"], jobs, expected=told))
    assert found == {"a": [(0, 10)], "long": [(10, 60)], "short": [(60, 70)]}


def test_a_job_past_the_threshold_is_preempted_by_one_below_it() -> None:
    crossing = LAS_THRESHOLD / 2
    jobs = (job("a", 0, 5000, 2), job("b", 10, 100, 2))
    found = spans(played(BASELINES["las"], jobs))
    assert found == {
        "a": [(0, crossing), (crossing + 100, 5100)],
        "b": [(crossing, crossing + 100)],
    }


def test_in_the_second_queue_the_first_submitted_job_continues() -> None:
    jobs = (job("a", 0, 2000, 2), job("b", 1700, 2000, 2))
    assert spans(played(BASELINES["las"], jobs)) == {
        "a": [(0, 1700), (3300, 3600)],
        "b": [(1700, 3300), (3600, 4000)],
    }


def test_a_preemption_costs_the_restart_cost() -> None:
    jobs = (job("a", 0, 100, 2), job("b", 10, 20, 2))
    outcome = played(BASELINES["srtf"], jobs, site(restart_cost=60))
    stopped = outcome.runs[0]
    assert stopped.spans == [(0, 10), (30, 180)]
    assert (stopped.preemptions, stopped.lost, stopped.used) == (1, 120.0, 320.0)


def test_only_jobs_whose_devices_are_needed_are_stopped() -> None:
    # Two nodes of two: the last ones in the order are a1 and b1, on different nodes.
    jobs = (
        *(job("a0", 0, 100), job("a1", 0, 400), job("b0", 0, 300), job("b1", 0, 200)),
        job("new", 10, 5, 2),
    )
    outcome = played(BASELINES["srtf"], jobs, site(nodes=2))
    stopped = [run.job.id for run in outcome.runs if run.preemptions]
    assert len(stopped) == 2
    assert spans(outcome)["new"] == [(10, 15)]


def test_a_job_larger_than_a_node_gets_whole_nodes_and_a_rest() -> None:
    jobs = (job("one", 0, 10), job("gang", 0, 10, 5), job("two", 0, 20))
    outcome = played(BASELINES["greedy"], jobs, site(nodes=3, devices=2))
    assert spans(outcome) == {"one": [(0, 10)], "gang": [(0, 10)], "two": [(10, 30)]}


def test_a_job_that_no_nodes_could_hold_is_refused_before_anything_runs() -> None:
    with pytest.raises(InvalidInput, match="huge asks for 9 devices"):
        played(BASELINES["fifo"], (job("a", 0, 1), job("huge", 5, 1, 9)), site(4, 2))


def test_jobs_of_zero_length_and_equal_times() -> None:
    jobs = tuple(job(str(number), 5, 0, 2) for number in range(4))
    assert set(map(tuple, spans(played(BASELINES["fifo"], jobs)).values())) == {((5.0, 5.0),)}


def test_a_custom_order_is_a_function() -> None:
    widest_first = Policy(name="widest", order=lambda run, now: (-run.job.devices,))
    jobs = (job("a", 0, 10, 2), job("one", 1, 10), job("two", 2, 10, 2))
    found = spans(played(widest_first, jobs))
    assert found == {"a": [(0, 10)], "one": [(20, 30)], "two": [(10, 20)]}


def test_idle_devices_are_counted_apart_while_jobs_wait() -> None:
    outcome = played(BASELINES["fifo"], BLOCKED)
    assert outcome.stranded == 99.0
    assert outcome.free == 1 + 99 + 10
