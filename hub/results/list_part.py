"""One part of a long list on a page that shows other things, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PART: Final = 100
"""Entries of one part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPart:
    """A part of a list.

    Attributes:
        number: of the part, from 1.
        total: the entries of the whole list.
    """

    number: int
    total: int

    @classmethod
    def of(cls, total: int, number: int) -> ListPart:
        """Return the part of that number; the last one if the list has fewer."""
        whole = cls(number=1, total=total)
        return cls(number=min(number, whole.last), total=total)

    @property
    def chosen(self) -> slice:
        return slice((self.number - 1) * PART, self.number * PART)

    @property
    def last(self) -> int:
        """Return how many parts there are."""
        return max(1, -(-self.total // PART))

    @property
    def ends(self) -> tuple[int, int]:
        """Return the positions of its first and its last entry, from 1."""
        return (self.number - 1) * PART + 1, min(self.number * PART, self.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownParts:
    """Which parts of its lists the page of a job shows: numbers from 1."""

    trials: int = 1
    files: int = 1
