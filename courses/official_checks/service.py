"""Let students run the hidden tests, and log each run with a receipt.

What a student could learn of the tests is bounded:

- The request belongs to the teacher who allowed the checks, or to another present teacher, so that
  its log, times and files are not visible to the student. The result has no sentence and no
  output of a test.
- A result is shown at a full minute after it was asked for: how long a test ran says little.
- Cells are named only where the teacher allows it; else there is one sum of points.

A row is stored before its request is queued. A check that failed for the system's fault, or whose
request was never queued, costs no run.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import ValidationError

from ...hub.admission.policy import admit
from ...hub.admission.request_factory import grading_request, new_id
from ...hub.attempts.notebook_format import read_notebook
from ...hub.errors import Conflict, Forbidden, InvalidInput, NotFound
from ...hub.messages import units
from ...hub.messages.wait_reasons import progress_sentence
from ...hub.provenance.official_check import OfficiallyCheckedOut, signed_check
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity
from ...hub.records.json_value import Json
from ...hub.records.requests import RequestRecord
from ...hub.scheduling.model.snapshot import PriorityClass
from ...hub.scheduling.model.states import TERMINAL, State
from ...hub.schemas.courses import SubmitIn
from ...hub.schemas.coursework.official_checks import (
    OFFICIAL_RESULT,
    OfficialCellOut,
    OfficialCheckLogOut,
    OfficialCheckOut,
    OfficialCheckRuleIn,
    OfficialCheckRuleOut,
    OfficialChecksOut,
    OfficialOrderOut,
    OfficialVerdictOut,
)
from ..deadlines.days import day_of, next_day_sentence
from ..deadlines.shifts import DeadlineShifts
from ..files.bundle import FileBundle
from ..files.transfer import bundle_of_body, contents, contents_out
from ..grading_runs.service import order_of
from ..model.interfaces import Blobs
from ..model.official_checks import CheckOutcome, OfficialCheck, OfficialCheckRule
from ..model.records import Assignment, ReleasedVersion
from ..releases.graded_cells import graded_cells
from ..roster.access import (
    GRADERS,
    TEACHERS,
    CourseAccess,
    CourseMembership,
    check_not_archived,
)

WORKER: Final = ("python", "-P", "-m", "carrel.courses.official_checks.worker")
LONGEST: Final = 900
"""Seconds of one check."""
SHOWN_EVERY: Final = 60
"""Seconds after the request, and multiples of it, at which a result is shown."""
_START, _RETRIES = 120, 3
_ONE_BY_ONE = threading.Lock()


@dataclass(frozen=True, slots=True)
class OfficialCheckService:
    """Official checks: rules of teachers, and checks of students."""

    access: CourseAccess
    blobs: Blobs

    # -- for teachers ---------------------------------------------------------------------

    def allow(
        self, who: Identity, course: str, name: str, body: OfficialCheckRuleIn
    ) -> OfficialCheckRuleOut:
        """Allow official checks of an assignment, or change the rule. For teachers.

        Raises:
            Conflict: the course is archived.
            NotFound: the assignment was never released.
            InvalidInput: it has no tests.
        """
        self._changed_assignment(who, course, name)
        self.access.check_unchanged(who, AuditAction.OFFICIAL_CHECKS_SET, f"{course}/{name}")
        made = self.access.store.released_version(course, name)
        if not any(cell.test for cell in graded_cells(self.blobs, made)):
            raise InvalidInput(
                f"{name} has no tests to run.", accepted="An assignment with graded test cells."
            )
        rule = OfficialCheckRule(
            course=course,
            assignment=name,
            per_day=body.per_day,
            names_cells=body.names_cells,
            by=who.name,
            at=self.access.context.clock(),
        )
        after: dict[str, Json] = {"per_day": body.per_day, "names_cells": body.names_cells}
        target = f"{course}/{name}"
        change = self.access.audit_entry(who, AuditAction.OFFICIAL_CHECKS_SET, target, after=after)
        self.access.store.official_checks.put_rule(rule, change=change)
        return _rule_out(name, rule)

    def forbid(self, who: Identity, course: str, name: str) -> OfficialCheckRuleOut:
        """Allow no further official checks; safe to repeat. For teachers."""
        self._changed_assignment(who, course, name)
        self.access.check_unchanged(who, AuditAction.OFFICIAL_CHECKS_SET, f"{course}/{name}")
        rule = self.access.store.official_checks.rule(course, name)
        if rule is not None:
            change = self.access.audit_entry(
                *(who, AuditAction.OFFICIAL_CHECKS_SET, f"{course}/{name}"),
                before={"per_day": rule.per_day},
            )
            self.access.store.official_checks.remove_rule(course, name, change=change)
        return _rule_out(name, None)

    def log(self, who: Identity, course: str, name: str) -> OfficialCheckLogOut:
        """All checks of an assignment with their receipts. For teachers and graders."""
        self.access.assignment(self.access.membership(who, course, GRADERS), name)
        found = self.access.store.official_checks.checks(course, name)
        ended = [self._ended(each) for each in found]
        now = math.inf  # teachers need not wait for the full minute
        return OfficialCheckLogOut(
            rule=_rule_out(name, self.access.store.official_checks.rule(course, name)),
            checks=[self._out(each, now=now) for each in ended],
        )

    def _changed_assignment(self, who: Identity, course: str, name: str) -> None:
        membership = self.access.membership(who, course, TEACHERS)
        check_not_archived(membership.course)
        self.access.assignment(membership, name)

    # -- for students ---------------------------------------------------------------------

    def mine(self, who: Identity, course: str, name: str) -> OfficialChecksOut:
        """The caller's own checks, and how many are left today."""
        assignment = self.access.assignment(self.access.membership(who, course), name)
        rule = self.access.store.official_checks.rule(course, name)
        found = self._own(who, assignment)
        _, next_at = day_of(assignment, self.access.context.clock())
        return OfficialChecksOut(
            per_day=rule.per_day if rule else 0,
            names_cells=rule.names_cells if rule else False,
            left=max(0, rule.per_day - self._used(assignment, found)) if rule else 0,
            next_at=next_at,
            zone=assignment.zone,
            checks=[self._out(each, now=self.access.context.clock()) for each in found],
        )

    def start(self, who: Identity, course: str, name: str, body: SubmitIn) -> OfficialCheckOut:
        """Run the hidden tests on these files, or without files on the last submission.

        The live check of the same files is returned instead of a new one.

        Raises:
            NotFound: it is not released.
            Forbidden: the teacher does not allow official checks.
            Conflict: the course is archived, no check is left today, another one is live, or
                what is submitted now would not count any more; or the course has no teacher.
            InvalidInput, TooLarge: of the files; one that cannot be graded costs no run.
            OverMaximum: the pool or the course never has the devices or the time.
        """
        membership = self.access.membership(who, course)
        check_not_archived(membership.course)
        assignment = self.access.assignment(membership, name)
        rule = self.access.store.official_checks.rule(course, name)
        if rule is None:
            raise Forbidden(
                f"Official checks of {name} are not allowed.",
                accepted=f"The visible tests: carrel course check {name}",
            )
        made = self.access.store.released_version(course, name)
        self._check_due(membership, assignment)
        bundle = bundle_of_body(body) or self._last_submission(who, assignment)
        _check_notebooks(made, bundle)
        with _ONE_BY_ONE:
            check = self._live_or_new(who, membership, rule, made, bundle)
        return self._out(check, now=self.access.context.clock())

    def _live_or_new(
        self,
        who: Identity,
        membership: CourseMembership,
        rule: OfficialCheckRule,
        made: ReleasedVersion,
        bundle: FileBundle,
    ) -> OfficialCheck:
        assignment = self.access.store.assignment(made.course, made.assignment)
        found, now = self._own(who, assignment), self.access.context.clock()
        live = next((each for each in found if not _is_shown(each, now)), None)
        if live is not None:
            if (live.sha256, live.version) == (bundle.sha256, made.version):
                return live
            raise Conflict(
                "An official check of yours is under way.", accepted="Wait for its result."
            )
        if self._used(assignment, found) >= rule.per_day:
            raise Conflict(
                f"You have used your {units.count(rule.per_day, 'official check')} of today.",
                accepted=next_day_sentence(assignment, now),
            )
        check = OfficialCheck(
            request=new_id("g"),
            course=made.course,
            assignment=made.assignment,
            person=who.name,
            version=made.version,
            sha256=bundle.sha256,
            tests_sha256=made.source.sha256,
            image=self.access.image_of(membership.course),
            asked_at=now,
            names_cells=rule.names_cells,
        )
        self._queue(check, rule, assignment, made, bundle)
        return check

    def _queue(
        self,
        check: OfficialCheck,
        rule: OfficialCheckRule,
        assignment: Assignment,
        made: ReleasedVersion,
        bundle: FileBundle,
    ) -> None:
        context, course = self.access.context, check.course
        owner = self.access.request_owner(course, rule.by)
        seconds = int(min(assignment.seconds + _START, LONGEST, self.access.max_seconds(course)))
        admit(context.store, group=course, devices=assignment.devices, seconds=seconds)
        order = OfficialOrderOut(
            order=order_of(assignment, made, image=check.image), files=contents_out(bundle)
        )
        self.access.store.official_checks.add(check)
        context.files.put_input(check.request, order.model_dump_json().encode())
        context.store.submit(
            grading_request(
                request_id=check.request,
                owner=owner,
                group=course,
                devices=assignment.devices,
                seconds=seconds,
                idempotency_key=f"official check {check.request}",
                priority=PriorityClass.OPPORTUNISTIC,
                command=WORKER,
                retries=_RETRIES,
                labels={"course": course, "assignment": check.assignment, "official": "yes"},
                expected=made.tried.seconds if made.tried else None,
            ),
            context.clock(),
        )
        context.notifier.notify()

    def _check_due(self, membership: CourseMembership, assignment: Assignment) -> None:
        shifts = DeadlineShifts.read(self.access.store, assignment.course)
        if not shifts.counts(assignment, membership.member, self.access.context.clock()):
            raise Conflict(
                f"{assignment.name} was due: what you submit now does not count any more.",
                accepted="Official checks end with the last moment at which a submission counts.",
            )

    def _last_submission(self, who: Identity, assignment: Assignment) -> FileBundle:
        last = self.access.last_submission(who.name, assignment)
        return FileBundle.of(contents(self.blobs, last.files.files).items())

    def _used(self, assignment: Assignment, own: Sequence[OfficialCheck]) -> int:
        begin, _ = day_of(assignment, self.access.context.clock())
        return sum(
            each.asked_at >= begin and each.outcome is not CheckOutcome.FAULT for each in own
        )

    # -- results --------------------------------------------------------------------------

    def _own(self, who: Identity, assignment: Assignment) -> list[OfficialCheck]:
        found = self.access.store.official_checks.checks(
            assignment.course, assignment.name, who.name
        )
        return [self._ended(each) for each in found]

    def _ended(self, check: OfficialCheck) -> OfficialCheck:
        """The check with its end, which is stored when it is first read."""
        if check.outcome is not CheckOutcome.LIVE:
            return check
        context = self.access.context
        try:
            record = context.store.request(check.request)
        except NotFound:  # the service stopped before it was queued
            return replace(check, outcome=CheckOutcome.FAULT, ended_at=check.asked_at)
        if record.state not in TERMINAL:
            return check
        verdict = self._verdict(record)
        ended = replace(check, ended_at=record.ended_at or context.clock())
        if verdict is not None:
            ended = replace(
                ended,
                outcome=CheckOutcome.PASSED if verdict.passed else CheckOutcome.NOT_PASSED,
                points=verdict.points,
                max_points=verdict.max_points,
                cells=tuple(
                    (each.notebook, each.cell, "passed" if each.passed else "not passed")
                    for each in verdict.cells
                ),
            )
        else:
            timed_out = record.state is State.TIMED_OUT
            outcome = CheckOutcome.TIMED_OUT if timed_out else CheckOutcome.FAULT
            ended = replace(ended, outcome=outcome)
        ended = replace(ended, receipt=self._receipt(ended))
        self.access.store.official_checks.end(ended)
        return ended

    def _verdict(self, record: RequestRecord) -> OfficialVerdictOut | None:
        files = self.access.context.files
        if record.lease is None or not files.keeps(record.id):
            return None
        folder = files.attempt_folder(record.id, record.lease.epoch)
        try:
            return OfficialVerdictOut.model_validate_json((folder / OFFICIAL_RESULT).read_bytes())
        except (OSError, ValidationError):
            return None

    def _receipt(self, check: OfficialCheck) -> str:
        checked = OfficiallyCheckedOut(
            id=check.request,
            course=check.course,
            assignment=check.assignment,
            version=check.version,
            person=check.person,
            files_sha256=check.sha256,
            tests_sha256=check.tests_sha256,
            image=check.image,
            asked_at=check.asked_at,
            outcome=str(check.outcome),
            points=check.points,
            max_points=check.max_points,
        )
        return signed_check(checked, self.access.context.signing_key)

    def _out(self, check: OfficialCheck, *, now: float) -> OfficialCheckOut:
        shown = _is_shown(check, now)
        verdict = check.outcome in {CheckOutcome.PASSED, CheckOutcome.NOT_PASSED}
        cells = check.cells if shown and (check.names_cells or now == math.inf) else ()
        return OfficialCheckOut(
            id=check.request,
            course=check.course,
            assignment=check.assignment,
            version=check.version,
            person=check.person,
            sha256=check.sha256,
            asked_at=check.asked_at,
            shown_at=_shown_at(check) if shown else None,
            outcome=str(check.outcome) if shown else "",
            ended=shown,
            sentence=_sentence(check) if shown else self._wait(check),
            points=check.points if shown and verdict else None,
            max_points=check.max_points if shown and verdict else None,
            cells=[
                OfficialCellOut(notebook=notebook, cell=cell, passed=word == "passed")
                for notebook, cell, word in cells
            ],
            receipt=check.receipt if shown else "",
        )

    def _wait(self, check: OfficialCheck) -> str:
        try:
            state = self.access.context.store.request(check.request).state
        except NotFound:
            return progress_sentence(State.RUNNING)
        if state is State.QUEUED:
            return progress_sentence(state, self.access.context.plan_cache.wait_of(check.request))
        running = progress_sentence(State.RUNNING)
        return f"{running} The result is shown at a full minute after you asked for it."


def _shown_at(check: OfficialCheck) -> float | None:
    """The first multiple of ``SHOWN_EVERY`` after the request at which it has ended."""
    if check.ended_at is None:
        return None
    steps = math.ceil(max(1.0, check.ended_at - check.asked_at) / SHOWN_EVERY)
    return check.asked_at + steps * SHOWN_EVERY


def _is_shown(check: OfficialCheck, now: float) -> bool:
    shown_at = _shown_at(check)
    return shown_at is not None and (shown_at <= now or check.outcome is CheckOutcome.FAULT)


def _sentence(check: OfficialCheck) -> str:
    match check.outcome:
        case CheckOutcome.PASSED:
            points = f"{check.points:g} of {check.max_points:g} points"
            return f"All tests pass, hidden ones included: {points}."
        case CheckOutcome.NOT_PASSED:
            points = f"{check.points:g} of {check.max_points:g} points"
            return f"Not all tests pass: {points}."
        case CheckOutcome.TIMED_OUT:
            return "The check took longer than it may. It counts as a run."
        case _:
            return "The check did not come to its end, by a fault of the system. It costs no run."


def _rule_out(assignment: str, rule: OfficialCheckRule | None) -> OfficialCheckRuleOut:
    return OfficialCheckRuleOut(
        assignment=assignment,
        per_day=rule.per_day if rule else 0,
        names_cells=rule.names_cells if rule else False,
    )


def _check_notebooks(made: ReleasedVersion, bundle: FileBundle) -> None:
    """Raise InvalidInput for a notebook that is missing or cannot be read."""
    for file in made.files.files:
        if "/" in file.name or not file.name.endswith(".ipynb"):
            continue
        if file.name not in bundle.files:
            raise InvalidInput(
                f"{file.name} is missing. This has cost no run.",
                accepted="All notebooks of the assignment.",
                field="files",
            )
        read_notebook(file.name, bundle.files[file.name])
