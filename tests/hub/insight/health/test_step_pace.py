"""Steps are compared with earlier ones of the same run, and with the same program elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from carrel.hub.insight.health.step_pace import StepHistory, StepTimes, step_times


def marks(paces: Sequence[float], *, steps: float = 10.0) -> list[tuple[float, float]]:
    """Return marks ten steps apart, whose steps took so many seconds each."""
    found = [(100.0, 0.0)]
    for pace in paces:
        at, done = found[-1]
        found.append((at + steps * pace, done + steps))
    return found


@pytest.mark.parametrize(
    ("paces", "expected"),
    [
        ([1.0] * 20, StepTimes(1.0, 1.0, 1.0)),
        ([1.0] * 10 + [1.4] * 10, StepTimes(1.0, 1.4, 1.2)),
        ([1.0] * 9 + [90.0] + [1.0] * 10, StepTimes(1.0, 1.0, 1.0)),
        ([5.0] + [1.0] * 19, StepTimes(1.0, 1.0, 1.0)),
        ([1.0] * 7, None),
        ([0.1] * 20, None),
    ],
    ids=["even", "slower in the middle", "a pause", "a slow start", "few reports", "short"],
)
def test_steps_are_timed_by_medians(paces: Sequence[float], expected: StepTimes | None) -> None:
    found = step_times(marks(paces))
    if found is None or expected is None:
        assert found is expected
    else:
        assert (found.earlier, found.later, found.typical) == pytest.approx(
            (expected.earlier, expected.later, expected.typical)
        )


def test_steps_are_compared_with_those_of_the_program_on_other_devices() -> None:
    history, usual, slow = StepHistory(), StepTimes(1.0, 1.0, 1.0), StepTimes(1.5, 1.5, 1.5)
    assert history.compare("train", "A", slow).elsewhere is None
    for device in ("A", "B", "C"):
        history.add("train", device, usual)
    assert history.compare("train", "A", slow).elsewhere == (1.5, 1.0)
    assert history.compare("other", "A", slow).elsewhere is None
    history.forget("C")
    assert history.compare("train", "A", slow).elsewhere is None, "B alone is no usual"


def test_a_program_that_becomes_slower_everywhere_is_expected_to() -> None:
    history, growing = StepHistory(), StepTimes(1.0, 1.5, 1.2)
    before = history.compare("train", "A", growing).before
    assert before == (1.5, 1.0)
    history.add("train", "B", growing)
    history.add("train", "C", growing)
    taken, expected = history.compare("train", "A", growing).before
    assert math.isclose(taken, expected)
