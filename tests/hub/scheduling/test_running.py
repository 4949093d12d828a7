"""When what runs is expected to end, also where it was expected to be over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carrel.hub.scheduling.running import expected_end

from .values import HOUR, NOW, holding

JOB = replace(holding("run", "a0", ends_in=10 * HOUR), since=NOW, expected=600.0)


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
def test_what_outlives_its_expectation_is_given_twice_as_long(ran: float, ends: float) -> None:
    assert expected_end(JOB, NOW + ran) == NOW + ends


@pytest.mark.parametrize(("ran", "ends"), [(0, 0), (1, 60), (59, 60), (61, 120)])
def test_what_was_expected_to_take_no_time_is_given_a_minute(ran: float, ends: float) -> None:
    assert expected_end(replace(JOB, expected=0.0), NOW + ran) == NOW + ends


def test_what_was_asked_to_go_ends_now() -> None:
    assert expected_end(replace(JOB, leaving=True), NOW + 60) == NOW + 60


def test_what_is_known_by_its_limit_alone_ends_with_it() -> None:
    assert expected_end(replace(JOB, expected=None), NOW + HOUR) == NOW + 10 * HOUR
