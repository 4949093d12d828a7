"""The submissions of a grading run; sends verdicts to the service and to the gradebook."""

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
    """A ``WorkSource``. The gradebook is written first, so that it has every verdict.

    Args:
        progress_file: in which the attempt reports its progress.
    """

    def __init__(
        self,
        order: GradingOrderOut,
        store_verdict: Callable[[VerdictIn], bool],
        blobs: Blobs,
        gradebook: GradebookWriter,
        *,
        progress_file: Path,
    ) -> None:
        self._order, self._store_verdict, self._blobs, self._gradebook = (
            order,
            store_verdict,
            blobs,
            gradebook,
        )
        self._works: Mapping[int, WorkOut] = {each.submission: each for each in order.works}
        self._progress_file = progress_file

    def waiting(self) -> Sequence[Work]:
        return [Work(number=each.submission, student=each.person) for each in self._order.works]

    def files(self, work: Work) -> Mapping[str, bytes]:
        return contents(self._blobs, self._works[work.number].files)

    def graded(self, work: Work, result: SubmissionResult) -> None:
        given = self._works[work.number]
        self._gradebook.record(
            self._order.assignment,
            result,
            files=self.files(work),
            submitted_at=datetime.fromtimestamp(given.at, UTC),
            late_penalty=given.penalty,
        )
        self._store_verdict(verdict_of(work, result))

    def failed(self, work: Work, sentence: str) -> None:
        print(f"{work.student}: {sentence}", flush=True)
        self._store_verdict(
            VerdictIn(submission=work.number, seconds=0.0, why_not=sentence[:_SENTENCE])
        )

    def progress(self, progress: GradingProgress) -> None:
        """Write the progress as ``carrel.progress`` does, so that it is shown with the request."""
        found = {"done": progress.done, "of": progress.total, "text": "submissions graded"}
        draft = self._progress_file.with_suffix(".part")
        draft.write_text(json.dumps(found) + "\n", encoding="utf-8")
        draft.replace(self._progress_file)

    def stopped(self) -> bool:
        """Cancelling a run ends this process by a signal."""
        return False


def verdict_of(work: Work, result: SubmissionResult) -> VerdictIn:
    """The verdict on a result, as the service stores it."""
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
        notes=[
            note[:_SENTENCE]
            for notes in (result.notes, *(each.notes for each in result.notebooks))
            for note in notes
        ],
    )
