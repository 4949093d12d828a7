"""Choose the cells of a released notebook that may run once for all members of a course."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from ...hub.errors import InvalidInput
from ...hub.sweeps.ipython_syntax import parse_cell
from ...hub.sweeps.notebook_analysis import analyse_notebook
from ...hub.sweeps.notebook_cells import (
    INJECTED_TAG,
    PARAMETERS_TAG,
    RAISES_TAG,
    SKIPPED_TAG,
    SweepNotebook,
    read_sweep_notebook,
)
from .process_state import StateFindings, StateRules, without_course_data

_OWN_TAGS: Final = frozenset({INJECTED_TAG, PARAMETERS_TAG, RAISES_TAG, SKIPPED_TAG})


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixCell:
    """A code cell of a prefix.

    Attributes:
        index: in the notebook.
        number: as users count code cells, from 1.
        runs: why it runs in each job: its effects are not restored. Empty otherwise.
    """

    index: int
    number: int
    runs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixPlan:
    """The leading code cells of a notebook that are the same for all members of a course.

    Attributes:
        ends: why the next code cell is not one of them; empty if there is none.
        data: whether they read the data folder of the course.
    """

    cells: tuple[PrefixCell, ...]
    ends: str = ""
    data: bool = False

    @property
    def restorable(self) -> bool:
        """Whether there is a cell whose result can be restored."""
        return any(not cell.runs for cell in self.cells)


@lru_cache(maxsize=64)
def prefix_plan(name: str, text: str) -> PrefixPlan:
    """Return the plan of a notebook, as it is released.

    Cells count up to the first one that students edit or that has a test (of nbgrader), that has
    the tag ``parameters``, or of which the analysis does not know that it has the same result for
    each member.

    Args:
        text: of the .ipynb file.

    Raises:
        InvalidInput: it is not a notebook.
    """
    notebook = read_sweep_notebook(name, text)
    if not notebook.python:
        return PrefixPlan(cells=(), ends="the notebook is not in Python")
    given, ends = _given(_document(name, text))
    cells = notebook.cells[: len(given)]
    sources, reads = [], []
    for cell in cells:
        source, named = without_course_data(cell.source)
        sources.append(replace(cell, source=source))
        reads.append(named)
    analysis = analyse_notebook(
        SweepNotebook(name=name, cells=tuple(sources), parameters={}, injection=0)
    )
    rules, found = StateRules(), list[PrefixCell]()
    for index, cell, result, named in zip(given, sources, analysis.cells, reads, strict=True):
        rules.data = rules.data or named
        state = StateFindings()
        why = result.obstacles[0].why if result.obstacles else ""
        if not why:
            state = rules.cell(parse_cell(cell.source))
            why = state.ends
        if why:
            ends = f"cell {cell.number} {why}"
            break
        found.append(PrefixCell(index=index, number=cell.number, runs=state.changes))
    return PrefixPlan(cells=tuple(found), ends=ends, data=any(reads[: len(found)]))


def _given(cells: Sequence[Mapping[str, Any]]) -> tuple[list[int], str]:
    """Return the indexes of the leading given code cells, and why the next one is not given."""
    found: list[int] = []
    for index, cell in enumerate(cells):
        if cell.get("cell_type") != "code":
            continue
        number, metadata = len(found) + 1, cell.get("metadata") or {}
        role, tags = metadata.get("nbgrader") or {}, set(metadata.get("tags") or ())
        if role.get("solution"):
            return found, f"cell {number} is for students to edit"
        if role.get("grade"):
            return found, f"cell {number} is a test"
        if own := sorted(_OWN_TAGS & tags):
            return found, f"cell {number} has the tag {own[0]}"
        found.append(index)
    return found, ""


def prefix_notebook(name: str, text: str, plan: PrefixPlan) -> str:
    """Return the notebook with the cells of the plan alone, as the text of an .ipynb file."""
    document = json.loads(text)
    last = plan.cells[-1].index if plan.cells else -1
    document["cells"] = _document(name, text)[: last + 1]
    return json.dumps(document)


def cells_digest(cells: Sequence[Mapping[str, Any]]) -> str:
    """Return the digest of the type, source and tags of cells: of all that a prefix depends on."""
    listed = [
        [
            str(cell.get("cell_type")),
            _joined(cell.get("source", "")),
            sorted((cell.get("metadata") or {}).get("tags") or ()),
        ]
        for cell in cells
    ]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def notebook_digest(name: str, text: str, cells: int) -> str:
    """Return the digest of the first cells of a notebook. Raises InvalidInput."""
    return cells_digest(_document(name, text)[:cells])


def _document(name: str, text: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text)
        cells = found["cells"]
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInput(f"{name} cannot be read as a notebook.") from error
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise InvalidInput(f"{name} cannot be read as a notebook.")
    return cells


def _joined(source: object) -> str:
    if isinstance(source, list):
        return "".join(map(str, source))
    return str(source)
