"""A source of work for a grading run that keeps everything in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from carrel.courses.grading.class_grader import GradingProgress, Work
from carrel.courses.grading.submission_grader import SubmissionResult


class MemoryBench:
    """``submissions`` by student, in that order."""

    def __init__(self, submissions: Mapping[str, Mapping[str, bytes]]) -> None:
        self._submissions = submissions
        self.results: dict[str, SubmissionResult] = {}
        self.failures: dict[str, str] = {}
        self.told: list[GradingProgress] = []
        self.stop_after: int | None = None

    def waiting(self) -> Sequence[Work]:
        return [
            Work(number=number, student=student)
            for number, student in enumerate(self._submissions)
            if student not in self.results
        ]

    def files(self, work: Work) -> Mapping[str, bytes]:
        return self._submissions[work.student]

    def graded(self, work: Work, result: SubmissionResult) -> None:
        self.results.setdefault(work.student, result)

    def failed(self, work: Work, sentence: str) -> None:
        self.failures[work.student] = sentence

    def progress(self, progress: GradingProgress) -> None:
        self.told.append(progress)

    def stopped(self) -> bool:
        return self.stop_after is not None and len(self.results) >= self.stop_after

    def scores(self) -> dict[str, dict[str, float]]:
        """Return scores as the gradebook counts them; work to be graded by hand counts 0."""
        return {
            student: {one.grade_id: one.score or 0.0 for one in result.verdicts}
            for student, result in self.results.items()
        }
