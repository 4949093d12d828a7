"""Check a release: the teacher's solution must get all points, and the student version none.

Both run in the grading sandbox. Each test first runs isolated from the student's kernel; one in
which the solution fails there is recorded to run in that kernel. The measured times become the
estimate for grading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..grading.answer_key import AssignmentKey, NotebookKey
from ..grading.execution_plan import isolated_source
from ..grading.submission_grader import SubmissionGrader, SubmissionResult
from ..grading.verdict import CellVerdict, Word
from ..sandbox.interface import SandboxEngine, SandboxLimits
from .student_version import Prepared

_SOLUTION, _STUDENT_VERSION = "the solution", "the released version"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCheck:
    """Attributes:
    key: the answer key, with the tests that can run isolated.
    problems: sentences; a release with any is refused.
    in_kernel: sentences about tests that cannot run isolated.
    solution_seconds, student_seconds: the grading times of the two versions.
    """

    key: AssignmentKey
    problems: tuple[str, ...]
    in_kernel: tuple[str, ...]
    solution_seconds: float
    student_seconds: float

    @property
    def seconds_each(self) -> float:
        """Estimated seconds of one submission: the mean of the two versions."""
        return (self.solution_seconds + self.student_seconds) / 2


def check_release(
    engine: SandboxEngine,
    prepared: Prepared,
    source: Mapping[str, bytes],
    *,
    limits: SandboxLimits | None = None,
) -> ReleaseCheck:
    """Grade the teacher's source and the student version as if they had been submitted."""

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
    if failed:  # isolated; each runs again in the student's kernel
        key = _with_apart(key, failed)
        solution = graded(key, source, _SOLUTION)
    student = graded(key, prepared.files, _STUDENT_VERSION)
    problems = [
        *(_too_little(one) for one in solution.verdicts if _is_short(one, key)),
        *(_too_much(one) for one in student.verdicts if one.score and _is_test(one, key)),
    ]
    return ReleaseCheck(
        key=key,
        problems=tuple(problems),
        in_kernel=tuple(said for notebook in key.notebooks if (said := _in_kernel(notebook))),
        solution_seconds=solution.seconds,
        student_seconds=student.seconds,
    )


def _with_apart(key: AssignmentKey, failed: frozenset[tuple[str, str]]) -> AssignmentKey:
    """Mark the tests to run isolated: all that can, without those that failed."""
    notebooks = tuple(
        replace(
            notebook,
            apart=frozenset(
                cell.grade_id
                for cell in notebook.tests
                if (notebook.name, cell.grade_id) not in failed and isolated_source(notebook, cell)
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
        f"The released version without solutions gets {one.score:g} points for {one.grade_id!r} of "
        f"{one.notebook}.ipynb: a student who does nothing would, too."
    )


def _in_kernel(notebook: NotebookKey) -> str:
    """A warning about the tests in the student's kernel; empty for none."""
    names = [cell.grade_id for cell in notebook.tests if cell.grade_id not in notebook.apart]
    if not names:
        return ""
    return (
        f"In {notebook.name}.ipynb these tests run in the student's own kernel: "
        f"{', '.join(names)}. Code that means to can fool such a test. One that calls the "
        "student's functions with plain values and compares plain results can run apart from it."
    )
