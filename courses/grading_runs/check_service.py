"""Run the visible tests on a student's work, on the pool and as grading runs them.

A check is not a submission. Its files and its result are stored with its request alone, and are
deleted after a day.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from ...hub.admission.policy import admit
from ...hub.admission.request_factory import grading_request, new_id
from ...hub.errors import Conflict
from ...hub.messages import requests as request_messages
from ...hub.messages import units
from ...hub.records.identity import Identity
from ...hub.records.requests import RequestFilter, RequestRecord
from ...hub.scheduling.model.snapshot import Kind, PriorityClass
from ...hub.scheduling.model.states import LIVE, TERMINAL, State
from ...hub.schemas.checks import RESULT, UNSEEN, CheckedCellOut, CheckOrderOut, CheckOut, ChecksOut
from ...hub.schemas.courses import ContentOut, SubmitIn
from ...hub.schemas.grading import VerdictIn
from ..files.transfer import bundle_of_body, content_out, contents_out
from ..model.interfaces import Blobs
from ..model.records import Assignment
from ..roster.access import CourseAccess, check_not_archived
from .service import order_of

CHECKER = ("python", "-P", "-m", "carrel.courses.grading_runs.check_worker")
"""As the grading worker: the service's own Python, without the working folder in its path."""
AT_ONCE = 2
"""Live checks that one student may have, in all courses together."""
LONGEST = 900
"""Seconds. Shorter than grading may take: a student waits for the result."""
KEPT_SECONDS = 86400.0
NOT_TESTS = frozenset({"needs a person", "no answer", UNSEEN})
_START = 120
_MARK = {"check": "yes"}
_ONE_BY_ONE = threading.Lock()


@dataclass(frozen=True, slots=True)
class CheckService:
    """Checks of one's own work before it is submitted."""

    access: CourseAccess
    blobs: Blobs

    def start(self, who: Identity, course: str, name: str, body: SubmitIn) -> CheckOut:
        """Run the visible tests on these files, or without files on the last submission.

        A live check of the same files is returned instead of a new one.

        Raises:
            NotFound: it is not released.
            InvalidInput, TooLarge: of the files, or there are none.
            Conflict: the user has as many live checks as allowed.
            OverMaximum: the pool or the course never has the devices or the time.
        """
        membership = self.access.membership(who, course)
        check_not_archived(membership.course)
        assignment = self.access.assignment(membership, name)
        bundle = bundle_of_body(body)
        files, sha256 = (
            (contents_out(bundle), bundle.sha256)
            if bundle
            else self._last_submission(who, assignment)
        )
        made = self.access.store.released_version(course, name)
        order = order_of(assignment, made, image=self.access.image_of(membership.course))
        limit = self.access.max_seconds(course)
        seconds = int(min(assignment.seconds + _START, LONGEST, limit))
        admit(
            self.access.context.store,
            group=course,
            devices=assignment.devices,
            seconds=seconds,
        )
        labels = _MARK | {"course": course, "assignment": name, "sha256": sha256}
        with _ONE_BY_ONE:
            live = self._checks_of(who, _MARK, live=True)
            same = next((each for each in live if each.labels == labels), None)
            record = same or self._queued(
                *(who, CheckOrderOut(order=order, person=who.name, files=files), live),
                labels=labels,
                seconds=seconds,
                expected=made.tried.seconds if made.tried else None,
            )
        return self._check_out(record)

    def recent(self, who: Identity, course: str, name: str) -> ChecksOut:
        """The user's own checks of the last day, newest first."""
        membership = self.access.membership(who, course)
        assignment = self.access.assignment(membership, name)
        labels = _MARK | {"course": course, "assignment": assignment.name}
        since = self.access.context.clock() - KEPT_SECONDS
        found = [each for each in self._checks_of(who, labels) if each.submitted_at > since]
        return ChecksOut(checks=[self._check_out(each) for each in found])

    # -- internal -------------------------------------------------------------------------

    def _queued(
        self,
        who: Identity,
        order: CheckOrderOut,
        live: Sequence[RequestRecord],
        *,
        labels: dict[str, str],
        seconds: int,
        expected: float | None,
    ) -> RequestRecord:
        if len(live) >= AT_ONCE:
            raise Conflict(
                f"{AT_ONCE} checks of yours are under way.",
                accepted=f"Wait for one, or stop it: carrel cancel {live[0].id}",
            )
        self._delete_old(who)
        context, request = self.access.context, new_id("g")
        stored = False
        try:
            context.files.put_input(request, order.model_dump_json().encode())
            record = context.store.submit(
                grading_request(
                    request_id=request,
                    owner=who.name,
                    group=order.order.course,
                    devices=order.order.devices,
                    seconds=seconds,
                    idempotency_key=f"check {request}",
                    priority=PriorityClass.INTERACTIVE,
                    command=CHECKER,
                    retries=1,
                    labels=labels,
                    expected=expected,
                ),
                context.clock(),
            )
            stored = True
        finally:
            if not stored:
                context.files.discard(request)
        context.notifier.notify()
        return record

    def _last_submission(
        self, who: Identity, assignment: Assignment
    ) -> tuple[list[ContentOut], str]:
        last = self.access.last_submission(who.name, assignment).files
        return [content_out(self.blobs, file) for file in last.files], last.sha256

    def _checks_of(
        self, who: Identity, labels: dict[str, str], *, live: bool = False
    ) -> list[RequestRecord]:
        """The user's checks with these labels, newest first."""
        which = RequestFilter(
            owner=who.name, kind=Kind.GRADING, labels=labels, states=LIVE if live else None
        )
        return list(self.access.context.store.requests(which))

    def _delete_old(self, who: Identity) -> None:
        before = self.access.context.clock() - KEPT_SECONDS
        for each in self._checks_of(who, _MARK):
            over = each.state in TERMINAL and each.submitted_at <= before
            if over and self.access.context.files.keeps(each.id):
                self.access.context.files.discard(each.id)

    def _check_out(self, record: RequestRecord) -> CheckOut:
        ended = record.state in TERMINAL
        result = self._result(record) if ended else None
        tests = [c for c in result.cells if c.word not in NOT_TESTS] if result else []
        passed = sum(cell.word == "passed" for cell in tests)
        if result is None:
            sentence = (
                _ending(record) if ended else f"{request_messages.state_meaning(record.state)}."
            )
        else:
            sentence = result.why_not or _summary(passed, len(tests))
        return CheckOut(
            request=record.id,
            course=record.labels["course"],
            assignment=record.labels["assignment"],
            state=str(record.state),
            ended=ended,
            asked_at=record.submitted_at,
            sha256=record.labels["sha256"],
            sentence=sentence[:1].upper() + sentence[1:],
            passed=None if result is None or result.why_not else passed == len(tests),
            cells=[
                CheckedCellOut(
                    notebook=cell.notebook, cell=cell.cell, word=cell.word, sentence=cell.sentence
                )
                for cell in (result.cells if result else [])
            ],
            notes=list(result.notes) if result else [],
        )

    def _result(self, record: RequestRecord) -> VerdictIn | None:
        """The result of an ended check; None where there is none, or it was deleted."""
        if record.lease is None or not self.access.context.files.keeps(record.id):
            return None
        folder = self.access.context.files.attempt_folder(record.id, record.lease.epoch)
        try:
            return VerdictIn.model_validate_json((folder / RESULT).read_bytes())
        except (OSError, ValidationError):
            return None


def _ending(record: RequestRecord) -> str:
    """Why a check has no result."""
    if record.state is State.TIMED_OUT:
        span = units.duration(record.seconds)
        return f"The check took longer than {span}, which is more than a check may."
    if record.state is State.CANCELLED:
        return "The check was stopped."
    why = record.cause.message if record.cause else "nothing came out of it"
    return f"The check did not come to its end: {why}"


def _summary(passed: int, tests: int) -> str:
    if not tests:
        return "There is no test here that you can see."
    which = f"{passed} of {units.count(tests, 'test')}"
    if passed == tests:
        which = "The one test" if tests == 1 else f"All {tests} tests"
    return f"{which} that you can see {'passes' if passed == 1 else 'pass'}."
