"""Graphs in layers: boxes do not overlap, arrows go down and around boxes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.web.html.layered_graph import BOX_HEIGHT, BOX_WIDTH, Arrow, GraphLayout, layout


def test_jobs_are_below_those_that_they_wait_for() -> None:
    found = layout(["a", "b", "c"], [Arrow("a", "c"), Arrow("b", "c")])
    assert found.boxes["a"][1] == found.boxes["b"][1] < found.boxes["c"][1]
    middle = (found.boxes["a"][0] + found.boxes["b"][0]) / 2
    assert found.boxes["c"][0] == pytest.approx(middle, abs=1)


def test_lines_that_could_cross_do_not() -> None:
    found = layout(["a", "b", "c", "d"], [Arrow("a", "d"), Arrow("b", "c")])
    assert found.boxes["d"][0] < found.boxes["c"][0]


def test_an_arrow_over_a_layer_passes_beside_its_box() -> None:
    found = layout(["a", "b", "c"], [Arrow("a", "b"), Arrow("b", "c"), Arrow("a", "c")])
    left, top = found.boxes["b"]
    crossing = [x for x, y in points(found.paths[2][0]) if top <= y <= top + BOX_HEIGHT]
    assert crossing
    assert all(x < left or x > left + BOX_WIDTH for x in crossing)


def test_a_graph_without_nodes_is_empty() -> None:
    assert layout([], []) == GraphLayout(width=12, height=0, boxes={}, paths=[])


def points(path: str) -> Iterator[tuple[float, float]]:
    numbers = [float(each) for each in re.findall(r"-?[\d.]+", path)]
    yield from zip(numbers[::2], numbers[1::2], strict=True)


@given(st.sets(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40))
def test_no_boxes_overlap_and_all_arrows_lead_down(pairs: set[tuple[int, int]]) -> None:
    names = [str(each) for each in range(13)]
    arrows = [Arrow(str(a), str(b)) for a, b in sorted(pairs) if a < b]
    found = layout(names, arrows)
    for one, other in combinations(found.boxes.values(), 2):
        assert abs(one[0] - other[0]) >= BOX_WIDTH or abs(one[1] - other[1]) >= BOX_HEIGHT
    for x, y in found.boxes.values():
        assert 0 <= x <= found.width - BOX_WIDTH
        assert 0 <= y <= found.height - BOX_HEIGHT
    for arrow, (line, _) in zip(arrows, found.paths, strict=True):
        heights = [y for _, y in points(line)]
        assert heights == sorted(heights)
        assert heights[0] == found.boxes[arrow.first][1] + BOX_HEIGHT
        assert heights[-1] < found.boxes[arrow.then][1]
