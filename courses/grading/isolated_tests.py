"""Runs tests apart: in a cage where no student's code ever ran.

The test asks for what it does not know, and each question goes to the student's kernel as it was
at the test's place. One cage serves many tests, each in a snapshot of its own that is used once,
so that no test meets anything of another submission.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...hub.errors import BackendFailed
from ...hub.records.json_value import Json
from ..sandbox.interface import (
    CellRun,
    CellStatus,
    CellStep,
    Sandbox,
    SandboxEngine,
    SandboxLimits,
    TestAnswer,
)

AHEAD = 16
"""Snapshots that are made at once; a paused one costs little."""


class IsolatedTests:
    """Used by one thread."""

    def __init__(
        self, engine: SandboxEngine, limits: SandboxLimits, files: Mapping[str, bytes] | None = None
    ) -> None:
        self._engine = engine
        # The cage outlives many submissions; each test is bounded by itself.
        self._limits = replace(limits, seconds=limits.test_seconds * AHEAD * 2)
        self._files = files or {}
        self._cage: Sandbox | None = None
        self._left: list[str] = []

    def test(self, student: Sandbox, mark: str, source: str) -> CellRun:
        """Run this test against that snapshot; what stopped the student's side stops the test."""
        line = _Line(student, mark)
        cage, place = self._next()
        run = cage.test(place, source, line.answer)
        if run.status is CellStatus.NOT_RUN:  # it was gone before anything was asked
            self.close()
            cage, place = self._next()
            run = cage.test(place, source, line.answer)
        if run.status is CellStatus.KILLED:  # by what this student's code answered
            self.close()
        if line.broken is not None:
            return replace(run, status=line.broken.status, cause=line.broken.cause)
        return run

    def close(self) -> None:
        if self._cage is not None:
            self._cage.close()
            self._cage = None
        self._left = []

    def _next(self) -> tuple[Sandbox, str]:
        if self._cage is None or not self._left:
            self.close()
            self._cage = self._engine.open(self._limits, self._files)
            steps = [CellStep(cell_id=f"free{n}", source="", mark=True) for n in range(AHEAD)]
            runs = list(self._cage.run(steps))
            self._left = [run.cell_id for run in runs if run.status is CellStatus.OK]
        if not self._left:
            raise BackendFailed("A clean process for tests could not be made.")
        return self._cage, self._left.pop()


@dataclass(slots=True)
class _Line:
    """From the examiner to one snapshot of the student's kernel, until that fails."""

    student: Sandbox
    mark: str
    broken: TestAnswer | None = None

    def answer(self, question: Json) -> Json:
        if self.broken is None:
            answer = self.student.ask(self.mark, question)
            if answer.status is CellStatus.OK:
                return answer.value
            self.broken = answer
        return None
