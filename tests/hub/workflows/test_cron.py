"""Times of cron expressions, across changes of daylight saving time and long gaps."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.errors import InvalidInput
from carrel.hub.workflows.cron import MOST_COUNTED, CronTimes

BERLIN = "Europe/Berlin"


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def shown(moment: float | None) -> str:
    assert moment is not None
    return datetime.fromtimestamp(moment, UTC).isoformat(" ", "minutes")[:16]


def test_times_are_in_the_time_zone() -> None:
    times = CronTimes.parse("0  6 * * 1-5", BERLIN)
    assert times.expression == "0 6 * * 1-5"
    assert shown(times.after(at("2026-11-26T04:59"))) == "2026-11-26 05:00"
    assert shown(times.after(at("2026-11-27T05:00"))) == "2026-11-30 05:00"


def test_a_time_that_does_not_exist_runs_right_after_the_change_of_the_clock() -> None:
    times = CronTimes.parse("30 2 * * *", BERLIN)
    first = times.after(at("2026-03-28T12:00"))
    assert shown(first) == "2026-03-29 01:00"  # 03:00 in Berlin
    assert shown(times.after(first or 0)) == "2026-03-30 00:30"


def test_a_time_that_exists_twice_runs_once() -> None:
    times = CronTimes.parse("30 2 * * *", BERLIN)
    first = times.after(at("2026-10-24T12:00"))
    assert shown(first) == "2026-10-25 00:30"
    assert shown(times.after(first or 0)) == "2026-10-26 01:30"


def test_the_newest_time_and_the_number_before_it() -> None:
    times = CronTimes.parse("0 * * * *", "UTC")
    first = at("2026-11-26T10:00")
    assert times.newest(first, first) == (first, 0)
    assert times.newest(first, first + 3599) == (first, 0)
    assert times.newest(first, first + 3 * 3600 + 5) == (first + 3 * 3600, 3)


def test_a_long_gap_is_not_counted_to_its_end() -> None:
    times = CronTimes.parse("* * * * *", BERLIN)
    first, now = at("2016-11-26T10:00"), at("2026-11-26T10:00") + 5
    assert times.newest(first, now) == (now - 5, MOST_COUNTED)


@pytest.mark.parametrize(
    "expression",
    ["", "* * * *", "* * * * * *", "61 * * * *", "@daily", "a b c d e", "0 0 31 2 *", "0 0 30 2 *"],
)
def test_invalid_expressions_are_refused(expression: str) -> None:
    with pytest.raises(InvalidInput, match="is not a cron expression that has times") as refused:
        CronTimes.parse(expression, "UTC")
    assert refused.value.field == "cron"


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "a\0b"])
def test_unknown_time_zones_are_refused(zone: str) -> None:
    with pytest.raises(InvalidInput, match="no time zone") as refused:
        CronTimes.parse("0 6 * * *", zone)
    assert refused.value.field == "zone"


EXPRESSIONS = st.sampled_from(
    ["*/7 * * * *", "30 2 * * *", "0 */5 * * *", "15 1,2,3 * * *", "0 0 1 * *", "5 4 * * 0"]
)
YEAR = st.integers(int(at("2026-01-01T00:00")), int(at("2027-01-01T00:00")))


@given(EXPRESSIONS, YEAR, st.integers(0, 40 * 86400))
def test_newest_agrees_with_steps_of_after(expression: str, begin: int, span: int) -> None:
    times = CronTimes.parse(expression, BERLIN)
    first = times.after(begin)
    assert first is not None
    now, steps = first + span, [first]
    while len(steps) <= MOST_COUNTED and (following := times.after(steps[-1]) or 0.0) <= now:
        steps.append(following)
    assert all(one < other for one, other in pairwise(steps))
    if len(steps) <= MOST_COUNTED:
        assert times.newest(first, now) == (steps[-1], len(steps) - 1)
