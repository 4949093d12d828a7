"""Find which elements of two lists belong together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher

Pair = tuple[int | None, int | None]
"""Indices of an element in both lists; None where a list does not have it."""
MOST_ALIGNED = 2000
"""Elements; longer lists are compared position by position: the time grows with the square."""


def aligned(
    a: Sequence[Hashable], b: Sequence[Hashable], same: Callable[[int, int], bool]
) -> Iterator[Pair]:
    """Yield the pairs of two lists in order.

    Args:
        a: keys of the first list; elements with equal keys may belong together.
        b: keys of the second list.
        same: whether the elements at two indices are equal.
    """
    begin, shorter = 0, min(len(a), len(b))
    while begin < shorter and same(begin, begin):
        begin += 1
    end = 0
    while end < shorter - begin and same(len(a) - 1 - end, len(b) - 1 - end):
        end += 1
    yield from ((index, index) for index in range(begin))
    yield from _middle(a, b, begin, len(a) - end, len(b) - end)
    yield from ((len(a) - each, len(b) - each) for each in range(end, 0, -1))


def _middle(
    a: Sequence[Hashable], b: Sequence[Hashable], begin: int, end_a: int, end_b: int
) -> Iterator[Pair]:
    left, right = a[begin:end_a], b[begin:end_b]
    if left == right or max(len(left), len(right)) > MOST_ALIGNED:
        yield from _side_by_side(begin, end_a, begin, end_b)
        return
    for _, from_a, to_a, from_b, to_b in SequenceMatcher(None, left, right).get_opcodes():
        yield from _side_by_side(begin + from_a, begin + to_a, begin + from_b, begin + to_b)


def _side_by_side(from_a: int, to_a: int, from_b: int, to_b: int) -> Iterator[Pair]:
    both = min(to_a - from_a, to_b - from_b)
    yield from ((from_a + each, from_b + each) for each in range(both))
    yield from ((index, None) for index in range(from_a + both, to_a))
    yield from ((None, index) for index in range(from_b + both, to_b))
