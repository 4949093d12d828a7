"""A grading run's work from the service: files from the blobs, verdicts to it and the gradebook."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ...hub.schemas.grading import CellScoreIn, GradingOrderOut, VerdictIn, WorkOut
from ..files.transfer import contents
from ..gradebook.writer import GradebookWriter
from ..grading.class_grader import GradingProgress, Work
from ..grading.submission_grader import SubmissionResult
from ..model.interfaces import Blobs

_SENTENCE = 2000


class ServiceWorkSource:
    """``run.Bench``. The gradebook comes first: what has a verdict is in it.

    Attributes:
        told: the file in which the attempt says how far it is.
    """

    def __init__(
        self,
        order: GradingOrderOut,
        judge: Callable[[VerdictIn], bool],
        blobs: Blobs,
        book: GradebookWriter,
        *,
        told: Path,
    ) -> None:
        self._order, self._judge, self._blobs, self._book = order, judge, blobs, book
        self._works: Mapping[int, WorkOut] = {each.submission: each for each in order.works}
        self._told = told

    def waiting(self) -> Sequence[Work]:
        return [Work(number=each.submission, student=each.person) for each in self._order.works]

    def files(self, work: Work) -> Mapping[str, bytes]:
        return contents(self._blobs, self._works[work.number].files)

    def graded(self, work: Work, result: SubmissionResult) -> None:
        given = self._works[work.number]
        self._book.record(
            self._order.assignment,
            result,
            files=self.files(work),
            submitted_at=datetime.fromtimestamp(given.at, UTC),
            late_penalty=given.penalty,
        )
        self._judge(verdict_of(work, result))

    def failed(self, work: Work, sentence: str) -> None:
        print(f"{work.student}: {sentence}", flush=True)
        self._judge(VerdictIn(submission=work.number, seconds=0.0, why_not=sentence[:_SENTENCE]))

    def progress(self, progress: GradingProgress) -> None:
        """Where everything that runs says it: it is shown wherever requests are."""
        told = {"step": progress.done, "total": progress.total, "unit": "submissions"}
        draft = self._told.with_suffix(".part")
        draft.write_text(json.dumps(told), encoding="utf-8")
        draft.replace(self._told)

    def stopped(self) -> bool:
        """Who cancels a run ends its grader by a signal."""
        return False


def verdict_of(work: Work, result: SubmissionResult) -> VerdictIn:
    """What the service keeps of a result."""
    return VerdictIn(
        submission=work.number,
        seconds=result.seconds,
        cells=[
            CellScoreIn(
                notebook=one.notebook,
                cell=one.grade_id,
                word=str(one.word),
                sentence=one.sentence[:_SENTENCE],
                score=one.score,
                max_score=one.max_score,
                review=one.review,
            )
            for one in result.verdicts
        ],
        notes=[note[:_SENTENCE] for each in result.notebooks for note in each.notes],
    )
