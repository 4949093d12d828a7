"""Tests of verdicts that every sandbox engine passes, by the fixtures ``sandboxes`` and
``secret_check`` of the module that imports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import nbformat
import nbgrader
import pytest

from carrel.courses.grading.answer_key import AssignmentKey
from carrel.courses.grading.class_grader import Terms, grade_class
from carrel.courses.grading.submission_grader import SubmissionGrader
from carrel.courses.grading.verdict import Word
from carrel.courses.releases.solution_check import ReleaseCheck, check_release
from carrel.courses.releases.student_version import Prepared, prepare
from carrel.courses.sandbox.interface import SandboxEngine, SandboxLimits

from . import cheats, golden
from .bench import MemoryBench

TESTS = Path(nbgrader.__file__).parent / "tests"
FILES = TESTS / "apps/files"
GOLDEN = golden.load()
PASSED, FAILED, PERSON = Word.PASSED, Word.FAILED, Word.NEEDS_A_PERSON
NONE = Word.NO_ANSWER


def submitted(name: str) -> Mapping[str, bytes]:
    return {"p1.ipynb": (FILES / f"{name}.ipynb").read_bytes()}


@cache
def prepared() -> Prepared:
    return prepare("ps1", submitted("submitted-unchanged"))


@pytest.fixture(scope="module")
def key(sandboxes: SandboxEngine) -> AssignmentKey:
    """The answer key, from a notebook with the right answers as its solution."""
    found = check_release(sandboxes, prepared(), submitted("submitted-changed"))
    # nbgrader's own example gives a point for nothing: a release is refused for it.
    assert [said.partition(" of ")[0] for said in found.problems] == [
        "The released version without solutions gets 1 points for 'foo'"
    ]
    return found.key


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("submitted-changed", [PASSED, PASSED, PERSON, PERSON]),
        ("submitted-unchanged", [PASSED, FAILED, NONE, NONE]),
        ("submitted-grade-cell-changed", [PASSED, FAILED, NONE, NONE]),
        ("submitted-locked-cell-changed", [PASSED, FAILED, NONE, NONE]),
        ("submitted-cheat-attempt", [PASSED, FAILED, PERSON, PERSON]),
        ("submitted-cheat-attempt-alternative", [PASSED, FAILED, PERSON, PERSON]),
    ],
)
def test_each_submission_of_nbgraders_tests_has_its_verdict(
    sandboxes: SandboxEngine, key: AssignmentKey, name: str, words: list[Word]
) -> None:
    grader = SubmissionGrader(sandboxes, key)
    result = grader.grade("spam", submitted(name))
    grader.close()
    assert [one.word for one in result.verdicts] == words


@pytest.mark.parametrize("name", ["submitted-cheat-attempt", "submitted-cheat-attempt-alternative"])
def test_hiding_the_traceback_is_noticed_in_the_students_kernel(
    sandboxes: SandboxEngine, key: AssignmentKey, name: str
) -> None:
    (notebook,) = key.notebooks
    in_kernel = replace(key, notebooks=(replace(notebook, apart=frozenset()),))
    grader = SubmissionGrader(sandboxes, in_kernel)
    foo, bar = grader.grade("spam", submitted(name)).verdicts[:2]
    grader.close()
    assert (foo.word, bar.word) == (Word.TAMPERED, Word.TAMPERED)
    assert (bar.score, bar.review) == (0.0, True)
    assert "a person looks at it" in bar.sentence


@pytest.mark.parametrize("name", ["infinite-loop", "side-effects", "open_relative_file"])
def test_the_effects_of_a_cell_end_with_its_sandbox(
    sandboxes: SandboxEngine, key: AssignmentKey, name: str
) -> None:
    """The submission has its own cells before those of a right answer."""
    right = nbformat.reads(submitted("submitted-changed")["p1.ipynb"].decode(), as_version=4)
    other = nbformat.read(FILES / f"{name}.ipynb", as_version=4)
    right.cells = [*(cell for cell in other.cells if cell.cell_type == "code"), *right.cells]
    files = {"p1.ipynb": nbformat.writes(right).encode()}
    grader = SubmissionGrader(sandboxes, key, limits=SandboxLimits(cell_seconds=2))
    result = grader.grade("spam", files)
    grader.close()
    assert [one.word for one in result.verdicts] == [PASSED, PASSED, PERSON, PERSON]
    stopped = [note for note in result.notebooks[0].notes if "was stopped after" in note]
    assert bool(stopped) == (name == "infinite-loop")


def graded(
    sandboxes: SandboxEngine, check: ReleaseCheck, submissions: Mapping[str, Mapping[str, bytes]]
) -> MemoryBench:
    bench = MemoryBench(submissions)
    grade_class(sandboxes, check.key, bench, Terms(parallel=2))
    assert bench.failures == {}
    return bench


def test_no_cheat_gets_points_here(sandboxes: SandboxEngine, secret_check: ReleaseCheck) -> None:
    assert secret_check.in_kernel == ()
    bench = graded(sandboxes, secret_check, {**cheats.CHEATS, **cheats.OTHERS})
    scores = bench.scores()
    assert scores.pop("honest") == GOLDEN["secret"]["honest"]
    points = {name: sum(cells.values()) for name, cells in scores.items()}
    assert points == dict.fromkeys(scores, 0.0)
    essay = bench.results["is a test now"].verdicts[-1]
    assert (essay.grade_id, essay.word) == ("essay", Word.NEEDS_A_PERSON)


def test_the_cheats_that_one_kernel_cannot_prevent_are_known(
    sandboxes: SandboxEngine, secret_check: ReleaseCheck
) -> None:
    """These are described in docs/explanation/grading.md; all others are noticed or fail."""
    notebooks = tuple(replace(one, apart=frozenset()) for one in secret_check.key.notebooks)
    in_kernel = replace(secret_check, key=replace(secret_check.key, notebooks=notebooks))
    scores = graded(sandboxes, in_kernel, cheats.CHEATS).scores()
    assert {name for name, cells in scores.items() if sum(cells.values())} == {
        *("always equal", "reads the cell", "reads the stack")
    }
