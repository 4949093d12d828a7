"""Match the cells of three notebooks: by ID, by nbgrader's grade ID, and by text.

Text is compared only in notebooks without cell IDs: old ones, or those of programs that drop IDs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from .document import NotebookCell

KEPT = "carrel_kept"
"""Metadata of a copy that merging has added for the student; it is never matched."""
_ALIKE = 0.5
_LONGEST_COMPARED = 5_000
"""Characters; comparing takes quadratic time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """A key for each cell of three notebooks; cells with the same key are the same."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    mine: tuple[str, ...]


def keys_of(
    old: Sequence[NotebookCell], new: Sequence[NotebookCell], mine: Sequence[NotebookCell]
) -> Keys:
    """Match the old version, the new version and the student's notebook."""
    by_text = not all(cell.id for cell in (*old, *new, *mine))
    olds = [f"old {place}" for place in range(len(old))]
    to_old = _Matching(new, old)
    to_old.by_name()
    if by_text:
        to_old.by_equal_text()
        to_old.by_similar_text()
    news = [to_old.key(place, olds, "new") for place in range(len(new))]
    mine_to_old, mine_to_new = _Matching(mine, old), _Matching(mine, new)
    mine_to_old.by_name()
    _both(mine_to_old, olds, mine_to_new, news, lambda each: each.by_name())
    if by_text:
        # A cell with the text of the new version came from it, in an earlier merge.
        _both(mine_to_old, olds, mine_to_new, news, lambda each: each.by_equal_text())
        _both(mine_to_new, news, mine_to_old, olds, lambda each: each.by_equal_text())
        _both(mine_to_new, news, mine_to_old, olds, lambda each: each.by_similar_text())
    mines = [
        olds[mine_to_old.found[place]]
        if place in mine_to_old.found
        else mine_to_new.key(place, news, "mine")
        for place in range(len(mine))
    ]
    return Keys(old=tuple(olds), new=tuple(news), mine=tuple(mines))


@dataclass(slots=True)
class _Matching:
    """Cells with their positions in ``reference``, as far as they match; each position once."""

    cells: Sequence[NotebookCell]
    reference: Sequence[NotebookCell]
    found: dict[int, int] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    taken: set[int] = field(default_factory=set)

    def key(self, place: int, keys: Sequence[str], whose: str) -> str:
        return keys[self.found[place]] if place in self.found else f"{whose} {place}"

    def by_name(self) -> None:
        self._by(lambda cell: cell.id)
        self._by(lambda cell: cell.grade_id)

    def by_equal_text(self) -> None:
        cells, places = self._open_cells(), self._open_places()
        matcher = SequenceMatcher(
            None,
            [(self.reference[each].kind, self.reference[each].source) for each in places],
            [(self.cells[each].kind, self.cells[each].source) for each in cells],
            autojunk=False,
        )
        for block in matcher.get_matching_blocks():
            for step in range(block.size):
                cell, place = cells[block.b + step], places[block.a + step]
                if _may_be_one(self.cells[cell], self.reference[place]):
                    self._pair(cell, place)

    def by_similar_text(self) -> None:
        """Match in order: matches never cross."""
        places = self._open_places()
        for cell in self._open_cells():
            for number, place in enumerate(places):
                if _alike(self.cells[cell], self.reference[place]):
                    self._pair(cell, place)
                    places = places[number + 1 :]
                    break

    def _by(self, name: Callable[[NotebookCell], str]) -> None:
        places: dict[str, int] = {}
        for place in self._open_places():
            places.setdefault(name(self.reference[place]), place)
        places.pop("", None)
        for cell in self._open_cells():
            named = name(self.cells[cell])
            if named in places:
                self._pair(cell, places.pop(named))

    def _pair(self, cell: int, place: int) -> None:
        self.found[cell] = place
        self.taken.add(place)

    def _open_cells(self) -> list[int]:
        return [
            place
            for place, cell in enumerate(self.cells)
            if place not in self.found and place not in self.closed and KEPT not in cell.metadata
        ]

    def _open_places(self) -> list[int]:
        return [place for place in range(len(self.reference)) if place not in self.taken]


def _both(
    done: _Matching,
    done_keys: Sequence[str],
    next_: _Matching,
    next_keys: Sequence[str],
    match: Callable[[_Matching], None],
) -> None:
    """Continue a matching without the cells and keys that the other one has found."""
    used = {done_keys[place] for place in done.found.values()}
    next_.closed = set(done.found)
    next_.taken |= {place for place, key in enumerate(next_keys) if key in used}
    match(next_)


def _may_be_one(cell: NotebookCell, reference: NotebookCell) -> bool:
    """A program may drop nbgrader's metadata, but does not change the grade ID."""
    return cell.grade_id in ("", reference.grade_id)


def _alike(one: NotebookCell, other: NotebookCell) -> bool:
    if one.kind != other.kind or max(len(one.source), len(other.source)) > _LONGEST_COMPARED:
        return False
    if not _may_be_one(one, other):
        return False
    matcher = SequenceMatcher(None, one.source, other.source, autojunk=False)
    # The two quick ones are upper bounds of the last.
    return all(
        ratio() >= _ALIKE
        for ratio in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    )
