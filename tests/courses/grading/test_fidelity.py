"""Cell by cell the scores of ``nbgrader autograde``, as golden.json has them."""

from __future__ import annotations

import pytest

from carrel.courses.grading.submission_grader import SubmissionGrader
from carrel.courses.grading.verdict import Word
from carrel.courses.releases.solution_check import ReleaseCheck
from carrel.courses.releases.student_version import key_of_visible, prepare
from carrel.courses.sandbox.interface import SandboxEngine

from . import cheats, golden, ps1
from .engine_tests import (
    GOLDEN,
    graded,
    test_no_cheat_gets_points_here,
    test_the_cheats_that_one_kernel_cannot_prevent_are_known,
)

__all__ = [
    "test_no_cheat_gets_points_here",
    "test_the_cheats_that_one_kernel_cannot_prevent_are_known",
]

SLOW = ("no end",)
"""Tracebacks of a thousand frames take seconds each, here as in nbgrader."""


def test_the_example_can_be_released_and_all_its_tests_run_isolated(
    ps1_check: ReleaseCheck,
) -> None:
    assert ps1_check.problems == ()
    assert ps1_check.in_kernel == ()
    assert ps1_check.solution_seconds > 0


def test_scores_are_those_of_nbgrader(sandboxes: SandboxEngine, ps1_check: ReleaseCheck) -> None:
    chosen = {name: files for name, files in ps1.SOLUTIONS.items() if name not in SLOW}
    bench = graded(sandboxes, ps1_check, chosen)
    ours = {golden.student(name): scores for name, scores in bench.scores().items()}
    assert len(ours) >= 20
    assert ours == {student: GOLDEN["ps1"][student] for student in ours}


@pytest.mark.slow
def test_endless_recursion_is_scored_as_in_nbgrader(
    sandboxes: SandboxEngine, ps1_check: ReleaseCheck
) -> None:
    bench = graded(sandboxes, ps1_check, {name: ps1.SOLUTIONS[name] for name in SLOW})
    ours = {golden.student(name): scores for name, scores in bench.scores().items()}
    assert ours == {student: GOLDEN["ps1"][student] for student in ours}


def test_a_duplicated_cell_does_not_stop_grading(
    sandboxes: SandboxEngine, ps1_check: ReleaseCheck
) -> None:
    bench = graded(sandboxes, ps1_check, ps1.TWICE)
    assert bench.scores()["two of a solution"]["correct_squares"] == 1.0
    assert bench.scores()["two of a test"]["correct_squares"] == 0.0
    for result in bench.results.values():
        notes = " ".join(result.notebooks[0].notes)
        assert "is there more than once: the last counts" in notes


@pytest.mark.parametrize("name", cheats.CHEATS)
def test_each_cheat_gets_points_in_nbgrader(name: str) -> None:
    """This shows that the next test can fail."""
    wrong, cheat = GOLDEN["secret"]["wrong"], GOLDEN["secret"][name]
    assert sum(wrong.values()) == 0
    assert sum(cheat.values()) > 0


def test_a_students_check_runs_the_visible_tests(
    sandboxes: SandboxEngine, secret_check: ReleaseCheck
) -> None:
    key = key_of_visible(prepare("secret", cheats.source()), secret_check.key)
    assert all(not cell.has_hidden_part for cell in key.notebooks[0].cells)
    only_one = cheats.submission("def double(n):\n    assert n == 1, n\n    return 2")
    grader = SubmissionGrader(sandboxes, key)
    visible = grader.grade("student1", only_one).verdicts[0]
    grader.close()
    assert (visible.word, visible.apart) == (Word.PASSED, True)


def test_sentences_for_students_reveal_no_hidden_test(
    sandboxes: SandboxEngine, secret_check: ReleaseCheck
) -> None:
    talkative = "def double(n):\n    raise ValueError(f'I was asked for {n}')"
    grader = SubmissionGrader(sandboxes, secret_check.key)
    result = grader.grade("student1", cheats.submission(talkative))
    negative = grader.grade("student2", cheats.submission("def double(n):\n    return abs(2 * n)"))
    grader.close()
    assert [one.sentence for one in result.verdicts[:2]] == ["The test ended with ValueError."] * 2
    assert negative.verdicts[0].sentence == "A check failed: negative numbers"


@pytest.mark.slow
def test_the_golden_table_is_what_nbgrader_gives() -> None:
    chosen = {name: ps1.SOLUTIONS[name] for name in ("right", "rebinds later", "input", "warns")}
    found = golden.scores("ps1", ps1.source(), chosen)
    assert found == {student: GOLDEN["ps1"][student] for student in found}
    honest = {"honest": cheats.OTHERS["honest"]}
    for name, files in cheats.CHEATS.items():
        got = golden.scores("secret", cheats.source(), {name: files, **honest})
        assert got[golden.student(name)] == GOLDEN["secret"][name]
