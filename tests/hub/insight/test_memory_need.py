"""How much memory a job would have needed, by earlier jobs and by its growth."""

from __future__ import annotations

import math

import pytest

from carrel.hub.insight.memory_growth import steady_growth
from carrel.hub.insight.memory_need import CompletedRun, MemoryNeed, NeedBasis, memory_need

from .histories import plan_of

GIB = 1 << 30


def runs(*peaks: tuple[float, float], **more: str | float) -> list[CompletedRun]:
    """Return completed runs by batch and GiB."""
    return [CompletedRun(plan=plan_of(batch=b, **more), peak=round(g * GIB)) for b, g in peaks]


def test_a_higher_peak_of_the_same_parameters_is_what_it_needs() -> None:
    earlier = runs((64, 9), (64, 5), (64, 6), (64, 5.5))
    assert memory_need(plan_of(batch=64), 4 * GIB, earlier) == MemoryNeed(
        amount=6 * GIB, basis=NeedBasis.SAME_PARAMETERS, runs=3
    )


def test_lower_peaks_of_the_same_parameters_leave_a_lower_bound() -> None:
    """They tell more than how other parameters scale, and are refuted."""
    earlier = runs((16, 2), (32, 3), (64, 5), (128, 9))
    assert memory_need(plan_of(batch=64), 6 * GIB, earlier) == MemoryNeed(
        amount=6 * GIB, basis=NeedBasis.PEAK
    )


@pytest.mark.parametrize("count", [3, 8])
def test_other_parameters_are_extrapolated(count: int) -> None:
    batches = [16, 32, 64, 24, 48, 40, 56, 20][:count]
    earlier = runs(*((batch, 1 + batch / 16) for batch in batches))
    found = memory_need(plan_of(batch=128), 6 * GIB, earlier)
    assert found is not None
    assert found.basis is NeedBasis.OTHER_PARAMETERS
    assert found.amount == pytest.approx(9 * GIB, rel=0.15)
    assert found.runs == count


def test_only_runs_that_tell_something_are_counted() -> None:
    batches = [(16, 2), (32, 3), (64, 5)]
    earlier = [*runs(*batches), *runs((128, 9), optimizer="adam"), *runs((24, 0))]
    found = memory_need(plan_of(batch=128), 6 * GIB, earlier)
    assert found is not None
    assert (found.basis, found.runs) == (NeedBasis.OTHER_PARAMETERS, 3)


@pytest.mark.parametrize(
    "earlier",
    [
        runs((16, 2), (32, 3)),
        runs((16, 2), (32, 3), (64, 5), optimizer="adam"),
        runs((4, 2), (8, 3), (16, 4)),
    ],
    ids=["too few", "another text", "too far away"],
)
def test_without_enough_that_is_alike_it_is_a_lower_bound(earlier: list[CompletedRun]) -> None:
    found = memory_need(plan_of(batch=512), 6 * GIB, earlier)
    assert found == MemoryNeed(amount=6 * GIB, basis=NeedBasis.PEAK)


def test_steady_growth_is_extrapolated_to_the_expected_end() -> None:
    times = [5.0 * n for n in range(40)]
    growth = steady_growth(times, [1e9 + 1e6 * at for at in times])
    found = memory_need(plan_of(), 2 * GIB, [], growth, 100.0)
    assert found is not None
    assert found.basis is NeedBasis.GROWTH
    assert found.amount == pytest.approx(2 * GIB + 1e8, rel=0.01)


@pytest.mark.parametrize(
    "values",
    [
        [1e9 * (1 - 0.5**n) for n in range(40)],
        [1e9] * 40,
        [1e9 + 1e8 * (n % 7) for n in range(40)],
        [1e9 * n for n in range(15)],
    ],
    ids=["levels off", "constant", "given back", "too short"],
)
def test_other_courses_do_not_grow_steadily(values: list[float]) -> None:
    assert steady_growth([5.0 * n for n in range(len(values))], values) is None


def test_nothing_is_known_without_a_peak() -> None:
    assert memory_need(plan_of(), 0, []) is None
    assert memory_need(None, 0, runs((64, 9))) is None


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0, True])
def test_odd_parameters_leave_a_lower_bound(value: float) -> None:
    earlier = runs(*((batch, 1 + batch / 16) for batch in (16, 32, 64, 24, 48, 40, 56)), n=value)
    odd = memory_need(plan_of(batch=value), 6 * GIB, earlier)
    assert odd == MemoryNeed(amount=6 * GIB, basis=NeedBasis.PEAK)
