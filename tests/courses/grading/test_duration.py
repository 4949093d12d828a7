"""Estimates of the duration of grading, before and during a run."""

from __future__ import annotations

import pytest

from carrel.courses.grading import duration
from carrel.courses.model.records import GradingPace
from carrel.hub.messages import units

PACE = GradingPace(start=1.0, each=0.5)
BEGIN = 1000.0


def left(expected: float, total: int, *came: float, now: float) -> float:
    times = [BEGIN + at for at in came]
    return duration.left(expected, total, times, began=BEGIN, now=BEGIN + now)


def test_the_estimate_is_the_start_and_a_share_for_each_submission() -> None:
    one, many = duration.expected(PACE, 1), duration.expected(PACE, 61)
    assert many - one == pytest.approx(60 * 0.5)
    assert one > 1.5


def test_without_measurements_there_is_no_estimate() -> None:
    assert duration.expected(GradingPace(), 60) == 0
    assert left(0, 60, now=10) == 0


def test_parallel_submissions_share_the_time() -> None:
    assert duration.pace_of(2.0, [(1.0, 1.0), (3.0, 3.0)], 4) == GradingPace(start=2.0, each=0.5)


def test_the_first_submissions_do_not_count_for_the_pace() -> None:
    cold = [(5.0, 5.0), (6.0, 6.0)]
    warm = [(6.0 + 0.5 * number, 1.0) for number in range(1, 9)]
    assert duration.pace_of(2.0, [*cold, *warm], 2) == GradingPace(start=2.0, each=0.5)


def test_an_earlier_run_is_preferred_to_the_release_check() -> None:
    steady = [BEGIN + 2 * number for number in range(20)]
    odd = [BEGIN + 90 * number for number in range(20)]
    assert duration.as_seen(PACE, [steady, steady, odd]) == GradingPace(start=1.0, each=2.0)
    assert duration.as_seen(PACE, [[BEGIN, BEGIN + 50]]) == PACE


def test_the_remaining_time_decreases_before_the_first_verdict() -> None:
    assert [left(30, 60, now=at) for at in (0, 10, 20, 40)] == [30, 20, 10, 3]


def test_the_remaining_time_of_a_run_that_hangs_is_unknown() -> None:
    assert left(30, 60, now=46) == 0
    assert left(30, 60, 5.0, now=46) == 0
    steady = [10.0 + number for number in range(30)]
    assert left(30, 60, *steady, now=39 + 8) > 0
    assert left(30, 60, *steady, now=39 + 11) == 0
    assert left(30, 60, *steady, 51.0, now=51.0) > 0


def test_the_remaining_time_follows_the_verdicts() -> None:
    seen = [10.0 + number for number in range(30)]
    assert left(30, 60, *seen, now=39) == pytest.approx(30, rel=0.1)
    assert left(0, 60, *seen, now=39) == pytest.approx(30)


def test_two_simultaneous_verdicts_are_not_a_pace() -> None:
    assert left(60, 60, 5.0, 5.1, now=5.1) == pytest.approx(42, rel=0.1)


def test_a_finished_run_has_no_time_left() -> None:
    assert left(30, 2, 1.0, 2.0, now=2.0) == 0


def test_the_remaining_time_is_a_range_while_little_is_known() -> None:
    assert duration.bounds(60.0, done=3) == (40.0, 90.0)
    assert duration.bounds(60.0, done=duration.ENOUGH) == (60.0, 60.0)
    assert units.remaining(40.0, 90.0) == "40 s to 1 min 30 s left"
    assert units.remaining(60.0, 60.0) == "about 1 min left"
