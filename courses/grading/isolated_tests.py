"""Run isolated tests: in a sandbox where no student's code ever ran.

The test asks for names that it does not know, and each question goes to the snapshot of the
student's kernel before the test. One sandbox serves many tests, each in a snapshot of its own that
is used once, so that no test depends on another submission.
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
"""Snapshots to take at once; a paused one costs little."""


class IsolatedTests:
    """Runs tests in clean snapshots. Used by one thread."""

    def __init__(
        self, engine: SandboxEngine, limits: SandboxLimits, files: Mapping[str, bytes] | None = None
    ) -> None:
        self._engine = engine
        # The sandbox outlives many submissions; each test has its own limits.
        self._limits = replace(limits, seconds=limits.test_seconds * AHEAD * 2)
        self._files = files or {}
        self._sandbox: Sandbox | None = None
        self._free: list[str] = []

    def test(self, student: Sandbox, mark: str, source: str) -> CellRun:
        """Run a test against a snapshot of the student; if the student's side stops, it stops."""
        questions = _Questions(student, mark)
        sandbox, clean = self._next()
        run = sandbox.test(clean, source, questions.answer)
        if run.status is CellStatus.NOT_RUN:  # the sandbox was gone before the test started
            self.close()
            sandbox, clean = self._next()
            run = sandbox.test(clean, source, questions.answer)
        if run.status is CellStatus.KILLED:  # by the answers of this student's code
            self.close()
        if questions.broken is not None:
            return replace(run, status=questions.broken.status, cause=questions.broken.cause)
        return run

    def close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None
        self._free = []

    def _next(self) -> tuple[Sandbox, str]:
        if self._sandbox is None or not self._free:
            self.close()
            self._sandbox = self._engine.open(self._limits, self._files)
            steps = [CellStep(cell_id=f"free{n}", source="", mark=True) for n in range(AHEAD)]
            runs = list(self._sandbox.run(steps))
            self._free = [run.cell_id for run in runs if run.status is CellStatus.OK]
        if not self._free:
            raise BackendFailed("A clean process for tests could not be started.")
        return self._sandbox, self._free.pop()


@dataclass(slots=True)
class _Questions:
    """Forwards the questions of a test to one snapshot of the student's kernel."""

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
