"""The marks of the steps of a job, from the progress that it reports."""

from __future__ import annotations

import pytest

from carrel.hub.insight.health.step_pace import step_times
from carrel.hub.records.events import EventRecord
from carrel.hub.records.json_value import Json
from carrel.hub.runtime.step_progress import StepProgress, steps_after


def after(
    before: StepProgress | None, at: float, done: Json, of: Json, *, cell: int = 1, epoch: int = 1
) -> StepProgress | None:
    data: dict[str, Json] = {"number": cell, "done": done, "of": of}
    event = EventRecord(id=1, request_id="j", epoch=epoch, at=at, kind="progress", data=data)
    return steps_after(before, event)


def loop(
    found: StepProgress | None, start: float, count: int, pace: float, cell: int = 1
) -> StepProgress | None:
    for number in range(count + 1):
        found = after(found, start + pace * number, number, count, cell=cell)
    return found


def test_a_loop_of_any_length_keeps_few_marks_that_tell_its_pace() -> None:
    found = None
    for number in range(5_001):
        at = float(number) if number <= 2_500 else 2_500.0 + 2.0 * (number - 2_500)
        found = after(found, at, number, 5_000)
    assert found is not None
    assert len(found.marks) <= 64
    assert found.marks[0] == (0.0, 0.0)
    times = step_times(found.marks)
    assert times is not None
    assert (times.earlier, times.later) == pytest.approx((1.0, 2.0), rel=0.05)


def test_a_loop_that_runs_again_and_again_is_one_loop() -> None:
    found = None
    for again in range(5):
        found = loop(found, 100.0 * again, 9, 10.0)
    assert found is not None
    assert found.longest_loop.marks[-1] == (490.0, 45.0)


def test_the_longest_loop_of_an_attempt_counts() -> None:
    found = loop(None, 0.0, 20, 10.0, cell=2)
    found = loop(found, 500.0, 20, 1.0, cell=3)
    found = loop(found, 600.0, 20, 0.5, cell=4)
    assert found is not None
    assert (found.cell, found.longest_loop.cell) == (4, 2)
    later = after(found, 700.0, 1, 20, epoch=2)
    assert later is not None
    assert later.longest_loop == later, "a new attempt starts from the beginning"


@pytest.mark.parametrize(
    ("done", "of"), [(5, None), (6, 5), (-1, 5), (float("nan"), 5), ("5", 9), (5, 1e300), (1, True)]
)
def test_progress_without_a_usable_end_is_left_out(done: Json, of: Json) -> None:
    assert after(None, 0.0, done, of) is None
