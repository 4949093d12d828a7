"""Draw a directed graph in layers from top to bottom, as inline SVG.

Layers by longest path, order within a layer by the mean place of the neighbours, arrows over
several layers through points between the boxes of each: K. Sugiyama, S. Tagawa, M. Toda, "Methods
for visual understanding of hierarchical system structures", IEEE Trans. SMC 11 (1981).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Final

BOX_WIDTH, BOX_HEIGHT = 148, 52
_GAP, _STEP, _MARGIN = 16, 44, 6
"""Two boxes fit on a phone."""
_POINT_WIDTH = 12
"""Of the place that an arrow takes in a layer that it crosses."""
_ARROW = 7
_SWEEPS: Final = 4


@dataclass(frozen=True, slots=True)
class Arrow:
    """From one node to another, each by its name; ``kind`` is its class in the drawing."""

    first: str
    then: str
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLayout:
    """Where boxes and arrows are, in units of the drawing.

    Attributes:
        boxes: the left upper corner of each node.
        paths: of the arrows, in their order: the line, and the head as a filled path.
    """

    width: int
    height: int
    boxes: Mapping[str, tuple[int, int]]
    paths: Sequence[tuple[str, str]]


def layout(nodes: Sequence[str], arrows: Sequence[Arrow]) -> GraphLayout:
    """Place the nodes of a graph without cycles; equal ones in the given order."""
    layers = _layers(nodes, arrows)
    chains = [_chain(number, arrow, layers) for number, arrow in enumerate(arrows)]
    rows = _rows(nodes, layers, chains)
    width = max((_row_width(row) for row in rows), default=0) + 2 * _MARGIN
    places = {}
    for depth, row in enumerate(rows):
        x = (width - _row_width(row)) / 2
        for item in row:
            places[item] = (x, _MARGIN + depth * (BOX_HEIGHT + _STEP))
            x += _width(item) + _GAP
    height = len(rows) * (BOX_HEIGHT + _STEP) - _STEP + 2 * _MARGIN if rows else 0
    boxes = {name: (round(places[name][0]), round(places[name][1])) for name in nodes}
    paths = [_path(chain, places) for chain in chains]
    return GraphLayout(width=round(width), height=height, boxes=boxes, paths=paths)


_Item = str | tuple[int, int]
"""A node, or the number of an arrow with a layer that it crosses."""


def _layers(nodes: Sequence[str], arrows: Sequence[Arrow]) -> Mapping[str, int]:
    """Return the layer of each node: the longest path to it."""
    before = defaultdict(set)
    for arrow in arrows:
        before[arrow.then].add(arrow.first)
    found: dict[str, int] = {}
    for name in TopologicalSorter({name: before[name] for name in nodes}).static_order():
        found[name] = max((found[other] + 1 for other in before[name]), default=0)
    return found


def _chain(number: int, arrow: Arrow, layers: Mapping[str, int]) -> Sequence[_Item]:
    crossed = range(layers[arrow.first] + 1, layers[arrow.then])
    return [arrow.first, *((number, layer) for layer in crossed), arrow.then]


def _rows(
    nodes: Sequence[str], layers: Mapping[str, int], chains: Sequence[Sequence[_Item]]
) -> list[list[_Item]]:
    """Return the items of each layer from left to right, with few crossings."""
    rows: list[list[_Item]] = [[] for _ in range(max(layers.values(), default=-1) + 1)]
    for name in nodes:
        rows[layers[name]].append(name)
    above, below = defaultdict[_Item, list[_Item]](list), defaultdict[_Item, list[_Item]](list)
    for chain in chains:
        for item in chain[1:-1]:
            assert isinstance(item, tuple)
            rows[item[1]].append(item)
        for upper, lower in pairwise(chain):
            above[lower].append(upper)
            below[upper].append(lower)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        for depth in range(len(rows)) if down else reversed(range(len(rows))):
            beside = depth - 1 if down else depth + 1
            if 0 <= beside < len(rows):
                rows[depth] = _ordered(rows[depth], rows[beside], neighbours)
    return rows


def _ordered(
    row: Sequence[_Item], beside: Sequence[_Item], neighbours: Mapping[_Item, Sequence[_Item]]
) -> list[_Item]:
    """Return a row by the mean place of the neighbours; an item without any keeps its place."""
    places = {item: (at + 0.5) / len(beside) for at, item in enumerate(beside)}

    def mean(numbered: tuple[int, _Item]) -> float:
        at, item = numbered
        found = [places[each] for each in neighbours.get(item, ())]
        return sum(found) / len(found) if found else (at + 0.5) / len(row)

    return [item for _, item in sorted(enumerate(row), key=mean)]


def _width(item: _Item) -> int:
    return BOX_WIDTH if isinstance(item, str) else _POINT_WIDTH


def _row_width(row: Sequence[_Item]) -> int:
    return sum(map(_width, row)) + _GAP * max(0, len(row) - 1)


def _path(chain: Sequence[_Item], places: Mapping[_Item, tuple[float, float]]) -> tuple[str, str]:
    """Return an arrow from the bottom of its first box to the top of its last one."""
    line = ""
    for upper, lower in pairwise(chain):
        x, y = places[upper][0] + _width(upper) / 2, places[upper][1] + BOX_HEIGHT
        to_x, to_y = places[lower][0] + _width(lower) / 2, places[lower][1]
        # The last piece ends where the head begins; through a layer it goes straight down.
        end = to_y - _ARROW if isinstance(lower, str) else to_y
        middle = (y + end) / 2
        line += f"{'L' if line else 'M'}{x:.0f} {y:.0f}"
        line += f"C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {end:.0f}"
    head = f"M{to_x:.0f} {to_y:.0f}l-5 {-_ARROW - 1}h10z"
    return line, head
