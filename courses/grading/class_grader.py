"""Grade the submissions of a class in parallel.

A submission that fails does not stop the others. Each gets one verdict, which is stored at once: an
interrupted run continues with those that have none.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...hub.errors import BackendFailed, CarrelError, Unavailable
from ..sandbox.interface import SandboxEngine, SandboxLimits
from .answer_key import AssignmentKey
from .submission_grader import SubmissionGrader, SubmissionResult

_log = logging.getLogger(__name__)
PATIENCE = 3
"""Consecutive failures of the engine that end the run; the rest gets no verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One submission to grade; ``number`` is its ID in the store."""

    number: int
    student: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingProgress:
    """Submissions with a verdict, all submissions, and the seconds since the start."""

    done: int
    total: int
    seconds: float


class WorkSource(Protocol):
    """Supplies submissions and stores verdicts; called by one thread at a time."""

    def waiting(self) -> Sequence[Work]:
        """The submissions of this run without a verdict."""
        ...

    def files(self, work: Work) -> Mapping[str, bytes]: ...

    def graded(self, work: Work, result: SubmissionResult) -> None:
        """Store a result before returning; a second one for the same work is dropped."""
        ...

    def failed(self, work: Work, sentence: str) -> None:
        """Store that grading failed, so that a person looks at it."""
        ...

    def progress(self, progress: GradingProgress) -> None: ...

    def stopped(self) -> bool:
        """Whether the run was cancelled: running work ends, and no new work starts."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Options of a run.

    Attributes:
        parallel: submissions at the same time.
        only: ids of the cells to grade; None for all.
        files: of the released version, besides its notebooks.
    """

    parallel: int = 1
    only: frozenset[str] | None = None
    limits: SandboxLimits | None = None
    files: Mapping[str, bytes] | None = None


def grade_class(
    engine: SandboxEngine,
    key: AssignmentKey,
    source: WorkSource,
    terms: Terms,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> GradingProgress:
    """Grade all submissions without a verdict; returns the final progress.

    Raises:
        CarrelError: the engine failed several times in a row.
    """
    run = _Run(engine, key, source, terms, clock)
    return run.run()


@dataclass(frozen=True, slots=True)
class _Done:
    work: Work
    result: SubmissionResult | CarrelError


class _Run:
    """The worker threads of one run, and the thread that collects their results."""

    def __init__(
        self,
        engine: SandboxEngine,
        key: AssignmentKey,
        source: WorkSource,
        terms: Terms,
        clock: Callable[[], float],
    ) -> None:
        self._engine, self._key, self._source = engine, key, source
        self._terms, self._clock = terms, clock
        self._todo: queue.SimpleQueue[tuple[Work, Mapping[str, bytes]] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[_Done] = queue.SimpleQueue()

    def run(self) -> GradingProgress:
        works = list(self._source.waiting())
        self._began = self._clock()
        progress = self._progress(0, len(works))
        self._source.progress(progress)
        threads = [
            threading.Thread(target=self._work, name=f"grader {number}", daemon=True)
            for number in range(max(1, min(self._terms.parallel, len(works))))
        ]
        for thread in threads:
            thread.start()
        try:
            return self._collect(works, progress, ahead=2 * len(threads))
        finally:
            for _ in threads:
                self._todo.put(None)
            for thread in threads:
                thread.join()

    def _collect(
        self, works: Sequence[Work], progress: GradingProgress, *, ahead: int
    ) -> GradingProgress:
        """Queue a little more than is running, so that a cancelled run ends soon."""
        left = iter(works)
        running, failures = 0, 0
        while True:
            while running < ahead and not self._source.stopped():
                work = next(left, None)
                if work is None:
                    break
                self._todo.put((work, self._source.files(work)))
                running += 1
            if running == 0:
                return progress
            done = self._done.get()
            running -= 1
            failures = self._store(done, failures)
            progress = self._progress(progress.done + 1, len(works))
            self._source.progress(progress)

    def _store(self, done: _Done, failures: int) -> int:
        if not isinstance(done.result, CarrelError):
            self._source.graded(done.work, done.result)
            return 0
        self._source.failed(done.work, str(done.result))
        if not isinstance(done.result, BackendFailed | Unavailable):
            return failures
        if failures + 1 >= PATIENCE:
            raise done.result
        return failures + 1

    def _progress(self, done: int, total: int) -> GradingProgress:
        return GradingProgress(done=done, total=total, seconds=self._clock() - self._began)

    def _work(self) -> None:
        grader = SubmissionGrader(
            self._engine, self._key, limits=self._terms.limits, files=self._terms.files
        )
        try:
            while (given := self._todo.get()) is not None:
                work, files = given
                self._done.put(_Done(work, self._graded(grader, work, files)))
        finally:
            grader.close()

    def _graded(
        self, grader: SubmissionGrader, work: Work, files: Mapping[str, bytes]
    ) -> SubmissionResult | CarrelError:
        """Grade a submission; if the engine fails, once more, since the student is not to blame."""
        for again in (True, False):
            try:
                return grader.grade(work.student, files, only=self._terms.only)
            except (BackendFailed, Unavailable) as error:
                if not again:
                    return error
            except Exception:  # in one submission; the others are graded all the same
                _log.exception("grading of submission %s of %s failed", work.number, work.student)
                return CarrelError("Grading this submission failed with an unexpected error.")
        raise AssertionError("unreachable")
