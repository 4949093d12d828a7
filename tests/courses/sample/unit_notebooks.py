"""The units of the sample course: as source, as handed out, and graded."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearMarkScheme,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
)
from nbgrader.utils import determine_grade, is_grade

from carrel.courses import sample

SOURCE = Path(sample.__file__).parent / "source"
UNITS = sample.unit_names()
ARRAYS, DIGITS, SLOPES, BATCHES, JAX, TREES = UNITS
PLAIN = ARRAYS, DIGITS, SLOPES, BATCHES
"""Those that need no more than the extra ``sample``; the others: test_large_units.py."""
STRIPPED = (LockCells, ClearSolutions, ClearOutput, CheckCellMetadata, ComputeChecksums)
RELEASED = (*STRIPPED, ClearHiddenTests, ClearMarkScheme, ComputeChecksums, CheckCellMetadata)


def unit(name: str) -> NotebookNode:
    return copy.deepcopy(_read(name))


@cache
def _read(name: str) -> NotebookNode:
    return nbformat.read(SOURCE / name / f"{name}.ipynb", as_version=4)


def made(name: str, steps: tuple[type, ...]) -> NotebookNode:
    """Convert a unit with nbgrader's steps; ``STRIPPED`` has no solutions, but the hidden tests."""
    notebook, resources = unit(name), {}
    for step in steps:
        notebook, resources = step().preprocess(notebook, resources)
    return notebook


def graded_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code" and is_grade(cell)]


def graded(notebook: NotebookNode, folder: Path) -> dict[str, tuple[float, float]]:
    """Execute a notebook; return the score and maximum of each test by nbgrader."""
    NotebookClient(notebook, allow_errors=True, kernel_name="python3", timeout=300).execute(
        cwd=str(folder)
    )
    return {
        cell.metadata.nbgrader.grade_id: determine_grade(cell) for cell in graded_cells(notebook)
    }


class Mistake(NamedTuple):
    """A solution with ``wrong`` in the place of ``right``, and its remaining points."""

    unit: str
    exercise: str
    right: str
    wrong: str
    left: float
