"""Measure the pace of grading: grade the solution and the student version as a run does.

One submission alone on an idle machine would be too fast an estimate.
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
"""About how long to measure; slower submissions are graded once on each CPU."""
_ROUNDS: Final = 10


def seconds_to_open(engine: SandboxEngine, limits: SandboxLimits) -> float:
    """Seconds to open the first sandbox of an engine. Raises BackendFailed, Unavailable."""
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
    """The pace of grading.

    Args:
        start: seconds until the engine's first sandbox.
        one: seconds that a submission takes alone.
    """
    at_once = max(2, parallel())  # the solution and the student version
    rounds = max(1, round(min(_ROUNDS, _SECONDS / one)))
    # Submissions resemble the solution more than the student version.
    work = _RepeatedWork((source, prepared.files, source), at_once * rounds)
    terms = Terms(parallel=at_once, limits=limits, files=prepared.files)
    grade_class(engine, key, work, terms)
    return pace_of(start, work.verdicts, at_once)


class _RepeatedWork:
    """A ``WorkSource`` that repeats these bundles, and records the time of each result."""

    def __init__(self, bundles: Sequence[Mapping[str, bytes]], count: int) -> None:
        self._bundles, self._count = bundles, count
        self.verdicts: list[tuple[float, float]] = []

    def waiting(self) -> Sequence[Work]:
        return [Work(number=number, student=str(number)) for number in range(self._count)]

    def files(self, work: Work) -> Mapping[str, bytes]:
        return self._bundles[work.number % len(self._bundles)]

    def graded(self, work: Work, result: SubmissionResult) -> None:
        self.verdicts.append((time.monotonic(), result.seconds))

    def failed(self, work: Work, sentence: str) -> None:
        """Not counted."""

    def progress(self, progress: GradingProgress) -> None:
        """Not shown."""

    def stopped(self) -> bool:
        return False
