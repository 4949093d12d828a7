"""Sanitize a submitted notebook, so that it can be graded.

It uses the preprocessors of ``nbgrader autograde``: outputs are removed, of cells with the same id
the last one counts, tests and locked cells get the teacher's text. Roles are restored first: with a
changed role nbgrader would fail, or give points for nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from nbformat import NotebookNode
from nbgrader.api import MissingEntry
from nbgrader.nbgraderformat import SCHEMA_VERSION
from nbgrader.preprocessors import CheckCellMetadata, ClearOutput, DeduplicateIds, OverwriteCells

from ...hub.attempts.notebook_format import read_notebook
from ..notebooks import ipynb
from .answer_key import KeyCell, NotebookKey


class CellRepair(StrEnum):
    """How a cell differs from the released version."""

    MISSING = "missing"
    DUPLICATED = "duplicated"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SanitizeFinding:
    grade_id: str
    change: CellRepair


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A sanitized notebook.

    Attributes:
        node: with the full tests, and so never in reach of a student's code.
        findings: cells that were repaired or are missing.
        repairs: what was repaired in the file, one sentence for each kind.
    """

    node: NotebookNode
    findings: tuple[SanitizeFinding, ...]
    repairs: tuple[str, ...] = ()

    def has(self, grade_id: str, change: CellRepair) -> bool:
        return SanitizeFinding(grade_id=grade_id, change=change) in self.findings


def sanitize(data: bytes, key: NotebookKey) -> Sheet:
    """Sanitize a notebook. Raises InvalidInput where it cannot be read."""
    read = read_notebook(f"{key.name}.ipynb", data)
    node = read.node
    findings = list(_restore_roles(node, key))
    resources: dict[str, object] = {}
    for step in (ClearOutput(), DeduplicateIds()):
        node, resources = step.preprocess(node, resources)
    for cell in node.cells:
        if not cell.metadata.get("nbgrader", True):  # a duplicate, whose role was removed
            del cell.metadata["nbgrader"]
    for step in (_OverwriteFromKey(key), CheckCellMetadata()):
        node, resources = step.preprocess(node, resources)
    node.metadata["kernelspec"] = json.loads(key.kernelspec)
    return Sheet(node=node, findings=tuple(findings), repairs=read.repairs)


def _restore_roles(node: NotebookNode, key: NotebookKey) -> list[SanitizeFinding]:
    """Restore the roles of known cells, and remove those of all others."""
    findings: list[SanitizeFinding] = []
    seen: set[str] = set()
    for cell in node.cells:
        role = cell.metadata.pop("nbgrader", None)
        grade_id = role.get("grade_id") if isinstance(role, dict) else None
        known = key.by_id.get(grade_id) if isinstance(grade_id, str) else None
        if known is None:
            continue
        cell.metadata["nbgrader"] = ipynb.as_node(_role(known))
        if known.grade_id in seen:
            findings.append(SanitizeFinding(grade_id=known.grade_id, change=CellRepair.DUPLICATED))
        seen.add(known.grade_id)
        if known.locked and cell.source not in (known.source, known.visible):
            findings.append(SanitizeFinding(grade_id=known.grade_id, change=CellRepair.CHANGED))
    findings += [
        SanitizeFinding(grade_id=cell.grade_id, change=CellRepair.MISSING)
        for cell in key.gradable
        if cell.grade_id not in seen
    ]
    return findings


def _role(cell: KeyCell) -> dict[str, object]:
    role: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
        "grade_id": cell.grade_id,
        "grade": cell.grade,
        "solution": cell.solution,
        "locked": cell.locked,
        "task": cell.task,
        "cell_type": cell.cell_type,
        "checksum": cell.checksum,
    }
    if cell.grade or cell.task:
        role["points"] = cell.points
    return role


class _OverwriteFromKey(OverwriteCells):  # type: ignore[misc] # nbgrader has no types
    """nbgrader's OverwriteCells, with the key instead of its database."""

    def __init__(self, key: NotebookKey) -> None:
        super().__init__()
        self.gradebook = _KeyGradebook(key)
        self.notebook_id, self.assignment_id = key.name, ""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, object]
    ) -> tuple[NotebookNode, dict[str, object]]:
        for index, cell in enumerate(nb.cells):
            nb.cells[index], resources = self.preprocess_cell(cell, resources, index)
        return nb, resources


@dataclass(frozen=True, slots=True, kw_only=True)
class _SourceCell:
    """The columns of a cell that nbgrader reads from its gradebook."""

    name: str
    cell_type: str
    locked: bool
    source: str
    checksum: str
    max_score: float


class _KeyGradebook:
    """The two queries of ``OverwriteCells`` to a gradebook."""

    def __init__(self, key: NotebookKey) -> None:
        self._key = key

    def find_source_cell(self, name: str, _notebook: str, _assignment: str) -> _SourceCell:
        cell = self._key.by_id.get(name)
        if cell is None:
            raise MissingEntry(name)
        return _SourceCell(
            name=name,
            cell_type=cell.cell_type,
            locked=cell.locked,
            source=cell.source,
            checksum=cell.checksum,
            max_score=cell.points,
        )

    find_graded_cell = find_source_cell
