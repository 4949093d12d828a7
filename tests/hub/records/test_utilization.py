"""The bounded series of the use of an attempt."""

from __future__ import annotations

import pytest

from carrel.hub.records.utilization import (
    MOST_POINTS,
    UtilizationPoint,
    UtilizationSeries,
    UtilizationSummary,
)


def reading(cores: float | None = 1.0, memory: int = 10) -> UtilizationPoint:
    return UtilizationPoint(cores=cores, memory_bytes=memory, readings=1)


def filled(times: list[float], **values: object) -> UtilizationSeries:
    series, before = UtilizationSeries(), None
    for at in times:
        series = series.extended(before, at, reading(**values))  # type: ignore[arg-type]
        before = at
    return series


def test_a_reading_is_a_point_and_two_in_one_interval_are_merged() -> None:
    series = UtilizationSeries().extended(None, 3.0, reading(None, 30))
    series = series.extended(3.0, 5.0, reading(0.5, 20))
    assert series == UtilizationSeries(
        begins=3.0,
        seconds=5.0,
        points=(UtilizationPoint(cores=0.5, memory_bytes=30, readings=2),),
    )


def test_a_late_reading_fills_the_intervals_that_it_covers() -> None:
    series = UtilizationSeries().extended(None, 0.0, reading(None, 1))
    series = series.extended(0.0, 21.0, reading(2.0, 7))
    assert [point.cores for point in series.points] == [None, 2.0, 2.0, 2.0, 2.0]


def test_a_gap_has_no_values() -> None:
    series = filled([0.0, 5.0]).extended(None, 21.0, reading(None, 7))
    assert [point.memory_bytes for point in series.points] == [10, 10, None, None, 7]


def test_a_day_has_a_bounded_number_of_points_and_keeps_its_peak() -> None:
    series = UtilizationSeries().extended(None, 0.0, reading(None, 999))
    for step in range(1, 86400 // 5):
        series = series.extended(5.0 * (step - 1), 5.0 * step, reading(1.5, 10))
    assert MOST_POINTS // 2 <= len(series.points) <= MOST_POINTS
    assert series.seconds == 640.0
    assert series.summary == UtilizationSummary(mean_cores=1.5, peak_memory_bytes=999)


def test_the_mean_is_weighted_by_readings() -> None:
    series = filled([0.0, 1.0, 2.0, 3.0], cores=1.0).extended(5.0, 6.0, reading(5.0))
    assert series.summary.mean_cores == pytest.approx(9 / 5)
