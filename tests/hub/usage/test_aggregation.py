"""Metrics of the past are right for all edges of windows and intervals."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.records.usage import DAY, Capacity, Flow, UsageRow, Window
from carrel.hub.usage import aggregation
from carrel.hub.usage.reports import window_of

MOMENTS = st.integers(0, 1000).map(float)


@given(
    spans=st.lists(st.tuples(MOMENTS, MOMENTS, st.integers(1, 4)), max_size=8),
    buckets=st.integers(1, 7),
    now=st.integers(1, 1000).map(float),
)
def test_levels_are_means_over_each_interval(
    spans: list[tuple[float, float, int]], buckets: int, now: float
) -> None:
    """They equal sums over the overlap with each lease, which would read all leases."""
    window = Window(since=200, until=800, buckets=buckets)
    lasting = [(min(a, b), max(a, b), n) for a, b, n in spans if max(a, b) <= now]
    inside = [span for span in lasting if span[0] < window.until and span[1] > window.since]
    begun = flow(window, [(a, n) for a, _, n in inside])
    ended = flow(window, [(b, n) for _, b, n in inside if b < window.until])
    means = aggregation.mean_levels(window, begun, ended, now)
    for number, mean in enumerate(means):
        start = window.since + number * window.width
        end = min(start + window.width, now)
        seconds = fsum(n * max(0.0, min(b, end) - max(a, start)) for a, b, n in lasting)
        assert mean == pytest.approx(seconds / (end - start), abs=1e-6)
    assert len(means) == sum(window.since + n * window.width < now for n in range(buckets))


def flow(window: Window, moments: Iterable[tuple[float, float]]) -> tuple[Flow, ...]:
    """Sum amounts by the interval of the window that contains their time."""
    found: dict[int, list[tuple[float, float]]] = {}
    for at, amount in moments:
        begun = max(at, window.since)
        found.setdefault(aggregation.bucket_of(window, begun), []).append(
            (begun - window.since, amount)
        )
    return tuple(
        Flow(
            bucket=bucket,
            amount=fsum(amount for _, amount in found[bucket]),
            offset=fsum(offset * amount for offset, amount in found[bucket]),
        )
        for bucket in sorted(found)
    )


def test_parts_of_an_amount_add_up_to_the_whole() -> None:
    parts = aggregation.split(0.0, 3.0, 0.1, [1.0, 2.0, 7.0])
    assert len(parts) == 3
    assert fsum(parts) == 0.1


@pytest.mark.parametrize(
    ("percent", "expected"), [(50, 3.0), (90, 5.0), (100, 5.0), (1, 1.0), (20, 1.0), (21, 2.0)]
)
def test_nearest_rank(percent: int, expected: float) -> None:
    assert aggregation.nearest_rank([1.0, 2.0, 3.0, 4.0, 5.0], percent) == expected


def test_utilization_counts_devices_that_were_healthy_at_the_time() -> None:
    window = Window(since=0, until=400, buckets=4)
    changes = [Capacity(at=150, healthy=4), Capacity(at=250, healthy=2)]
    capacity = aggregation.mean_capacity(window, changes, 350)
    assert capacity == (None, 4.0, 3.0, 2.0)
    assert aggregation.share([1.0, 1.0, 3.0, 4.0], capacity) == (None, 0.25, 1.0, 1.0)
    assert aggregation.share([1.0], [0.0]) == (None,)


def test_days_without_use_are_shown_too() -> None:
    used = UsageRow(day=DAY, charged=7.0)
    found = aggregation.every_day([used], 100.0, 3 * DAY)
    assert [(row.day, row.charged) for row in found] == [(0.0, 0.0), (DAY, 7.0), (2 * DAY, 0.0)]


@pytest.mark.parametrize(("span", "parts"), [("day", 24), ("week", 28), ("term", 18)])
def test_a_span_ends_with_the_current_interval(span: str, parts: int) -> None:
    now = 1_795_258_800.5
    window = window_of(span, now)  # type: ignore[arg-type]
    assert window.buckets == parts
    assert window.until - window.width <= now < window.until
    # Monday, midnight: hours and quarters of a day begin there too.
    assert (window.since - 4 * DAY) % window.width == 0
