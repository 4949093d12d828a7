"""Check: the tests that students can see, run on the pool as grading runs them. Nothing counts.

What is checked lies with its request and nowhere else, and so does what came out, beside what the
attempt put out for others to see. After a day both are gone.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Sequence

from pydantic import ValidationError

from ...hub.admission.policy import ResourceRequest
from ...hub.admission.request_factory import new_id
from ...hub.errors import Conflict, InvalidInput
from ...hub.interfaces.backend import OWN_WORK
from ...hub.messages import requests as request_messages
from ...hub.messages import units
from ...hub.records.identity import Identity
from ...hub.records.requests import JobSpec, NewRequest, RequestFilter, RequestRecord
from ...hub.scheduling.model.snapshot import Kind, PriorityClass
from ...hub.scheduling.model.states import LIVE, TERMINAL, State
from ...hub.schemas.checks import RESULT, UNSEEN, CheckedCellOut, CheckOrderOut, CheckOut, ChecksOut
from ...hub.schemas.courses import ContentOut, SubmitIn
from ...hub.schemas.grading import VerdictIn
from ..files.bundle import FileBundle
from ..files.transfer import bundle_of_body, content_out
from ..model.records import Assignment
from ..roster.access import CourseAccess, check_open
from .service import order_of

CHECKER = ("python", "-P", "-m", "carrel.courses.grading_runs.check_worker")
"""As the grader: beside the service's own Python, without the working folder in its path."""
AT_ONCE = 2
"""Checks that one person may have under way, in all courses together."""
LONGEST = 900
"""Seconds: somebody sits in front of it. Grading may take longer."""
KEPT_SECONDS = 86400.0
NOT_TESTS = frozenset({"needs a person", "no answer", UNSEEN})
_START = 120
_MARK = {"check": "yes"}
_ONE_BY_ONE = threading.Lock()


class CheckService(CourseAccess):
    """The part of ``CourseDesk`` with which people try their work before they hand it in."""

    __slots__ = ()

    def check(self, who: Identity, course: str, name: str, body: SubmitIn) -> CheckOut:
        """Run the visible tests on these files, or without any on what was handed in last.

        The same files again, while they wait or run, are that check.

        Raises:
            NotFound: it is not released.
            InvalidInput, TooLarge: of the files, or there are none.
            Conflict: as many checks of one's own are under way as may be.
            OverMaximum: the pool or the course never has what it takes.
        """
        place = self.place(who, course)
        check_open(place.course)
        assignment = self.assignment(place, name)
        given = bundle_of_body(body)
        files, sha256 = _packed(given) if given else self._sent_last(who, assignment)
        made = self.store.hand_out(course, name)
        order = order_of(assignment, made, image=self.image_of(place.course))
        seconds = int(min(assignment.seconds + _START, LONGEST, self.longest(course)))
        self.commands.admission.admit(
            ResourceRequest(
                owner=who.name, group=course, devices=assignment.devices, seconds=seconds
            )
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

    def checks(self, who: Identity, course: str, name: str) -> ChecksOut:
        """One's own of the last day, the newest first."""
        place = self.place(who, course)
        assignment = self.assignment(place, name)
        labels = _MARK | {"course": course, "assignment": assignment.name}
        since = self.commands.clock() - KEPT_SECONDS
        found = [each for each in self._checks_of(who, labels) if each.submitted_at > since]
        return ChecksOut(checks=[self._check_out(each) for each in found])

    # -- asking ---------------------------------------------------------------------------

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
        self._forget_old(who)
        files, request = self.commands.files, new_id(OWN_WORK)
        stored = False
        try:
            files.put_input(request, order.model_dump_json().encode())
            record = self.commands.store.submit(
                NewRequest(
                    id=request,
                    kind=Kind.GRADING,
                    owner=who.name,
                    group=order.order.course,
                    devices=order.order.devices,
                    seconds=seconds,
                    idempotency_key=f"check {request}",
                    priority=PriorityClass.INTERACTIVE,
                    job=JobSpec(notebook_name="", command=CHECKER, retries=1),
                    labels=labels,
                    expected=expected or None,
                ),
                self.commands.clock(),
            )
            stored = True
        finally:
            if not stored:
                files.discard(request)
        self.commands.notifier.notify()
        return record

    def _sent_last(self, who: Identity, assignment: Assignment) -> tuple[list[ContentOut], str]:
        sent = self.store.submissions(assignment.course, assignment.name, who.name)
        if not sent:
            raise InvalidInput(
                "There is nothing to check: no files came, and you have handed in none.",
                accepted="Your notebook.",
                field="files",
            )
        last = max(sent, key=lambda each: each.number).files
        return [content_out(self.blobs, file) for file in last.files], last.sha256

    # -- looking --------------------------------------------------------------------------

    def _checks_of(
        self, who: Identity, labels: dict[str, str], *, live: bool = False
    ) -> list[RequestRecord]:
        """The newest one first."""
        which = RequestFilter(
            owner=who.name, kind=Kind.GRADING, labels=labels, states=LIVE if live else None
        )
        return list(self.commands.store.requests(which))

    def _forget_old(self, who: Identity) -> None:
        before = self.commands.clock() - KEPT_SECONDS
        for each in self._checks_of(who, _MARK):
            over = each.state in TERMINAL and each.submitted_at <= before
            if over and self.commands.files.keeps(each.id):
                self.commands.files.discard(each.id)

    def _check_out(self, record: RequestRecord) -> CheckOut:
        ended = record.state in TERMINAL
        result = self._came_out(record) if ended else None
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

    def _came_out(self, record: RequestRecord) -> VerdictIn | None:
        """What came out; None where nothing did, or it is gone."""
        if record.lease is None or not self.commands.files.keeps(record.id):
            return None
        folder = self.commands.files.attempt_folder(record.id, record.lease.epoch)
        try:
            return VerdictIn.model_validate_json((folder / RESULT).read_bytes())
        except (OSError, ValidationError):
            return None


def _packed(parcel: FileBundle) -> tuple[list[ContentOut], str]:
    files = [
        ContentOut(name=name, content=base64.b64encode(content).decode())
        for name, content in parcel.files.items()
    ]
    return files, parcel.sha256


def _ending(record: RequestRecord) -> str:
    """Of a check without a result."""
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
