"""List the graded cells of an assignment, and report how its release was checked.

Notebooks are read as plain JSON: nbgrader is an extra, and not needed for this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ...hub.records.json_value import parse_json
from ...hub.schemas.courses import NotebookTestsOut, ReleaseReportOut
from ..model.interfaces import Blobs
from ..model.records import ReleasedVersion, TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedCell:
    """A cell with points.

    Attributes:
        notebook: its name without ``.ipynb``.
        cell: its nbgrader id.
        test: graded by running it; other cells are graded by a person.
    """

    notebook: str
    cell: str
    points: float
    test: bool


def graded_cells(blobs: Blobs, made: ReleasedVersion) -> tuple[GradedCell, ...]:
    """The graded cells of a version, in the order of the notebooks."""
    return tuple(_graded_cells(blobs, made))


def _graded_cells(blobs: Blobs, made: ReleasedVersion) -> Iterator[GradedCell]:
    for file in made.source.files:
        stem, _, kind = file.name.rpartition(".")
        if kind == "ipynb" and "/" not in file.name:
            yield from _of_notebook(blobs, file.sha256, stem)


def _of_notebook(blobs: Blobs, sha256: str, name: str) -> tuple[GradedCell, ...]:
    with blobs.open(sha256) as content:
        notebook = content.read()
    found = []
    for cell in _cells(notebook):
        role = cell.get("metadata", {}).get("nbgrader", {})
        if role.get("grade") or role.get("task"):
            by_hand = role.get("task") or role.get("solution") or cell.get("cell_type") != "code"
            points = float(role.get("points") or 0.0)
            cell_id = str(role.get("grade_id"))
            found.append(GradedCell(notebook=name, cell=cell_id, points=points, test=not by_hand))
    return tuple(found)


def _cells(notebook: bytes) -> list[dict[str, Any]]:
    """The cells of a notebook; none for a file that only has its suffix."""
    try:
        loaded = parse_json(notebook)
    except ValueError:
        return []
    cells = loaded.get("cells") if isinstance(loaded, dict) else None
    return [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else []


def report(blobs: Blobs, made: ReleasedVersion) -> ReleaseReportOut:
    """The result of the check of a version in the sandbox, test by test."""
    found = graded_cells(blobs, made)
    names = dict.fromkeys(each.notebook for each in found)
    return ReleaseReportOut(
        tried=made.tried is not None,
        seconds=made.tried.seconds if made.tried else 0.0,
        points=sum(each.points for each in found if each.test),
        notebooks=[
            _tests(name, [each for each in found if each.notebook == name], made.tried)
            for name in names
        ],
    )


def _tests(name: str, found: Iterable[GradedCell], tried: TrialResult | None) -> NotebookTestsOut:
    apart = frozenset(tried.apart.get(name, ()) if tried else ())
    tests = [each.cell for each in found if each.test]
    return NotebookTestsOut(
        notebook=name,
        apart=[cell for cell in tests if cell in apart],
        in_kernel=[cell for cell in tests if cell not in apart],
        by_hand=[each.cell for each in found if not each.test],
    )
