"""Have the submissions of a leaderboard evaluated, by one request at a time.

Each request starts PyTorch, and 300 starts on the last evening would take hours. While a request of
a leaderboard is live, no other one is created: while it is queued, submissions are added to its
order; later they wait without a request, and one next request evaluates all of them when it has
ended.

The time limit of a request fits its submissions one by one, and is bounded. Where it ends early,
the submissions that it has evaluated have their verdicts, and the next request evaluates the
others. A submission that was tried and failed is tried once more, alone and after all others; one
that no request has come to waits for further requests, within bounds.

What a request evaluates is stored in three steps: its order, its id with the submissions, and the
request. A submission whose request does not exist waits for the next one. So the service may end
between any two steps; `reconcile`, called every few seconds, goes on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil, log2
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ...hub.admission.policy import admit
from ...hub.admission.request_factory import grading_request, new_id
from ...hub.errors import CarrelError, Conflict, NotFound, Refused
from ...hub.messages.wait_reasons import progress_sentence
from ...hub.records.requests import RequestRecord
from ...hub.scheduling.model.snapshot import PriorityClass
from ...hub.scheduling.model.states import TERMINAL, State
from ...hub.schemas.coursework.leaderboards import (
    LEADERBOARD_RESULT,
    EntryScoreOut,
    LeaderboardOrderOut,
    LeaderboardResultOut,
    WeightsRefOut,
)
from ..files.transfer import ref_out
from ..model.leaderboards import (
    SCORED_AT_ONCE,
    EntryOutcome,
    Leaderboard,
    LeaderboardEntry,
    LeaderboardStore,
)
from ..roster.access import CourseAccess
from .verdicts import COSTS_NOTHING, Evaluated, after_evaluation, has_failed

WORKER: Final = ("python", "-P", "-m", "carrel.courses.leaderboards.worker")
ONE_BY_ONE: Final = threading.RLock()
"""Held while submissions are added, or those that wait are changed."""
MOST_SECONDS: Final = 4 * 3600
"""Of one request, unless a single submission may take longer."""
_START, _RETRIES = 120, 3
_FEWEST: Final = 2
"""Submissions that a request has time for: others are added while it is queued."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WeightsEvaluation:
    """Creates the requests of leaderboards, and reads their verdicts."""

    access: CourseAccess

    def entries(
        self, course: str, name: str, person: str | None = None
    ) -> Sequence[LeaderboardEntry]:
        """The submissions, newest first, with their verdicts."""
        self.settle(course, name)
        return self._store.entries(course, name, person)

    def settle(self, course: str, name: str) -> None:
        """Store the verdicts of requests that have ended. Reads only submissions that wait."""
        if not self._settled(self._store.waiting_in(course, name)):
            return
        with ONE_BY_ONE:
            self._store.change_waiting(self._settled(self._store.waiting_in(course, name)))

    def check(self, board: Leaderboard) -> None:
        """Raise the CarrelError for which no request of the leaderboard can be created now."""
        self._terms(board)

    def advance(self, course: str, name: str) -> None:
        """Have those that wait evaluated, unless a request of the leaderboard runs. Safe to repeat.

        Where no request is possible any more, the submissions end as faults, with the reason.
        """
        with ONE_BY_ONE:
            board = self._store.rule(course, name)
            self.settle(course, name)
            waiting = [*reversed(self._store.waiting_in(course, name))]
            if board is None or not waiting:
                return
            try:
                self._advance(board, waiting)
            except (Refused, Conflict, NotFound) as error:
                sentence = f"{error.message} {COSTS_NOTHING}"
                self._store.change_waiting(
                    [
                        replace(each, outcome=EntryOutcome.FAULT, sentence=sentence)
                        for each in waiting
                        if self._record(each.request) is None
                    ]
                )
                self.access.context.notifier.notify()
            except CarrelError as error:
                log.warning("the leaderboard of %s in %s waits: %s", name, course, error)

    def reconcile(self) -> None:
        """Advance all leaderboards with submissions that wait."""
        for course, name in self._store.waiting():
            self.advance(course, name)

    def failure(self, request: str) -> str:
        """Why the teacher's files failed in a request; empty where they did not, or it is gone."""
        record, files = self._record(request), self.access.context.files
        if record is None or record.lease is None or not files.keeps(record.id):
            return ""
        return _result(files.attempt_folder(record.id, record.lease.epoch)).failure

    def wait(self, request: str) -> str:
        """Why the submissions of a request wait, for their students."""
        record = self._record(request)
        if record is None:
            return "Waiting: one evaluation of a leaderboard runs at a time."
        return progress_sentence(record.state, self.access.context.plan_cache.wait_of(record.id))

    # -- requests -------------------------------------------------------------------------

    def _advance(self, board: Leaderboard, waiting: Sequence[LeaderboardEntry]) -> None:
        records = {each.request: self._record(each.request) for each in waiting}
        live = next((record for record in records.values() if record is not None), None)
        new = [each for each in waiting if records[each.request] is None]
        if not new:
            return
        if live is not None:
            if live.state is State.QUEUED:
                self._add(board, live, waiting, new)
            return
        terms, request = self._terms(board, len(new)), new_id("g")
        self._put_order(board, terms, request, new)
        self._store.change_waiting([replace(each, request=request) for each in new])
        context = self.access.context
        context.store.submit(
            grading_request(
                request_id=request,
                owner=terms.owner,
                group=board.course,
                devices=terms.devices,
                seconds=terms.seconds,
                idempotency_key=f"leaderboard {request}",
                priority=PriorityClass.OPPORTUNISTIC,
                command=WORKER,
                retries=_RETRIES,
                labels={
                    "course": board.course,
                    "assignment": board.assignment,
                    "leaderboard": "yes",
                },
            ),
            context.clock(),
        )
        context.notifier.notify()

    def _add(
        self,
        board: Leaderboard,
        queued: RequestRecord,
        waiting: Sequence[LeaderboardEntry],
        new: Sequence[LeaderboardEntry],
    ) -> None:
        """Add submissions to the order of a queued request."""
        self._put_order(board, self._terms(board), queued.id, waiting)
        record = self._record(queued.id)
        # If it has started meanwhile, it may have read the order before.
        if record is not None and record.state is State.QUEUED:
            self._store.change_waiting([replace(each, request=queued.id) for each in new])

    def _put_order(
        self,
        board: Leaderboard,
        terms: _Terms,
        request: str,
        batch: Sequence[LeaderboardEntry],
    ) -> None:
        # One that has failed may cost its whole time limit, so that it must not delay others.
        batch = sorted(batch, key=has_failed)
        order = LeaderboardOrderOut(
            course=board.course,
            assignment=board.assignment,
            image=terms.image,
            files=[ref_out(file) for file in board.files.files],
            metric=board.metric,
            public_percent=board.public_percent,
            seed=int(board.seed[:12], 16),
            seconds=terms.sandbox_seconds,
            entries=[
                WeightsRefOut(entry=e.id, sha256=e.sha256, size=e.size, alone=has_failed(e))
                for e in batch
            ],
        )
        self.access.context.files.put_input(request, order.model_dump_json().encode())

    def _terms(self, board: Leaderboard, count: int = 1) -> _Terms:
        """What a request for so many submissions would have. Raises CarrelError."""
        access, course = self.access, board.course
        assignment = access.store.assignment(course, board.assignment)
        seconds = request_seconds(assignment.seconds, count)
        seconds = int(min(seconds, access.max_seconds(course)))
        admit(access.context.store, group=course, devices=assignment.devices, seconds=seconds)
        return _Terms(
            owner=access.request_owner(course, board.by),
            devices=assignment.devices,
            seconds=seconds,
            sandbox_seconds=assignment.seconds,
            image=access.image_of(access.store.course(course)),
        )

    # -- verdicts -------------------------------------------------------------------------

    def _settled(self, entries: Sequence[LeaderboardEntry]) -> list[LeaderboardEntry]:
        """The submissions whose request has ended, as they go on."""
        results: dict[str, Evaluated | None] = {}
        settled = []
        for each in entries:
            if each.request not in results:
                results[each.request] = self._evaluated(each.request)
            result = results[each.request]
            if result is not None:
                settled.append(after_evaluation(each, result))
        return settled

    def _evaluated(self, request: str) -> Evaluated | None:
        """What a request has evaluated; None while it has not ended, or does not exist."""
        record = self._record(request)
        if record is None or record.state not in TERMINAL:
            return None
        again = record.state is not State.CANCELLED
        files = self.access.context.files
        if record.lease is None or not files.keeps(record.id):
            return Evaluated(again=again)
        scores: dict[str, EntryScoreOut] = {}
        for epoch in range(1, record.lease.epoch + 1):
            result = _result(files.attempt_folder(record.id, epoch))
            scores |= {each.entry: each for each in result.scores}
            again = again and not result.failure
        return Evaluated(scores=scores, again=again)

    def _record(self, request: str) -> RequestRecord | None:
        if request:
            with suppress(NotFound):
                return self.access.context.store.request(request)
        return None

    @property
    def _store(self) -> LeaderboardStore:
        return self.access.store.leaderboards


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """Who owns a request, and what it needs."""

    owner: str
    devices: int
    seconds: int
    sandbox_seconds: int
    image: str


def request_seconds(seconds: int, count: int) -> int:
    """Return the time limit of a request for so many submissions, each with this limit.

    Each submission may need a group of its own. Before, the time of groups of 32, 16, … may be
    over, and after each of them another sandbox is prepared. Each step has the time of one
    submission.
    """
    count = max(_FEWEST, count)
    halvings = ceil(log2(min(count, SCORED_AT_ONCE)))
    most = max(MOST_SECONDS, _START + 2 * seconds)
    return min(_START + seconds * (1 + count + 2 * halvings), most)


def _result(folder: Path) -> LeaderboardResultOut:
    """What an attempt has stored; nothing where it ended before."""
    try:
        return LeaderboardResultOut.model_validate_json((folder / LEADERBOARD_RESULT).read_bytes())
    except (OSError, ValidationError):
        return LeaderboardResultOut(scores=[])
