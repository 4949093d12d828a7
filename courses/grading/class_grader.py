"""Grades a class: submissions in parallel, and verdicts as they come.

One bad submission stops nobody. A verdict is given once for each submission; what was interrupted
goes on with those that have none.
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
"""So many failures of the engine in a row end the run; what is left keeps no verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One submission to grade; ``number`` is the store's."""

    number: int
    student: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingProgress:
    """How many of how many have a verdict, and the seconds since the first one began."""

    done: int
    total: int
    seconds: float


class WorkSource(Protocol):
    """Where the work comes from and the verdicts go; called by one thread at a time."""

    def waiting(self) -> Sequence[Work]:
        """The submissions of this run that have no verdict yet."""
        ...

    def files(self, work: Work) -> Mapping[str, bytes]: ...

    def graded(self, work: Work, result: SubmissionResult) -> None:
        """Keep it for good before this returns; a second one for the same work is dropped."""
        ...

    def failed(self, work: Work, sentence: str) -> None:
        """The engine failed on this one twice: a person has to look."""
        ...

    def progress(self, progress: GradingProgress) -> None: ...

    def stopped(self) -> bool:
        """Whether the run was cancelled: what is running ends, nothing new begins."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a run grades.

    Attributes:
        parallel: submissions at one time: the CPUs of the lease.
        only: ids of cells to grade anew; None for all.
        files: what the hand-out has beside its notebooks.
    """

    parallel: int = 1
    only: frozenset[str] | None = None
    limits: SandboxLimits | None = None
    files: Mapping[str, bytes] | None = None


def grade_class(
    engine: SandboxEngine,
    key: AssignmentKey,
    bench: WorkSource,
    terms: Terms,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> GradingProgress:
    """Grade all that waits; the last progress.

    Raises:
        CarrelError: the engine fails again and again.
    """
    run = _Run(engine, key, bench, terms, clock)
    return run.go()


@dataclass(frozen=True, slots=True)
class _Done:
    work: Work
    result: SubmissionResult | CarrelError


class _Run:
    """The threads of one run, and the one that hears of them."""

    def __init__(
        self,
        engine: SandboxEngine,
        key: AssignmentKey,
        bench: WorkSource,
        terms: Terms,
        clock: Callable[[], float],
    ) -> None:
        self._engine, self._key, self._bench = engine, key, bench
        self._terms, self._clock = terms, clock
        self._todo: queue.SimpleQueue[tuple[Work, Mapping[str, bytes]] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[_Done] = queue.SimpleQueue()

    def go(self) -> GradingProgress:
        works = list(self._bench.waiting())
        self._began = self._clock()
        progress = self._progress(0, len(works))
        self._bench.progress(progress)
        threads = [
            threading.Thread(target=self._work, name=f"grader {number}", daemon=True)
            for number in range(max(1, min(self._terms.parallel, len(works))))
        ]
        for thread in threads:
            thread.start()
        try:
            return self._hear(works, progress, ahead=2 * len(threads))
        finally:
            for _ in threads:
                self._todo.put(None)
            for thread in threads:
                thread.join()

    def _hear(
        self, works: Sequence[Work], progress: GradingProgress, *, ahead: int
    ) -> GradingProgress:
        """Hand out little more than is being done, so that a cancelled run ends soon."""
        left = iter(works)
        running, failures = 0, 0
        while True:
            while running < ahead and not self._bench.stopped():
                work = next(left, None)
                if work is None:
                    break
                self._todo.put((work, self._bench.files(work)))
                running += 1
            if running == 0:
                return progress
            done = self._done.get()
            running -= 1
            failures = self._deliver(done, failures)
            progress = self._progress(progress.done + 1, len(works))
            self._bench.progress(progress)

    def _deliver(self, done: _Done, failures: int) -> int:
        if not isinstance(done.result, CarrelError):
            self._bench.graded(done.work, done.result)
            return 0
        self._bench.failed(done.work, str(done.result))
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
        """A cage that fails is tried again once: that is the engine's fault, not the student's."""
        for again in (True, False):
            try:
                return grader.grade(work.student, files, only=self._terms.only)
            except (BackendFailed, Unavailable) as error:
                if not again:
                    return error
            except Exception:  # of one submission; the others are still to be graded
                _log.exception("grading of submission %s of %s failed", work.number, work.student)
                return CarrelError("The grader met something unexpected in this submission.")
        raise AssertionError("unreachable")
