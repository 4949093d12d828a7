"""Remaining times: from cells of comparable attempts, and from whole run times."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.insight.remaining_time import CellHistory, CellPosition, remaining_of_run
from carrel.hub.interfaces.run_times import Basis, CellTimes, RunTimeForecast

MINUTES = (60.0, 600.0, 120.0)


def attempt(*seconds: float, keys: str = "abc", conditions: str = "") -> CellTimes:
    cells = dict(zip(keys, seconds, strict=True))
    return CellTimes(
        lease_id="j-1.1", ended_at=0.0, conditions=conditions, cells=cells, complete=True
    )


def history(*attempts: CellTimes) -> CellHistory:
    made = CellHistory()
    for each in attempts:
        made.observe(each)
    return made


def at(
    *done: float, ahead: str, running: float = 0.0, keys: str = "abc", conditions: str = ""
) -> CellPosition:
    before = dict(zip(keys, done, strict=False))
    return CellPosition(done=before, ahead=list(ahead), running=running, conditions=conditions)


POSITIONS = {
    "before the first cell": (at(ahead="abc"), 780.0),
    "after the first one": (at(60.0, ahead="bc"), 720.0),
    "inside the second one": (at(60.0, ahead="bc", running=450.0), 270.0),
    "in a cell that takes longer than ever": (at(60.0, ahead="bc", running=700.0), 820.0),
    "in the last one": (at(60.0, 600.0, ahead="c", running=100.0), 20.0),
    "after an edited cell": (at(1.0, ahead="bc", keys="x"), 720.0),
}


@pytest.mark.parametrize("case", POSITIONS)
def test_what_is_left_is_what_the_cells_ahead_took(case: str) -> None:
    position, seconds = POSITIONS[case]
    found = history(attempt(*MINUTES), attempt(*MINUTES)).remaining(position)
    assert found is not None
    assert (found.seconds, found.by_cells, found.runs) == (seconds, True, 2)
    assert found.low <= seconds <= found.high


def test_cells_are_compared_with_those_of_two_attempts_with_the_same_parameters() -> None:
    known = history(
        attempt(10, 20, 30, conditions="a100"),
        attempt(12, 20, 30, keys="abx", conditions="a100"),
        attempt(99, 99, 99, conditions="other"),
    )
    done = {"a": 22.0, "b": 30.0, "c": 50.0, "new": 7.0}
    assert known.expected(done, "a100") == (52.0, 31.0)
    assert known.expected(done, "other") is None
    assert known.expected({}, "a100") is None


def test_without_the_cells_ahead_nothing_is_known() -> None:
    known = history(attempt(*MINUTES))
    assert known.remaining(at(60.0, ahead="bd")) is None
    assert CellHistory().remaining(at(ahead="abc")) is None


def test_attempts_with_the_same_parameters_are_preferred() -> None:
    few, many = attempt(*MINUTES, conditions="few"), attempt(60.0, 6000.0, 120.0)
    found = history(few, many, many, many).remaining(at(60.0, ahead="bc", conditions="few"))
    assert found is not None
    assert (found.seconds, found.runs) == (720.0, 1)


def test_a_slow_device_slows_down_what_is_left_where_earlier_attempts_show_that() -> None:
    slower = [attempt(*(each * factor for each in MINUTES)) for factor in (1.0, 2.0, 4.0)]
    found = history(*slower).remaining(at(180.0, ahead="bc"))
    assert found is not None
    assert found.seconds == pytest.approx(3 * 720.0)
    # Reading takes as long, whatever the number of steps that follow is.
    steps = [attempt(60.0, 600.0 * count, 120.0) for count in (1, 2, 4)]
    found = history(*steps).remaining(at(70.0, ahead="bc"))
    assert found is not None
    assert found.seconds == 1320.0


def test_nine_of_ten_attempts_end_inside_their_intervals_which_get_narrower() -> None:
    drawn, known = random.Random(5), CellHistory()  # noqa: S311
    inside, widths = [0, 0, 0], [0.0, 0.0, 0.0]
    for number in range(400):
        speed = drawn.lognormvariate(0, 0.2)
        seconds = [each * speed * drawn.lognormvariate(0, 0.1) for each in MINUTES]
        if number >= 100:
            for done in range(3):
                found = known.remaining(at(*seconds[:done], ahead="abc"[done:]))
                assert found is not None
                inside[done] += found.low <= sum(seconds[done:]) <= found.high
                widths[done] += found.high - found.low
        known.observe(attempt(*seconds))
    assert all(0.86 <= each / 300 <= 0.98 for each in inside), inside
    assert widths == sorted(widths, reverse=True)


FORECAST = RunTimeForecast(seconds=100.0, low=80.0, high=125.0, basis=Basis.PROGRAM, runs=4)


def test_a_run_time_is_conditional_on_the_time_that_has_passed() -> None:
    fresh = remaining_of_run(FORECAST, 0.0)
    assert fresh.seconds == pytest.approx(100.0)
    assert (fresh.low, fresh.high) == (pytest.approx(80.0, rel=0.01), pytest.approx(125, rel=0.01))
    late = remaining_of_run(FORECAST, 120.0)
    assert 0 < late.low < late.seconds < late.high < 30
    assert (late.basis, late.runs, late.by_cells) == (Basis.PROGRAM, 4, False)
    # What is impossible by the forecast runs for twice as long as until now.
    assert remaining_of_run(FORECAST, 1000.0).seconds == 1000.0


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e7))
def test_remaining_times_are_ordered_and_never_negative(
    low: float, width: float, elapsed: float
) -> None:
    forecast = RunTimeForecast(seconds=low + width / 2, low=low, high=low + width, basis=None)
    found = remaining_of_run(forecast, elapsed)
    assert 0 <= found.low <= found.seconds <= found.high
