"""The trusted side of Check, started under the lease of one check.

Run as ``python -m carrel.courses.grading_runs.check_worker``.

It works as the grader does, with the same cages and the tests as they were handed out. What it
finds stays in the attempt's own folder.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...hub.config.state_folder import StateFolder
from ...hub.errors import CarrelError
from ...hub.files.local import INPUT
from ...hub.files.safe_fs import write_into
from ...hub.schemas.checks import RESULT, UNSEEN, CheckOrderOut
from ...hub.schemas.grading import CellScoreIn, VerdictIn
from ..grading.answer_key import AssignmentKey
from ..grading.class_grader import GradingProgress, Terms, Work, grade_class
from ..grading.submission_grader import SubmissionResult
from ..releases.student_version import key_of_visible
from ..workspace import folder
from .work_source import verdict_of
from .worker import at_hand

_NOTHING_SEEN = "This test is hidden: it runs when your work is graded."
_PASSED = "All checks of this test that you can see passed."


def main() -> int:
    try:
        check()
    except CarrelError as error:
        print(error, flush=True)
        return 1
    return 0


def check() -> None:
    """Raises CarrelError."""
    attempt = Path(os.environ["CARREL_OUTPUT_DIR"]).parent
    state = StateFolder.at(os.environ["CARREL_STATE"])
    given = CheckOrderOut.model_validate_json((attempt.parent / INPUT).read_bytes())
    with at_hand(state, given.order) as tools:
        bench = CheckWork(given)
        terms = Terms(limits=tools.limits, files=tools.prepared.files)
        grade_class(tools.engine, key_of_visible(tools.prepared, tools.key), bench, terms)
    verdict = as_seen(bench.verdict, unseen(tools.prepared.key))
    write_into(attempt, RESULT, verdict.model_dump_json())


class CheckWork:
    """``run.Bench`` with the work of one person and without a gradebook."""

    def __init__(self, given: CheckOrderOut) -> None:
        self._given = given
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
        """Of one submission there is none."""

    def stopped(self) -> bool:
        return False


def unseen(key: AssignmentKey) -> frozenset[tuple[str, str]]:
    """Tests of which nothing that runs was handed out: they would pass for everybody."""
    return frozenset(
        (notebook.name, cell.grade_id)
        for notebook in key.notebooks
        for cell in notebook.tests
        if cell.has_hidden_part and not _runs(cell.visible)
    )


def _runs(source: str) -> bool:
    try:
        return bool(ast.parse(source).body)
    except SyntaxError:  # a magic
        return True


def as_seen(verdict: VerdictIn, hidden: frozenset[tuple[str, str]]) -> VerdictIn:
    """In the words for what only a part of the tests has said."""
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
