"""Steps are compared with earlier ones of the same run, and with the same program elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from carrel.hub.insight.health.step_pace import (
    StepComparison,
    StepHistory,
    SteppedRun,
    StepTimes,
    step_times,
)


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


@pytest.mark.parametrize(
    "found",
    [
        [(float("nan"), each) for each in range(20)],
        [(10.0 * each, float("inf")) for each in range(20)],
        [(10.0 * (each or -1e308), float(each)) for each in range(20)],
        [(-10.0 * each, float(each)) for each in range(20)],
        [(10.0 * each, -1.0 * each) for each in range(20)],
        [(10.0 * each, 5.0) for each in range(20)],
        marks([1e6] * 20),
        marks([1e-12] * 20, steps=1e13),
        marks([1.0] * 10 + [1e3] * 10),
        marks([1.0] * 10 + [1e-3] * 10),
    ],
    ids=[
        "no time",
        "no number of steps",
        "a time long ago",
        "a clock that goes back",
        "steps that go back",
        "no progress",
        "slower than plausible",
        "faster than plausible",
        "other work in the second half",
        "other work in the first half",
    ],
)
def test_impossible_steps_say_nothing(found: list[tuple[float, float]]) -> None:
    assert step_times(found) is None


EVEN, SLOW = StepTimes(1.0, 1.0, 1.0), StepTimes(1.5, 1.5, 1.5)
GROWING = StepTimes(1.0, 1.5, 1.2)
FORGED = StepTimes(0.01, 0.01, 0.01)


def run(
    where: str, times: StepTimes = EVEN, *, program: str = "train", conditions: str = "lr=1"
) -> SteppedRun:
    """Return a run of ``OWNER DEVICE``."""
    owner, device = where.split()
    return SteppedRun(
        program=program, conditions=conditions, device=device, owner=owner, times=times
    )


def compared(found: SteppedRun, *before: SteppedRun) -> StepComparison:
    history = StepHistory()
    for each in before:
        history.add(each)
    return history.compare(found)


@pytest.mark.parametrize(
    ("before", "usual"),
    [
        ([], None),
        (["ann B", "bob B"], 1.0),
        (["bob B", "cid C"], 1.0),
        (["ann B", "ann C"], 1.0),
        (["ann B", "ann B"], None),
        (["bob B", "bob C", "bob D"], None),
        (["ann A", "bob A"], None),
    ],
    ids=[
        "the first run",
        "of two users, one of them the owner",
        "of two other users",
        "of the owner on two devices",
        "of the owner on one device",
        "of one other user",
        "on the same device",
    ],
)
def test_what_is_usual_rests_on_two_users_or_on_two_devices_of_the_only_one(
    before: list[str], usual: float | None
) -> None:
    found = compared(run("ann A", SLOW), *map(run, before))
    assert found.elsewhere == (None if usual is None else (1.5, usual))
    assert (found.before is None) == (usual is None)


def test_one_user_cannot_set_what_is_usual() -> None:
    forged = [run(f"eve {device}", FORGED) for device in "BCDEF" * 3]
    for honest in (["bob B"], ["bob B", "cid C"], ["ann B"]):
        found = compared(run("ann A"), *forged, *map(run, honest), *forged)
        assert found.elsewhere == (1.0, 1.0)
        assert found.before == (1.0, 1.0)


def test_how_much_slower_a_program_becomes_is_known_from_other_conditions_too() -> None:
    before = [
        run("bob B", conditions="lr=2"),
        run("cid C", GROWING, conditions="lr=3"),
        run("dan D", conditions="lr=4"),
    ]
    found = compared(run("ann A", GROWING), *before)
    assert found.elsewhere is None
    assert found.before == (1.5, 1.5)
    found = compared(run("ann A", GROWING), *before, run("bob B"), run("cid C"))
    assert found.before == (1.5, 1.0), "runs in the same conditions tell better"


def test_steps_are_compared_with_those_of_the_program_on_other_devices() -> None:
    history = StepHistory()
    for where in ("ann A", "ann B", "ann C"):
        history.add(run(where))
    assert history.compare(run("ann A", SLOW)).elsewhere == (1.5, 1.0)
    assert history.compare(run("ann A", SLOW, program="other")).elsewhere is None
    assert history.compare(run("ann A", SLOW, conditions="lr=2")).elsewhere is None
    history.forget("C")
    assert history.compare(run("ann A", SLOW)).elsewhere is None, "B alone is no usual"


def test_a_program_that_becomes_slower_everywhere_is_expected_to() -> None:
    assert compared(run("ann A", GROWING)).before is None, "it may do so by design"
    found = compared(run("ann A", GROWING), run("bob B", GROWING), run("cid C", GROWING))
    assert found.before == (1.5, 1.5)
