"""Grade one submission: run each notebook in a fresh sandbox, then its tests.

No submission raises an exception here: one that cannot be graded gets a verdict that says so.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from nbformat import NotebookNode
from nbgrader.preprocessors import LimitOutput

from ...hub.errors import InvalidInput
from ..notebooks import ipynb
from ..sandbox.interface import CellRun, Sandbox, SandboxEngine, SandboxLimits
from . import module_conflicts, verdict
from .answer_key import AssignmentKey, KeyCell, NotebookKey
from .execution_plan import ExecutionPlan, Test, plan
from .isolated_tests import IsolatedTests
from .sanitizer import CellRepair, Sheet, sanitize
from .verdict import CellVerdict, TestOutcome, Word


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookResult:
    """Attributes:
    node: as it ran, with the full tests, for teachers; None if it was not submitted.
    notes: sentences for the student about the notebook as a whole.
    stopped: sentences about cells that were stopped or ended the kernel, by index in ``node``.
    """

    name: str
    node: NotebookNode | None
    verdicts: tuple[CellVerdict, ...]
    notes: tuple[str, ...] = ()
    stopped: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionResult:
    """The result of one submission.

    Attributes:
        notes: sentences for the student about the other files.
    """

    student: str
    notebooks: tuple[NotebookResult, ...]
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def verdicts(self) -> tuple[CellVerdict, ...]:
        return tuple(one for notebook in self.notebooks for one in notebook.verdicts)


class SubmissionGrader:
    """Grades submissions to one assignment, one after another; used by one thread.

    ``files`` are those of the released version besides its notebooks. They replace the submitted
    ones, and those that would shadow their modules.
    """

    def __init__(
        self,
        engine: SandboxEngine,
        key: AssignmentKey,
        *,
        limits: SandboxLimits | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        self._engine = engine
        self._key = key
        self._limits = limits or SandboxLimits()
        self._files = {name: data for name, data in (files or {}).items() if not _is_notebook(name)}
        self._isolated_tests = IsolatedTests(engine, self._limits, self._files)

    def grade(
        self, student: str, submitted: Mapping[str, bytes], *, only: frozenset[str] | None = None
    ) -> SubmissionResult:
        """Grade a submission. With ``only``, only these cells get verdicts; all cells run.

        Raises:
            Unavailable, BackendFailed: the engine, not the submission, has failed.
        """
        began = time.monotonic()
        own = {name: data for name, data in submitted.items() if not _is_notebook(name)}
        files, notes = module_conflicts.merged(own, self._files)
        notebooks = tuple(
            self._notebook(key, submitted.get(f"{key.name}.ipynb"), files, only)
            for key in self._key.notebooks
        )
        return SubmissionResult(
            student=student, notebooks=notebooks, seconds=time.monotonic() - began, notes=notes
        )

    def close(self) -> None:
        self._isolated_tests.close()

    def _notebook(
        self,
        key: NotebookKey,
        data: bytes | None,
        files: Mapping[str, bytes],
        only: frozenset[str] | None,
    ) -> NotebookResult:
        if data is None:
            return _nothing(key, Word.MISSING, f"{key.name}.ipynb was not submitted.", only)
        try:
            sheet = sanitize(data, key)
        except InvalidInput as error:
            return _nothing(key, Word.NOT_RUN, error.message, only)
        planned = plan(sheet.node, key, only=only)
        runs: dict[str, CellRun] = {}
        tests: dict[str, CellRun] = {}
        if planned.steps:
            sandbox = self._engine.open(self._limits, files)
            try:
                runs = {run.cell_id: run for run in sandbox.run(planned.steps)}
                tests = {test.mark: self._test(sandbox, test) for test in planned.tests}
            finally:
                sandbox.close()
        _record(sheet.node, runs, tests)
        stopped = _stopped(planned, runs)
        return NotebookResult(
            name=key.name,
            node=sheet.node,
            verdicts=tuple(_verdicts(key, sheet, planned, tests, only)),
            notes=(*_notes(sheet), *stopped.values()),
            stopped=stopped,
        )

    def _test(self, sandbox: Sandbox, test: Test) -> CellRun:
        if test.isolated_source:
            return self._isolated_tests.test(sandbox, test.mark, test.isolated_source)
        return sandbox.test(test.mark, test.source)


def _is_notebook(name: str) -> bool:
    return "/" not in name and name.endswith(".ipynb")


def _record(node: NotebookNode, runs: Mapping[str, CellRun], tests: Mapping[str, CellRun]) -> None:
    """Store outputs in the notebook, as nbgrader does in autograded ones."""
    numbers = count(1)
    for index, cell in enumerate(node.cells):
        run = tests.get(str(index)) or runs.get(str(index))
        if run is None:
            continue
        cell.outputs = [made for one in run.outputs if (made := ipynb.as_output(one))]
        cell.execution_count = next(numbers)
    LimitOutput().preprocess(node, {})


def _verdicts(
    key: NotebookKey,
    sheet: Sheet,
    planned: ExecutionPlan,
    tests: Mapping[str, CellRun],
    only: frozenset[str] | None,
) -> list[CellVerdict]:
    planned_tests = {test.grade_id: test for test in planned.tests}
    cells = {
        cell.metadata["nbgrader"]["grade_id"]: cell
        for cell in sheet.node.cells
        if cell.metadata.get("nbgrader", {}).get("grade_id")
    }
    found = []
    for one in key.gradable:
        if only is not None and one.grade_id not in only:
            continue
        test = planned_tests.get(one.grade_id)
        run = None if test is None else tests[test.mark]
        outcome = _outcome(one, cells.get(one.grade_id), run)
        found.append(_signed(key, one, outcome, test, run))
    return found


def _outcome(key: KeyCell, cell: NotebookNode | None, run: CellRun | None) -> TestOutcome:
    if cell is None:
        return verdict.of_missing(is_test=key.is_test)
    if run is not None:
        return verdict.of_test(cell, key, run)
    if key.is_test:  # an empty test passes
        return verdict.TestOutcome(
            word=Word.PASSED, sentence="All checks of this test passed.", score=key.points
        )
    return verdict.of_answer(cell, is_task=key.task)


def _signed(
    key: NotebookKey, cell: KeyCell, outcome: TestOutcome, test: Test | None, run: CellRun | None
) -> CellVerdict:
    return CellVerdict(
        notebook=key.name,
        grade_id=cell.grade_id,
        word=outcome.word,
        sentence=outcome.sentence,
        score=outcome.score,
        max_score=cell.points,
        review=outcome.review,
        apart=test is not None and bool(test.isolated_source),
        seconds=0.0 if run is None else run.seconds,
    )


def _nothing(
    key: NotebookKey, word: Word, sentence: str, only: frozenset[str] | None
) -> NotebookResult:
    """The result without a notebook: no points, as in nbgrader."""
    outcome = TestOutcome(word=word, sentence=sentence, score=0.0, review=word is not Word.MISSING)
    verdicts = [
        _signed(key, cell, outcome, None, None)
        for cell in key.gradable
        if only is None or cell.grade_id in only
    ]
    return NotebookResult(name=key.name, node=None, verdicts=tuple(verdicts), notes=(sentence,))


def _notes(sheet: Sheet) -> list[str]:
    notes = []
    if sheet.repairs:
        notes.append(f"The notebook file was repaired: {' '.join(sheet.repairs)}")
    for finding in sheet.findings:
        if finding.change is CellRepair.DUPLICATED:
            notes.append(f"The cell {finding.grade_id!r} is there more than once: the last counts.")
        elif finding.change is CellRepair.CHANGED:
            notes.append(f"The cell {finding.grade_id!r} was changed: the teacher's text was used.")
    return notes


def _stopped(planned: ExecutionPlan, runs: Mapping[str, CellRun]) -> dict[int, str]:
    indexes = [int(step.cell_id) for step in planned.steps if step.cell_id in runs]
    notes = {index: verdict.of_stopped_cell(index + 1, runs[str(index)]) for index in indexes}
    return {index: note for index, note in notes.items() if note}
