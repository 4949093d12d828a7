"""Before a release: the teacher's solution must get full marks, and the hand-out none.

Both run in the grading sandbox. Each test is first tried apart from the student's kernel; one
that does not give the solution its marks there is recorded as to be run in it. The times are kept
as the estimate for grading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..grading.answer_key import AssignmentKey, NotebookKey
from ..grading.execution_plan import examined
from ..grading.submission_grader import SubmissionGrader, SubmissionResult
from ..grading.verdict import CellVerdict, Word
from ..sandbox.interface import SandboxEngine, SandboxLimits
from .student_version import Prepared

_SOLUTION, _HANDOUT = "the solution", "the hand-out"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCheck:
    """Attributes:
    key: that of the release with the tests known that run apart.
    problems: sentences; a release with any is refused.
    in_kernel: sentences about tests that cannot be run apart.
    solution_seconds, handout_seconds: how long each took.
    """

    key: AssignmentKey
    problems: tuple[str, ...]
    in_kernel: tuple[str, ...]
    solution_seconds: float
    handout_seconds: float

    @property
    def seconds_each(self) -> float:
        """What one submission takes alone; most are between the two."""
        return (self.solution_seconds + self.handout_seconds) / 2


def check_release(
    engine: SandboxEngine,
    prepared: Prepared,
    source: Mapping[str, bytes],
    *,
    limits: SandboxLimits | None = None,
) -> ReleaseCheck:
    """Grade the teacher's source and the stripped version as if a student had submitted them."""

    def graded(key: AssignmentKey, files: Mapping[str, bytes], who: str) -> SubmissionResult:
        grader = SubmissionGrader(engine, key, limits=limits, files=prepared.files)
        try:
            return grader.grade(who, files)
        finally:
            grader.close()

    key = _with_apart(prepared.key, frozenset())
    solution = graded(key, source, _SOLUTION)
    failed = frozenset(
        (one.notebook, one.grade_id) for one in solution.verdicts if _is_short(one, key)
    )
    if failed:  # apart; each has its second chance in the student's kernel
        key = _with_apart(key, failed)
        solution = graded(key, source, _SOLUTION)
    handout = graded(key, prepared.files, _HANDOUT)
    problems = [
        *(_too_little(one) for one in solution.verdicts if _is_short(one, key)),
        *(_too_much(one) for one in handout.verdicts if one.score and _is_test(one, key)),
    ]
    return ReleaseCheck(
        key=key,
        problems=tuple(problems),
        in_kernel=tuple(said for notebook in key.notebooks if (said := _in_kernel(notebook))),
        solution_seconds=solution.seconds,
        handout_seconds=handout.seconds,
    )


def _with_apart(key: AssignmentKey, failed: frozenset[tuple[str, str]]) -> AssignmentKey:
    """Which tests to run apart: all that can be written so, but those that have failed so."""
    notebooks = tuple(
        replace(
            notebook,
            apart=frozenset(
                cell.grade_id
                for cell in notebook.tests
                if (notebook.name, cell.grade_id) not in failed and examined(notebook, cell)
            ),
        )
        for notebook in key.notebooks
    )
    return replace(key, notebooks=notebooks)


def _is_test(one: CellVerdict, key: AssignmentKey) -> bool:
    return any(
        cell.grade_id == one.grade_id
        for notebook in key.notebooks
        if notebook.name == one.notebook
        for cell in notebook.tests
    )


def _is_short(one: CellVerdict, key: AssignmentKey) -> bool:
    return _is_test(one, key) and one.word is not Word.PASSED


def _too_little(one: CellVerdict) -> str:
    return (
        f"The solution does not pass {one.grade_id!r} of {one.notebook}.ipynb "
        f"({one.word}): {one.sentence}"
    )


def _too_much(one: CellVerdict) -> str:
    return (
        f"The hand-out without solutions gets {one.score:g} points for {one.grade_id!r} of "
        f"{one.notebook}.ipynb: a student who does nothing would, too."
    )


def _in_kernel(notebook: NotebookKey) -> str:
    """Which tests run in the student's kernel and what that means; empty where none does."""
    names = [cell.grade_id for cell in notebook.tests if cell.grade_id not in notebook.apart]
    if not names:
        return ""
    return (
        f"In {notebook.name}.ipynb these tests run in the student's own kernel: "
        f"{', '.join(names)}. Code that means to can fool such a test. One that calls the "
        "student's functions with plain values and compares plain results can run apart from it."
    )
