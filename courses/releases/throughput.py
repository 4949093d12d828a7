"""How fast submissions are graded here: the solution and the hand-out, as many at once as in a run.

One alone, on a machine that has nothing else to do, says too little of many side by side.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from ..grading.answer_key import AssignmentKey
from ..grading.class_grader import GradingProgress, Terms, Work, grade_class
from ..grading.duration import pace_of, parallel
from ..grading.submission_grader import SubmissionResult
from ..model.records import GradingPace
from ..sandbox.interface import SandboxEngine, SandboxLimits
from .student_version import Prepared

_SECONDS: Final = 9.0
"""About so long it is looked at; what takes longer is graded once on each CPU."""
_ROUNDS: Final = 10


def opening(engine: SandboxEngine, limits: SandboxLimits) -> float:
    """Seconds until the first cage of an engine is there. Raises BackendFailed, Unavailable."""
    began = time.monotonic()
    engine.open(limits).close()
    return time.monotonic() - began


def measured(
    engine: SandboxEngine,
    key: AssignmentKey,
    prepared: Prepared,
    source: Mapping[str, bytes],
    *,
    limits: SandboxLimits,
    start: float,
    one: float,
) -> GradingPace:
    """``start``: of the engine; ``one``: seconds that a submission takes alone."""
    at_once = max(2, parallel())  # both, the solution and the hand-out
    rounds = max(1, round(min(_ROUNDS, _SECONDS / one)))
    # What people hand in is nearer to the solution.
    bench = _Turns((source, prepared.files, source), at_once * rounds)
    terms = Terms(parallel=at_once, limits=limits, files=prepared.files)
    grade_class(engine, key, bench, terms)
    return pace_of(start, bench.verdicts, at_once)


class _Turns:
    """``run.Bench`` that hands these out by turns, and keeps when each came and what it took."""

    def __init__(self, parcels: Sequence[Mapping[str, bytes]], count: int) -> None:
        self._parcels, self._count = parcels, count
        self.verdicts: list[tuple[float, float]] = []

    def waiting(self) -> Sequence[Work]:
        return [Work(number=number, student=str(number)) for number in range(self._count)]

    def files(self, work: Work) -> Mapping[str, bytes]:
        return self._parcels[work.number % len(self._parcels)]

    def graded(self, work: Work, result: SubmissionResult) -> None:
        self.verdicts.append((time.monotonic(), result.seconds))

    def failed(self, work: Work, sentence: str) -> None:
        """It says nothing of time."""

    def progress(self, progress: GradingProgress) -> None:
        """Nobody waits for it."""

    def stopped(self) -> bool:
        return False
