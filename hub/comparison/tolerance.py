"""Compare numbers under an absolute and a relative tolerance, and texts that contain numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

from .schemas import ABSOLUTE, RELATIVE, LargestOut

_LONGEST = 40
"""Digits of a number; anything longer is text."""
_NUMBER: Final = re.compile(
    r"(?<![\w.])[-+]?(?:"
    rf"(?:\d{{1,{_LONGEST}}}(?:\.\d{{0,{_LONGEST}}})?|\.\d{{1,{_LONGEST}}})(?:[eE][-+]?\d{{1,4}})?"
    r"(?!\d|\.\d)"
    r"|(?:nan|inf(?:inity)?)(?!\w))",
    re.IGNORECASE,
)
_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]{6,16}\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Limits for the difference between two numbers, of which the larger one holds.

    Attributes:
        relative: part of the larger magnitude, as in ``math.isclose`` (PEP 485): symmetric.
        absolute: in the unit of the numbers.
        pixel: the most by which a colour of a pixel may differ, of 255.
    """

    relative: float = RELATIVE
    absolute: float = ABSOLUTE
    pixel: int = 0

    def accepts(self, a: Decimal, b: Decimal) -> bool:
        """Return whether two numbers are equal; NaN equals NaN, and an infinity only itself."""
        if a.is_nan() or b.is_nan():
            return a.is_nan() and b.is_nan()
        if a.is_infinite() or b.is_infinite():
            return a == b
        limit = max(Decimal(self.absolute), Decimal(self.relative) * max(abs(a), abs(b)))
        return a == b or abs(a - b) <= limit


EXACT: Final = Tolerance(relative=0, absolute=0)


@dataclass(slots=True, kw_only=True)
class LargestDifference:
    """Collects by how much numbers differ beyond the tolerance."""

    numbers: int = 0
    absolute: float | None = None
    relative: float | None = None

    def add(self, a: Decimal, b: Decimal) -> None:
        """Add two numbers that differ."""
        self.numbers += 1
        if not a.is_finite() or not b.is_finite():
            return
        absolute = float(abs(a - b))
        relative = float(abs(a - b) / max(abs(a), abs(b)))
        if absolute != float("inf"):
            self.absolute = max(self.absolute or 0.0, absolute)
        self.relative = max(self.relative or 0.0, relative)

    def out(self) -> LargestOut:
        return LargestOut(numbers=self.numbers, absolute=self.absolute, relative=self.relative)


@dataclass(frozen=True, slots=True)
class NumericText:
    """A line as the text between its numbers, and its numbers.

    Spaces beside numbers do not count: programs pad columns by the widest number. Nor do addresses
    of objects in memory, which differ in every process.
    """

    between: tuple[str, ...]
    numbers: tuple[Decimal, ...]


@lru_cache(maxsize=50_000)
def numeric_text(line: str) -> NumericText:
    """Split a line into its numbers and the text between them."""
    line = _ADDRESS.sub("0x", line)
    between, numbers, end = list[str](), list[Decimal](), 0
    for found in _NUMBER.finditer(line):
        between.append(" ".join(line[end : found.start()].split()))
        numbers.append(Decimal(found.group()))
        end = found.end()
    rest = line[end:]
    between.append(" ".join(rest.split()) if numbers else rest.rstrip())
    return NumericText(tuple(between), tuple(numbers))


def same_text(a: str, b: str, tolerance: Tolerance) -> bool:
    """Return whether two lines are equal but for numbers within the tolerance."""
    if a == b:
        return True
    left, right = numeric_text(a), numeric_text(b)
    return left.between == right.between and all(
        map(tolerance.accepts, left.numbers, right.numbers)
    )


def add_differences(a: str, b: str, tolerance: Tolerance, largest: LargestDifference) -> None:
    """Add the numbers of two lines that differ, if the text between them is the same."""
    left, right = numeric_text(a), numeric_text(b)
    if left.between == right.between:
        for one, other in zip(left.numbers, right.numbers, strict=True):
            if not tolerance.accepts(one, other):
                largest.add(one, other)
