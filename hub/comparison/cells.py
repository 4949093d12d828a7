"""Find which cells of two notebooks belong together: by nbdime, and those that were moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .alignment import Pair
from .outputs import joined

Cell = Mapping[str, Any]
MOST_CELLS: Final = 300
"""Cells between the equal ones at the beginning and at the end; more are compared by position."""


def paired_cells(a: Sequence[Cell], b: Sequence[Cell]) -> tuple[list[Pair], bool]:
    """Return the pairs of cells in the order of a page, and whether all of them were aligned.

    Equal cells at the beginning and at the end are left out of what nbdime compares, whose time
    grows with the square of the number of cells.
    """
    keys_a, keys_b = [_key(cell) for cell in a], [_key(cell) for cell in b]
    begin, shorter = 0, min(len(a), len(b))
    while begin < shorter and keys_a[begin] == keys_b[begin]:
        begin += 1
    end = 0
    while end < shorter - begin and keys_a[-1 - end] == keys_b[-1 - end]:
        end += 1
    left, right = a[begin : len(a) - end], b[begin : len(b) - end]
    small = max(len(left), len(right)) <= MOST_CELLS
    middle = (
        _split(list(_by_nbdime(left, right)), left, right)
        if small
        else _by_position(len(left), len(right))
    )
    pairs: list[Pair] = [(index, index) for index in range(begin)]
    pairs += [
        (None if one is None else one + begin, None if other is None else other + begin)
        for one, other in middle
    ]
    pairs += [(len(a) - each, len(b) - each) for each in range(end, 0, -1)]
    return pairs, small


def moved_cells(pairs: Sequence[Pair], a: Sequence[Cell], b: Sequence[Cell]) -> dict[int, int]:
    """Return the cells that only moved: the index in the first notebook by that in the second."""
    removed = dict[object, list[int]]()
    for one, other in pairs:
        if one is not None and other is None and joined(a[one].get("source")).strip():
            removed.setdefault(_key(a[one]), []).append(one)
    moved = dict[int, int]()
    for one, other in pairs:
        if one is None and other is not None and removed.get(_key(b[other])):
            moved[other] = removed[_key(b[other])].pop(0)
    return moved


def _by_nbdime(a: Sequence[Cell], b: Sequence[Cell]) -> Iterator[Pair]:
    if not a or not b:
        yield from ((index, None) for index in range(len(a)))
        yield from ((None, index) for index in range(len(b)))
        return
    # It takes half a second to import.
    from nbdime.diffing.notebooks import diff_notebooks  # noqa: PLC0415

    with_ids = _ids_tell(a, b)
    found = diff_notebooks(_sources(a, with_ids=with_ids), _sources(b, with_ids=with_ids))
    operations: list[dict[str, Any]] = next(
        (each["diff"] for each in found if each["key"] == "cells"), []
    )
    one = other = 0
    for operation in operations:
        while one < operation["key"]:
            yield one, other
            one, other = one + 1, other + 1
        match operation["op"]:
            case "addrange":
                for _ in operation["valuelist"]:
                    yield None, other
                    other += 1
            case "removerange":
                for _ in range(operation["length"]):
                    yield one, None
                    one += 1
            case "patch":
                yield one, other
                one, other = one + 1, other + 1
    yield from zip(range(one, len(a)), range(other, len(b)), strict=True)


def _split(pairs: Sequence[Pair], a: Sequence[Cell], b: Sequence[Cell]) -> Iterator[Pair]:
    """Separate a pair of different cells of which one is elsewhere in the other notebook: it moved.

    nbdime pairs cells that are merely similar.
    """
    removed = {_key(a[one]) for one, other in pairs if one is not None and other is None}
    added = {_key(b[other]) for one, other in pairs if one is None and other is not None}
    for one, other in pairs:
        if one is None or other is None or _key(a[one]) == _key(b[other]):
            yield one, other
        elif _key(a[one]) in added or _key(b[other]) in removed:
            yield one, None
            yield None, other
        else:
            yield one, other


def _by_position(a: int, b: int) -> Iterator[Pair]:
    both = min(a, b)
    yield from ((index, index) for index in range(both))
    yield from ((index, None) for index in range(both, a))
    yield from ((None, index) for index in range(both, b))


def _ids_tell(a: Sequence[Cell], b: Sequence[Cell]) -> bool:
    """Return whether the ids of cells name the same cells in both notebooks.

    Programs that number the cells give other cells the same ids.
    """
    sources = {cell.get("id"): _key(cell) for cell in a}
    shared = [cell for cell in b if cell.get("id") in sources]
    return 2 * sum(sources[cell.get("id")] == _key(cell) for cell in shared) >= len(shared) > 0


def _sources(cells: Sequence[Cell], *, with_ids: bool) -> dict[str, object]:
    """Return a notebook with nothing but the sources, which is all that nbdime compares here."""
    return {
        "cells": [
            {"cell_type": kind, "metadata": {}, "source": source}
            | ({"id": str(cell.get("id"))} if with_ids else {})
            | ({"outputs": [], "execution_count": None} if kind == "code" else {})
            for cell in cells
            for kind, source in (_key(cell),)
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5 if with_ids else 4,
    }


def _key(cell: Cell) -> tuple[str, str]:
    return str(cell.get("cell_type")), joined(cell.get("source"))
