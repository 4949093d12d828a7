"""Code that raises instead of answering passes no test, wherever the test calls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import nbformat
import pytest

from carrel.courses.grading.answer_key import AssignmentKey
from carrel.courses.grading.submission_grader import SubmissionGrader
from carrel.courses.releases.solution_check import ReleaseCheck, check_release
from carrel.courses.releases.student_version import Prepared, prepare
from carrel.courses.sandbox.interface import SandboxEngine

from .cheats import cell
from .ps1 import cell_of

TESTS = {
    "map": "assert all(map(lambda x: square(x) == x * x, [1, 2, 3]))",
    "zip": "for got, want in zip(map(square, [1, 2]), [1, 4]):\n    assert got == want",
    "filter": "assert next(filter(lambda x: square(x) != x * x, [1, 2]), None) is None",
    "starmap": "import itertools\n"
    "assert all(itertools.starmap(lambda x, y: square(x) == y, [(1, 1), (2, 4)]))",
    "iter": "assert [v for v in iter(lambda: square(0), 0)] == []",
    "comprehension": "assert [square(x) for x in [1, 2]] == [1, 4]",
    "generator": "assert all(square(x) == x * x for x in [1, 2])",
    "method": "assert all(map(lambda x: Squares().of(x) == x * x, [1, 2]))",
    "except": "try:\n    assert square(2) == 4\nexcept Exception:\n    assert square(2) is None",
}
SOLUTION = (
    "def square(x):\n    return x * x\n"
    "class Squares:\n    def of(self, x):\n        return square(x)"
)
RAISED = {
    "StopIteration": "StopIteration",
    "GeneratorExit": "GeneratorExit",
    "own": "type('Own', (BaseException,), {})('no answer')",
    "derived": "type('Own', (StopIteration,), {})('no answer')",
}


@cache
def source() -> Mapping[str, bytes]:
    solution = f"### BEGIN SOLUTION\n{SOLUTION}\n### END SOLUTION"
    cells = [cell("square", solution, solution=True)]
    for name, test in TESTS.items():
        cells.append(cell(f"test_{name}", test, grade=True, locked=True, points=1))
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    node = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
    return {"squares.ipynb": nbformat.writes(node).encode()}


@cache
def prepared() -> Prepared:
    return prepare("squares", source())


@pytest.fixture(scope="module")
def check(sandboxes: SandboxEngine) -> ReleaseCheck:
    return check_release(sandboxes, prepared(), source())


def submitted(function: str) -> Mapping[str, bytes]:
    node = nbformat.reads(prepared().files["squares.ipynb"].decode(), as_version=4)
    cell_of(node, "square").source = function
    return {"squares.ipynb": nbformat.writes(node).encode()}


def passed(engine: SandboxEngine, key: AssignmentKey, files: Mapping[str, bytes]) -> set[str]:
    grader = SubmissionGrader(engine, key)
    try:
        result = grader.grade("ada", files)
    finally:
        grader.close()
    return {one.grade_id.removeprefix("test_") for one in result.verdicts if one.score}


@pytest.fixture(params=["isolated", "in the student's kernel"])
def key(check: ReleaseCheck, request: pytest.FixtureRequest) -> AssignmentKey:
    if request.param == "isolated":
        return check.key
    notebooks = tuple(replace(one, apart=frozenset()) for one in check.key.notebooks)
    return replace(check.key, notebooks=notebooks)


def test_the_solution_passes(sandboxes: SandboxEngine, key: AssignmentKey) -> None:
    assert passed(sandboxes, key, submitted(SOLUTION)) == set(TESTS)


@pytest.mark.parametrize("raised", RAISED)
def test_code_that_raises_passes_no_test(
    sandboxes: SandboxEngine, key: AssignmentKey, raised: str
) -> None:
    answer = (
        f"def square(x):\n    raise {RAISED[raised]}\n"
        "class Squares:\n    def of(self, x):\n        return square(x)"
    )
    assert passed(sandboxes, key, submitted(answer)) == set()
