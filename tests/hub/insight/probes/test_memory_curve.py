"""The curve of memory over batches: lines, parabolas, and when there is none."""

from __future__ import annotations

import pytest

from carrel.hub.insight.probes.memory_curve import MemoryCurve, most_bytes

MIB = 1 << 20


def test_a_line_is_extrapolated() -> None:
    curve = MemoryCurve.fit((batch, (100 + batch) * MIB) for batch in (8, 16, 32))
    assert curve is not None
    assert curve.bytes_of(1000) == pytest.approx(1100 * MIB)
    assert curve.largest(1100 * MIB) == pytest.approx(1000, abs=1)
    assert curve.trusted


def test_memory_of_all_pairs_of_a_batch_is_a_parabola() -> None:
    curve = MemoryCurve.fit((batch, 100 * MIB + 4 * batch**2) for batch in (1024, 2048, 4096))
    assert curve is not None
    assert curve.bytes_of(16384) == pytest.approx(100 * MIB + 4 * 16384**2)
    assert curve.largest(100 * MIB + 4 * 16384**2) == pytest.approx(16384, abs=1)
    assert not curve.trusted


@pytest.mark.parametrize(
    "points",
    [
        [],
        [(8, 100 * MIB), (16, 200 * MIB)],
        [(8, 100 * MIB), (16, 101 * MIB), (32, 102 * MIB)],
        [(8, 0), (16, 0), (32, 0)],
    ],
    ids=["nothing", "two batches", "noise", "unknown"],
)
def test_there_is_no_curve_of(points: list[tuple[int, int]]) -> None:
    assert MemoryCurve.fit(points) is None


def test_without_a_curve_the_bound_grows_with_the_square() -> None:
    assert most_bytes([], 8) == float("inf")
    assert most_bytes([(8, 100)], 16) == 400
    assert most_bytes([(8, 100)], 4) == 100
    growth = 40 * MIB
    assert most_bytes([(8, 100 * MIB), (16, 100 * MIB + growth)], 32) == 100 * MIB + growth + (
        growth * (4 - 1) / (1 - 1 / 4)
    )


@pytest.mark.parametrize(
    "peaks",
    [{1: 1, 2: 1000, 1000: 10}, {1: 100, 2: 100, 3: 100}, {8: 100}, {}],
    ids=["falls", "constant", "one", "none"],
)
def test_memory_that_does_not_grow_gives_no_curve(peaks: dict[int, int]) -> None:
    """A falling line would let every larger batch fit."""
    assert MemoryCurve.fit((batch, mebibytes << 20) for batch, mebibytes in peaks.items()) is None
