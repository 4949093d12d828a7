"""Merge a new version of a notebook into the student's (three-way merge by cells).

The old version is the common base:

1. A cell that only one side changed is changed.
2. A cell that both changed is kept twice: the new version's in its position, the student's below
   it, marked. The same for cells that nbgrader restores before grading.
3. New cells are added. A removed cell is removed, unless the student has changed it.
4. A cell that the student deleted stays deleted, unless it is new text, a test or an answer cell.
5. The order is that of the new version; the student's own cells stay behind their predecessors.

Merging the same version again changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .cell_match import KEPT, keys_of
from .document import Metadata, NotebookCell, NotebookDocument

_NOTE = "Your version, kept when the notebook was updated."
_NOTES = {"code": f"# {_NOTE}\n", "markdown": f"> *{_NOTE}*\n\n"}
_MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedNotebook:
    """``kept`` counts cells that are kept twice, ``returned`` deleted cells that are restored."""

    notebook: NotebookDocument
    kept: int = 0
    returned: int = 0


def merge_notebook(
    old: NotebookDocument, new: NotebookDocument, mine: NotebookDocument
) -> MergedNotebook:
    """Merge three versions; ``old`` is empty where the common base is unknown."""
    if new == old:
        return MergedNotebook(notebook=mine)
    if mine == old:
        return MergedNotebook(notebook=new)
    merging = _Merging.of(old, new, mine)
    cells = merging.merged()
    return MergedNotebook(
        notebook=NotebookDocument(
            cells=tuple(_with_ids(cells)),
            metadata=_three_way(old.metadata, new.metadata, mine.metadata),
            minor=max(new.minor, mine.minor),
        ),
        kept=merging.kept,
        returned=merging.returned,
    )


@dataclass(slots=True, kw_only=True)
class _Merging:
    """Cells by key; ``placed`` are cells of the result in the order of the new version."""

    old: Mapping[str, NotebookCell]
    new: Mapping[str, NotebookCell]
    mine: Mapping[str, NotebookCell]
    placed: dict[str, NotebookCell] = field(default_factory=dict)
    copies: dict[str, NotebookCell] = field(default_factory=dict)
    returned: int = 0

    @classmethod
    def of(cls, old: NotebookDocument, new: NotebookDocument, mine: NotebookDocument) -> _Merging:
        keys = keys_of(old.cells, new.cells, mine.cells)
        return cls(
            old=dict(zip(keys.old, old.cells, strict=True)),
            new=dict(zip(keys.new, new.cells, strict=True)),
            mine=dict(zip(keys.mine, mine.cells, strict=True)),
        )

    @property
    def kept(self) -> int:
        return len(self.copies)

    def merged(self) -> list[NotebookCell]:
        for key, new in self.new.items():
            self._place(key, new)
        order, cells = list(self.placed), dict(self.placed)
        at = 0
        for key, cell in self._student_cells():
            if key in self.placed:
                at = order.index(key) + 1
            elif cell is not None:
                order.insert(at, key)
                cells[key] = cell
                at += 1
        return [cells[key] for key in order]

    def _place(self, key: str, new: NotebookCell) -> None:
        """Choose the cell for a position of the new version, and the copy below it."""
        old, mine = self.old.get(key), self.mine.get(key)
        if mine is None:
            if old is None or old.content != new.content or new.is_locked or new.is_answer:
                self.placed[key] = new
                self.returned += old is not None
            return
        untouched = old is not None and mine.content == old.content
        same_version = old is not None and new.content == old.content and not new.is_locked
        if mine.content == new.content or (same_version and not untouched):
            self.placed[key] = _in_place(old, new, mine)
            return
        if untouched:
            self.placed[key] = new
            return
        self.placed[key] = new
        self.copies[key] = _copy(mine)

    def _student_cells(self) -> Iterator[tuple[str, NotebookCell | None]]:
        """The student's cells in order, each followed by its copy; None for removed ones."""
        known = {(cell.source, cell.kind) for cell in self.mine.values() if KEPT in cell.metadata}
        for key, cell in self.mine.items():
            old = self.old.get(key)
            if old is None or key in self.new:
                yield key, cell
            elif cell.content == old.content:
                yield key, None
            else:
                yield key, _without_grading(cell)
            copy = self.copies.get(key)
            if copy is not None and (copy.source, copy.kind) not in known:
                yield f"copy of {key}", copy


def _in_place(old: NotebookCell | None, new: NotebookCell, mine: NotebookCell) -> NotebookCell:
    """The student's text and outputs, with the changes of the new version's metadata."""
    before = {} if old is None else old.metadata
    return replace(
        mine, id=new.id or mine.id, metadata=_three_way(before, new.metadata, mine.metadata)
    )


def _copy(mine: NotebookCell) -> NotebookCell:
    """A copy of the student's cell below the new one, which is not graded."""
    return replace(
        mine,
        id=f"kept-{_digest(mine)}",
        source=_NOTES.get(mine.kind, "") + mine.source,
        metadata={**_without_grading(mine).metadata, KEPT: True},
    )


def _without_grading(cell: NotebookCell) -> NotebookCell:
    """Remove nbgrader's metadata: a grade ID that the new version lacks would be an error."""
    metadata = {name: each for name, each in cell.metadata.items() if name != "nbgrader"}
    return replace(cell, metadata=metadata)


def _three_way(old: Metadata, new: Metadata, mine: Metadata) -> dict[str, object]:
    """Merge by key: the student's value where only the student changed it, else the new one."""
    merged: dict[str, object] = {}
    for name in [*mine, *(each for each in new if each not in mine)]:
        was, is_, own = (each.get(name, _MISSING) for each in (old, new, mine))
        chosen = own if is_ == was else is_
        if chosen is not _MISSING:
            merged[name] = chosen
    return merged


def _with_ids(cells: Sequence[NotebookCell]) -> Iterator[NotebookCell]:
    """Give each cell a unique ID; existing ones are kept."""
    taken: set[str] = set()
    given = {cell.id for cell in cells}
    for cell in cells:
        id_, number = cell.id, 0
        while not id_ or id_ in taken:
            number += 1
            id_ = f"{_digest(cell)}-{number}"
            if id_ in given:
                id_ = ""
        taken.add(id_)
        yield cell if id_ == cell.id else replace(cell, id=id_)


def _digest(cell: NotebookCell) -> str:
    return hashlib.sha256(f"{cell.kind}\n{cell.source}".encode("utf-8", "replace")).hexdigest()[:12]
