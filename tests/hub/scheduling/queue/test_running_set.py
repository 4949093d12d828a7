"""Expected ends of running requests, also past their runtime estimates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.scheduling.queue.running_set import RunningSet, expected_end, expected_seconds
from carrel.hub.scheduling.quota.tree import GroupTree

from ..values import HOUR, NOW, allocation, group, pending

JOB = replace(allocation("run", "a0", ends_in=10 * HOUR), since=NOW, expected=600.0)


@pytest.mark.parametrize(
    ("ran", "ends"),
    [
        (0, 600),
        (600, 600),
        (601, 1200),
        (1200, 1200),
        (1201, 2400),
        (9 * HOUR, 10 * HOUR),
        (10 * HOUR, 10 * HOUR),
        (11 * HOUR, 11 * HOUR),
    ],
)
def test_an_exceeded_runtime_estimate_is_doubled(ran: float, ends: float) -> None:
    assert expected_end(JOB, NOW + ran) == NOW + ends


@pytest.mark.parametrize(("ran", "ends"), [(0, 0), (1, 60), (59, 60), (61, 120)])
def test_a_runtime_estimate_of_zero_becomes_a_minute(ran: float, ends: float) -> None:
    assert expected_end(replace(JOB, expected=0.0), NOW + ran) == NOW + ends


@pytest.mark.parametrize(
    ("done", "left"),
    [
        (0, 600),
        (500, 100),
        (600, 600),
        (601, 599),
        (1199, 1),
        (1200, 1200),
        (10 * HOUR - 1, 2401),
        (20 * HOUR, HOUR),
    ],
)
def test_the_remaining_estimate_of_a_stopped_run(done: float, left: float) -> None:
    request = replace(pending("again", 2, seconds=HOUR), expected=600.0, done=2 * done)
    assert expected_seconds(request) == left


def test_a_leaving_allocation_ends_now() -> None:
    assert expected_end(replace(JOB, leaving=True), NOW + 60) == NOW + 60


def test_without_an_estimate_the_time_limit_is_the_end() -> None:
    assert expected_end(replace(JOB, expected=None), NOW + HOUR) == NOW + 10 * HOUR


def test_ends_kept_over_time_equal_those_computed_again() -> None:
    runs = [
        replace(JOB, request_id="outlived"),
        replace(JOB, request_id="later", expected=5 * HOUR),
        replace(JOB, request_id="limit", expected=None, until=NOW + 2 * HOUR),
        replace(JOB, request_id="leaving", leaving=True),
    ]
    tree = GroupTree([group(JOB.group)])
    running = RunningSet(tree, runs, now=NOW)
    for hours in (0, 0.25, 1, 3, 3, 11, 2):
        now = NOW + hours * HOUR
        running.advance(now)
        assert list(running.ends()) == list(RunningSet(tree, runs, now=now).ends())
        assert running.ends_in(JOB.group, JOB.owner) == list(running.ends())
    for each in runs:
        assert running.remove(each.request_id) == each
    assert list(running.ends()) == []
