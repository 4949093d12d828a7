"""How long grading lasts is said from what is known, and what is seen corrects it."""

from __future__ import annotations

import pytest

from carrel.courses.grading import duration
from carrel.courses.model.records import GradingPace

PACE = GradingPace(start=1.0, each=0.5)
BEGIN = 1000.0


def left(expected: float, total: int, *came: float, now: float) -> float:
    times = [BEGIN + at for at in came]
    return duration.left(expected, total, times, began=BEGIN, now=BEGIN + now)


def test_a_run_takes_its_start_once_and_each_submission_its_share() -> None:
    one, many = duration.expected(PACE, 1), duration.expected(PACE, 61)
    assert many - one == pytest.approx(60 * 0.5)
    assert one > 1.5


def test_of_what_was_never_tried_nothing_is_said() -> None:
    assert duration.expected(GradingPace(), 60) == 0
    assert left(0, 60, now=10) == 0


def test_submissions_beside_each_other_share_the_time() -> None:
    assert duration.pace_of(2.0, [(1.0, 1.0), (3.0, 3.0)], 4) == GradingPace(start=2.0, each=0.5)


def test_the_first_submissions_say_little_of_the_later_ones() -> None:
    cold = [(5.0, 5.0), (6.0, 6.0)]
    warm = [(6.0 + 0.5 * number, 1.0) for number in range(1, 9)]
    assert duration.pace_of(2.0, [*cold, *warm], 2) == GradingPace(start=2.0, each=0.5)


def test_an_earlier_run_says_more_than_the_check_before_the_release() -> None:
    steady = [BEGIN + 2 * number for number in range(20)]
    odd = [BEGIN + 90 * number for number in range(20)]
    assert duration.as_seen(PACE, [steady, steady, odd]) == GradingPace(start=1.0, each=2.0)
    assert duration.as_seen(PACE, [[BEGIN, BEGIN + 50]]) == PACE


def test_what_is_left_grows_less_while_nothing_has_come() -> None:
    assert [left(30, 60, now=at) for at in (0, 10, 20, 40)] == [30, 20, 10, 3]


def test_what_is_left_follows_what_is_seen() -> None:
    seen = [10.0 + number for number in range(30)]
    assert left(30, 60, *seen, now=39) == pytest.approx(30, rel=0.1)
    assert left(0, 60, *seen, now=39) == pytest.approx(30)


def test_two_verdicts_that_come_together_are_no_pace_yet() -> None:
    assert left(60, 60, 5.0, 5.1, now=5.1) == pytest.approx(42, rel=0.1)


def test_at_its_end_nothing_is_left() -> None:
    assert left(30, 2, 1.0, 2.0, now=2.0) == 0
