"""Find what breaks in a graded solution and in a graded hand-out.

The solution runs as a submission: a cell that raises, and a test without full points, is a finding.
The hand-out runs as a submission without any work. There an unsolved cell raises
NotImplementedError or fails an assertion, and names that a solution would define are missing; its
tests fail in any way. Everything else is a finding, and so are full points.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from nbformat import NotebookNode

from ...hub.attempts.notebook_format import read_notebook
from ...hub.schemas.coursework.rehearsals import RehearsalFindingOut
from ..grading.answer_key import AssignmentKey, NotebookKey
from ..grading.submission_grader import NotebookResult, SubmissionResult
from ..grading.verdict import CellVerdict, Word

SOLUTION, HAND_OUT = "solution", "hand-out"
_LONGEST_LINE = 300
_EXPECTED = frozenset({"NotImplementedError", "AssertionError"})
_MISSING_NAME = re.compile(r"name '([^']*)' is not defined")


def of_solution(
    result: SubmissionResult, key: AssignmentKey, source: Mapping[str, bytes]
) -> list[RehearsalFindingOut]:
    """What breaks in the solution, in the order of the cells; one finding for each cell.

    Args:
        source: the teacher's files; a cell in which they have no solution is named as such.
    """
    return [
        found
        for notebook, known in zip(result.notebooks, key.notebooks, strict=True)
        for found in _of_notebook(
            SOLUTION,
            notebook,
            {
                **_short_tests(notebook.verdicts, known),
                **dict(_errors(notebook)),
                **_unsolved(known, source.get(f"{known.name}.ipynb", b"")),
            },
        )
    ]


def of_hand_out(result: SubmissionResult, key: AssignmentKey) -> list[RehearsalFindingOut]:
    """What breaks in the hand-out, beyond what is expected of unsolved cells."""
    found = [
        finding
        for notebook, known in zip(result.notebooks, key.notebooks, strict=True)
        for finding in _of_notebook(HAND_OUT, notebook, dict(_unexpected(notebook, known)))
    ]
    points, most = points_of_tests(result, key)
    if most and points >= most:
        error = f"It gets all {most:g} points of its tests without a solution."
        found.append(RehearsalFindingOut(part=HAND_OUT, notebook="", cell="", error=error))
    return found


def points_of_tests(result: SubmissionResult, key: AssignmentKey) -> tuple[float, float]:
    """The points that the tests gave, and their maximum; cells that people grade do not count."""
    tests = {(each.name, cell.grade_id) for each in key.notebooks for cell in each.tests}
    counted = [each for each in result.verdicts if (each.notebook, each.grade_id) in tests]
    return sum(each.score or 0.0 for each in counted), sum(each.max_score for each in counted)


def _of_notebook(
    part: str, notebook: NotebookResult, errors: Mapping[str, str]
) -> Iterator[RehearsalFindingOut]:
    """Findings by the position of their cells."""
    if notebook.node is None:
        said = " ".join(notebook.notes)
        yield RehearsalFindingOut(part=part, notebook=notebook.name, cell="", error=said)
        return
    order = [name for name, _ in _named_cells(notebook.node)]
    places = {name: place for place, name in enumerate(order)}
    for name in sorted(errors, key=lambda each: places.get(each, len(order))):
        line = _first_line(errors[name])
        yield RehearsalFindingOut(part=part, notebook=notebook.name, cell=name, error=line)


def _short_tests(verdicts: Iterable[CellVerdict], key: NotebookKey) -> dict[str, str]:
    tests = {cell.grade_id for cell in key.tests}
    return {
        each.grade_id: f"{each.word}: {each.sentence}"
        for each in verdicts
        if each.grade_id in tests and each.word is not Word.PASSED
    }


def _errors(notebook: NotebookResult) -> Iterator[tuple[str, str]]:
    """The cells that raised or were stopped, with the error."""
    assert notebook.node is not None or not notebook.stopped
    for index, (name, cell) in enumerate(_named_cells(notebook.node)):
        if index in notebook.stopped:
            yield name, notebook.stopped[index]
            continue
        if "raises-exception" in cell.metadata.get("tags", ()):
            continue
        for output in cell.get("outputs", ()):
            if output.output_type == "error" and (output.ename, output.evalue) != _BARE:
                yield name, f"{output.ename}: {output.evalue}"


_BARE = ("AssertionError", "")
"""The sentence of the test says more."""


def _unexpected(notebook: NotebookResult, key: NotebookKey) -> Iterator[tuple[str, str]]:
    tests = {cell.grade_id for cell in key.tests}
    for name, error in _errors(notebook):
        kind, _, text = error.partition(": ")
        missing = _MISSING_NAME.match(text) if kind == "NameError" else None
        unsolved = kind in _EXPECTED or (missing is not None and missing[1] in key.taught)
        if name not in tests and not unsolved:
            yield name, error


def _unsolved(key: NotebookKey, source: bytes) -> dict[str, str]:
    """The solution cells in which the source has only the text that students get."""
    stubs = {
        cell.grade_id: cell.source
        for cell in key.cells
        if cell.solution and cell.cell_type == "code" and cell.source.strip()
    }
    node = read_notebook(f"{key.name}.ipynb", source).node
    return {
        name: "The source has no solution for this cell, only the text that students get."
        for name, cell in _named_cells(node)
        if name in stubs and cell.source.strip() == stubs[name].strip()
    }


def _named_cells(node: NotebookNode | None) -> Iterator[tuple[str, NotebookNode]]:
    for number, cell in enumerate(node.cells if node is not None else (), start=1):
        role = cell.metadata.get("nbgrader") or {}
        yield role.get("grade_id") or f"cell {number}", cell


def _first_line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "")[:_LONGEST_LINE]
