"""Go on with a notebook after the last cell whose variables were saved."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode, ValidationError

from ....hub.attempts.snapshots import (
    RESUMED_OUTPUT,
    RESUMED_PICKLE,
    VariableSnapshot,
    continuation_folder,
    find,
    hand_over,
)
from ....hub.attempts.spec import AttemptSpec


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


def adopt_continuation(order: AttemptSpec, folder: Path) -> str:
    """Move the state that a session has saved for this job into the attempt's folder.

    Returns:
        why the job does not go on from it, or nothing.
    """
    if not order.job.continuation or find(folder) is not None:
        return ""
    saved = continuation_folder(Path(order.home), order.job.continuation)
    snapshot = find(saved)
    if snapshot is None:
        return "the variables that the session saved are missing"
    try:
        hand_over(snapshot, folder)
    except OSError as error:
        return f"the variables that the session saved cannot be read: {error}"
    shutil.rmtree(saved, ignore_errors=True)
    return ""


def resume_point(
    folder: Path, nb: NotebookNode, numbers: Mapping[int, int], from_cell: int
) -> ResumePoint | str:
    """Return where to go on, or why the notebook is executed from its first cell.

    Args:
        folder: the attempt's folder, with the files of an earlier attempt if there are any.
        nb: the notebook, with injected parameters.
        numbers: number of each code cell, as users count them, by its index.
        from_cell: number of the first code cell to execute; 0: the one after the saved one.
    """
    snapshot = find(folder)
    if snapshot is None:
        return ""
    try:
        before = nbformat.read(folder / RESUMED_OUTPUT, as_version=4)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, ValidationError, AttributeError) as error:
        return f"the executed notebook of the earlier attempt cannot be read: {error}"
    start = _start_of(from_cell, numbers) if from_cell else _start_after(snapshot, nb, before)
    if isinstance(start, str):
        return start
    return ResumePoint(
        start=start,
        pickle=folder / RESUMED_PICKLE,
        before=before,
        left_out=dict(snapshot.left_out),
    )


def _start_of(from_cell: int, numbers: Mapping[int, int]) -> int | str:
    found = [index for index, number in numbers.items() if number == from_cell]
    return found[0] if found else f"the notebook has no cell {from_cell}"


def _start_after(snapshot: VariableSnapshot, nb: NotebookNode, before: NotebookNode) -> int | str:
    if snapshot.index >= min(len(nb.cells), len(before.cells)):
        return "the notebook has fewer cells than before"
    for index in range(snapshot.index + 1):
        if nb.cells[index].source != before.cells[index].source:
            return "a cell before the saved one was changed"
    return snapshot.index + 1
