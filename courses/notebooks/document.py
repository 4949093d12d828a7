"""Read and write notebooks as values, for merging."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ...hub.records.json_value import parse_json

Metadata: TypeAlias = Mapping[str, object]
_FORMAT = 4
_FIRST_MINOR_WITH_IDS = 5
_KNOWN = ("id", "cell_type", "source", "metadata")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookCell:
    """One cell.

    Attributes:
        id: empty in notebook formats without cell IDs.
        kind: ``code``, ``markdown`` or ``raw``.
        rest: other members: outputs, execution count, attachments.
    """

    id: str
    kind: str
    source: str
    metadata: Metadata = field(default_factory=dict)
    rest: Metadata = field(default_factory=dict)

    @property
    def content(self) -> tuple[str, str, object]:
        """What a person wrote: no outputs and no metadata."""
        return self.kind, self.source, self.rest.get("attachments")

    @property
    def grade_id(self) -> str:
        """nbgrader's grade ID; empty without one."""
        return str(self._nbgrader().get("grade_id", ""))

    @property
    def is_locked(self) -> bool:
        """Whether nbgrader restores it before grading: a test or a read-only cell."""
        marks = self._nbgrader()
        if marks.get("solution"):
            return False
        return bool(marks.get("grade") or marks.get("locked"))

    @property
    def is_answer(self) -> bool:
        """Whether it is a solution cell for students."""
        return bool(self._nbgrader().get("solution"))

    def _nbgrader(self) -> Metadata:
        marks = self.metadata.get("nbgrader")
        return marks if isinstance(marks, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookDocument:
    cells: tuple[NotebookCell, ...]
    metadata: Metadata = field(default_factory=dict)
    minor: int = _FIRST_MINOR_WITH_IDS


def read(content: bytes) -> NotebookDocument | None:
    """Parse a notebook of format 4; None for anything else."""
    try:
        found = parse_json(content)
    except ValueError:
        return None
    if not isinstance(found, dict) or found.get("nbformat") != _FORMAT:
        return None
    cells, metadata = found.get("cells"), found.get("metadata", {})
    if not isinstance(cells, list) or not isinstance(metadata, dict):
        return None
    read_cells = [_cell(each) for each in cells]
    minor = found.get("nbformat_minor", 0)
    if not isinstance(minor, int) or any(each is None for each in read_cells):
        return None
    return NotebookDocument(cells=tuple(filter(None, read_cells)), metadata=metadata, minor=minor)


def _cell(found: object) -> NotebookCell | None:
    if not isinstance(found, dict):
        return None
    id_, kind, metadata = found.get("id", ""), found.get("cell_type"), found.get("metadata", {})
    source = _text(found.get("source", ""))
    if not isinstance(id_, str) or not isinstance(kind, str) or not isinstance(source, str):
        return None
    if not isinstance(metadata, dict):
        return None
    rest = {name: each for name, each in found.items() if name not in _KNOWN}
    return NotebookCell(id=id_, kind=kind, source=source, metadata=metadata, rest=rest)


def _text(found: object) -> object:
    """Join a text that is stored as a list of lines."""
    if isinstance(found, list) and all(isinstance(each, str) for each in found):
        return "".join(found)
    return found


def write(notebook: NotebookDocument) -> bytes:
    """The bytes of a notebook file with cell IDs, as Jupyter writes it."""
    whole = {
        "cells": [_written(cell) for cell in notebook.cells],
        "metadata": notebook.metadata,
        "nbformat": _FORMAT,
        "nbformat_minor": max(notebook.minor, _FIRST_MINOR_WITH_IDS),
    }
    try:
        return _text_of(whole, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half a character, which only JSON can write
        return _text_of(whole, ensure_ascii=True).encode()


def _text_of(whole: object, *, ensure_ascii: bool) -> str:
    return json.dumps(whole, indent=1, ensure_ascii=ensure_ascii, sort_keys=True) + "\n"


def _written(cell: NotebookCell) -> dict[str, object]:
    return {
        **cell.rest,
        "id": cell.id,
        "cell_type": cell.kind,
        "source": cell.source.splitlines(keepends=True),
        "metadata": cell.metadata,
    }
