"""Go on with a notebook after the last cell whose variables were saved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode, ValidationError

from ....hub.attempts.snapshots import RESUMED_OUTPUT, RESUMED_PICKLE, VariableSnapshot, find


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """Where an execution goes on.

    Attributes:
        start: index of the first cell to execute.
        before: the executed notebook of the attempt that is resumed.
        left_out: reason by variable that could not be saved.
    """

    start: int
    pickle: Path
    before: NotebookNode
    left_out: dict[str, str]


def resume_point(folder: Path, nb: NotebookNode, from_cell: int) -> ResumePoint | str:
    """Return where to go on, or why the notebook is executed from its first cell.

    Args:
        folder: the attempt's folder, with the files of an earlier attempt if there are any.
        nb: the notebook, with injected parameters.
        from_cell: number of the first code cell to execute; 0: the one after the saved one.
    """
    snapshot = find(folder)
    if snapshot is None:
        return ""
    try:
        before = nbformat.read(folder / RESUMED_OUTPUT, as_version=4)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, ValidationError, AttributeError) as error:
        return f"the executed notebook of the earlier attempt cannot be read: {error}"
    start = _start(snapshot, nb, before, from_cell)
    if isinstance(start, str):
        return start
    return ResumePoint(
        start=start,
        pickle=folder / RESUMED_PICKLE,
        before=before,
        left_out=dict(snapshot.left_out),
    )


def _start(
    snapshot: VariableSnapshot, nb: NotebookNode, before: NotebookNode, from_cell: int
) -> int | str:
    if from_cell:
        number = 0
        for index, cell in enumerate(nb.cells):
            if cell.cell_type == "code" and "injected-parameters" not in cell.metadata.get(
                "tags", []
            ):
                number += 1
                if number == from_cell:
                    return index
        return f"the notebook has no cell {from_cell}"
    if snapshot.index >= min(len(nb.cells), len(before.cells)):
        return "the notebook has fewer cells than before"
    for index in range(snapshot.index + 1):
        if nb.cells[index].source != before.cells[index].source:
            return "a cell before the saved one was changed"
    return snapshot.index + 1
