"""Run the visible tests of one check: the process that runs under its lease.

Run as ``python -m carrel.courses.grading_runs.check_worker``.

It works as the grading worker, in the same sandboxes, but with the visible tests only. Its result
stays in the attempt's folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...hub.config.state_folder import StateFolder
from ...hub.files.local import INPUT
from ...hub.files.safe_fs import write_into
from ...hub.schemas.checks import RESULT, UNSEEN, CheckOrderOut
from ...hub.schemas.grading import CellScoreIn, VerdictIn
from ..grading.answer_key import AssignmentKey
from ..grading.class_grader import GradingProgress, Terms, Work, grade_class
from ..grading.submission_grader import SubmissionResult
from ..notebooks.python_code import parse
from ..releases.student_version import key_of_visible
from ..workspace import folder
from .work_source import verdict_of
from .worker import grading_tools, run

_NOTHING_SEEN = "This test is hidden: it runs when your work is graded."
_PASSED = "All checks of this test that you can see passed."


def main() -> int:
    return run(check)


def check() -> None:
    """Run the check of this attempt. Raises CarrelError."""
    attempt = Path(os.environ["CARREL_OUTPUT_DIR"]).parent
    state = StateFolder.at(os.environ["CARREL_STATE"])
    order = CheckOrderOut.model_validate_json((attempt.parent / INPUT).read_bytes())
    with grading_tools(state, order.order) as tools:
        work = CheckWork(order)
        terms = Terms(limits=tools.limits, files=tools.prepared.files)
        grade_class(tools.engine, key_of_visible(tools.prepared, tools.key), work, terms)
    verdict = as_seen(work.verdict, unseen(tools.prepared.key))
    write_into(attempt, RESULT, verdict.model_dump_json())


class CheckWork:
    """A ``WorkSource`` with the work of one student and without a gradebook."""

    def __init__(self, order: CheckOrderOut) -> None:
        self._given = order
        self.verdict = VerdictIn(submission=1, seconds=0.0, why_not="Nothing was checked.")

    def waiting(self) -> Sequence[Work]:
        return [Work(number=1, student=self._given.person)]

    def files(self, work: Work) -> Mapping[str, bytes]:
        return folder.contents(self._given.files)

    def graded(self, work: Work, result: SubmissionResult) -> None:
        self.verdict = verdict_of(work, result)

    def failed(self, work: Work, sentence: str) -> None:
        self.verdict = VerdictIn(submission=1, seconds=0.0, why_not=sentence)

    def progress(self, progress: GradingProgress) -> None:
        """Not shown: there is only one submission."""

    def stopped(self) -> bool:
        return False


def unseen(key: AssignmentKey) -> frozenset[tuple[str, str]]:
    """Tests without any visible code: they would pass for every student."""
    return frozenset(
        (notebook.name, cell.grade_id)
        for notebook in key.notebooks
        for cell in notebook.tests
        if cell.has_hidden_part and not _runs(cell.visible)
    )


def _runs(source: str) -> bool:
    tree = parse(source)
    return tree is None or bool(tree.body)


def as_seen(verdict: VerdictIn, hidden: frozenset[tuple[str, str]]) -> VerdictIn:
    """Reword a verdict for a check, which runs only the visible part of the tests."""
    cells = [_as_seen(cell, hidden=(cell.notebook, cell.cell) in hidden) for cell in verdict.cells]
    return verdict.model_copy(update={"cells": cells})


def _as_seen(cell: CellScoreIn, *, hidden: bool) -> CellScoreIn:
    if hidden:
        return cell.model_copy(update={"word": UNSEEN, "sentence": _NOTHING_SEEN})
    if cell.word == "passed":
        return cell.model_copy(update={"sentence": _PASSED})
    return cell


if __name__ == "__main__":
    sys.exit(main())
