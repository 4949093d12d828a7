"""Rehearse a course: run every solution and hand-out on a candidate image, before term.

Each assignment is one opportunistic request for each image: the candidate, and the present image
of the course where that is another one, to tell what was already broken. A rehearsal and the ids of
its requests are stored before the first request is queued; the same call again queues what a crash
has left out. Gradebook and points of students are never touched.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from pydantic import ValidationError

from ...hub.admission.policy import admit
from ...hub.admission.request_factory import grading_request, new_id
from ...hub.errors import Conflict, Forbidden, InvalidInput, NotFound
from ...hub.inventory.images import ImageCatalogue
from ...hub.messages import units
from ...hub.messages.wait_reasons import progress_sentence
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity
from ...hub.records.images import Image, Reference
from ...hub.records.json_value import Json
from ...hub.records.requests import RequestRecord
from ...hub.scheduling.model.snapshot import PriorityClass
from ...hub.scheduling.model.states import TERMINAL, State
from ...hub.schemas.coursework.rehearsals import (
    REHEARSAL_RESULT,
    RehearsalFindingOut,
    RehearsalIn,
    RehearsalOut,
    RehearsalResultOut,
    RehearsalsOut,
    RehearsedAssignmentOut,
    RehearsedFindingOut,
)
from ..grading_runs.service import order_of
from ..model.records import Assignment, Course
from ..model.rehearsals import Rehearsal, RehearsalJob
from ..roster.access import GRADERS, TEACHERS, CourseAccess, check_not_archived

WORKER = ("python", "-P", "-m", "carrel.courses.rehearsals.worker")
"""As the grading worker: the service's own Python, without the working folder in its path."""
MOST_SHOWN = 10
WAITING, WORKS, BREAKS, NOT_TESTED = "waiting", "works", "breaks", "not tested"
_START, _RUNS = 120, 3
"""Seconds for the start, and gradings in one job: solution, hand-out, and a release check."""
_RETRIES = 3
_ONE_BY_ONE = threading.Lock()


@dataclass(frozen=True, slots=True)
class RehearsalService:
    """Rehearsals of a course. Teachers start them; graders may read them."""

    access: CourseAccess

    def start(
        self, who: Identity, course: str, body: RehearsalIn, *, key: str = ""
    ) -> RehearsalOut:
        """Queue a rehearsal, or return the live one of the same images and versions.

        Args:
            key: of a schedule and its time; the same key returns the first rehearsal.

        Raises:
            Forbidden: the user is not a teacher of the course.
            Conflict: the course is archived, or nothing of it is released.
            NotFound: there is no such assignment, or it was never released.
            InvalidInput: no engine has the candidate image.
            OverMaximum: the pool or the course never has the devices or the time.
        """
        with _ONE_BY_ONE:
            new = self._new(who, course, body, _id_of(key) if key else new_id("h"))
            rehearsal = self._known(new)
            if rehearsal is None:
                self._check_admitted(new)
                after: dict[str, Json] = {"image": new.image, "assignment": new.assignment}
                change = self.access.audit_entry(who, AuditAction.REHEARSE, course, after=after)
                self.access.store.rehearsals.add(new, change=change)
                rehearsal = new
            self._queue(rehearsal, who)
        return self._rehearsal_out(rehearsal)

    def check(self, who: Identity, course: str, body: RehearsalIn) -> None:
        """Raise what ``start`` would raise now."""
        self._check_admitted(self._new(who, course, body, new_id("h")))

    def may_start(self, who: Identity, course: str) -> bool:
        """Whether the user is a teacher of the course, which exists."""
        try:
            self.access.membership(who, course, TEACHERS)
        except (Forbidden, NotFound):
            return False
        return True

    def check_reader(self, who: Identity, course: str) -> None:
        """Raise NotFound or Forbidden unless the user is a teacher or grader of the course."""
        self.access.membership(who, course, GRADERS)

    def recent(self, who: Identity, course: str) -> RehearsalsOut:
        """The newest rehearsals of a course, newest first. For teachers and graders."""
        self.access.membership(who, course, GRADERS)
        found = self.access.store.rehearsals.newest(course, MOST_SHOWN)
        return RehearsalsOut(rehearsals=[self._rehearsal_out(each) for each in found])

    def one(self, who: Identity, course: str, rehearsal_id: str) -> RehearsalOut:
        """Raises NotFound where it is not among the newest of the course."""
        for found in self.recent(who, course).rehearsals:
            if found.id == rehearsal_id:
                return found
        raise NotFound(
            f"{course} has no rehearsal {rehearsal_id[:80]!r} among its newest {MOST_SHOWN}.",
            accepted=f"carrel course rehearse {course} --last",
        )

    # -- images ---------------------------------------------------------------------------

    def _candidate(self, course: Course, wanted: str) -> Image | None:
        """The build that next term would use, unless another one is named."""
        named = Reference.read(course.image)
        return ImageCatalogue.of(self.access.context).build(wanted or (named.name if named else ""))

    def _present(self, course: Course) -> str:
        """The reference of the course's present image; empty where no engine has it."""
        with suppress(InvalidInput):
            digest = self.access.image_of(course)
            named = Reference.read(course.image)
            if digest:
                return f"{named.name if named else ''}@{digest}"
        return ""

    # -- queue ----------------------------------------------------------------------------

    def _new(self, who: Identity, course: str, body: RehearsalIn, rehearsal_id: str) -> Rehearsal:
        membership = self.access.membership(who, course, TEACHERS)
        check_not_archived(membership.course)
        candidate = self._candidate(membership.course, body.image)
        image = candidate.reference if candidate else ""
        present = self._present(membership.course)
        assignments = self._released(course, body.assignment)
        images = dict.fromkeys(map(_digest, [image, present] if present else [image]))
        jobs = [
            RehearsalJob(
                request=new_id("g"), assignment=each.name, version=each.version, image=digest
            )
            for each in assignments
            for digest in images
        ]
        return Rehearsal(
            id=rehearsal_id,
            course=course,
            image=image,
            present_image=present,
            assignment=body.assignment,
            asked_at=self.access.context.clock(),
            asked_by=who.name,
            jobs=tuple(jobs),
        )

    def _released(self, course: str, name: str) -> list[Assignment]:
        """What has a released version; hidden ones too, such as those of a cloned course."""
        if name:
            self.access.store.released_version(course, name)
            return [self.access.store.assignment(course, name)]
        found = [each for each in self.access.store.assignments(course) if each.version]
        if not found:
            raise Conflict(
                f"{course} has no released assignment to rehearse.",
                accepted="Release one: carrel course release ASSIGNMENT",
            )
        return found

    def _known(self, new: Rehearsal) -> Rehearsal | None:
        """The rehearsal with this id, or the newest one, if it is the same and has not ended."""
        newest = self.access.store.rehearsals.newest(new.course, MOST_SHOWN)
        for known in newest:
            if known.id == new.id:
                return known
        for known in newest[:1]:
            if _scope(known) == _scope(new) and not all(map(self._is_over, known.jobs)):
                return known
        return None

    def _is_over(self, job: RehearsalJob) -> bool:
        if job.result or job.why_not:
            return True
        record = self._record(job)
        return record is not None and record.state in TERMINAL

    def _check_admitted(self, new: Rehearsal) -> None:
        for name in dict.fromkeys(job.assignment for job in new.jobs):
            assignment = self.access.store.assignment(new.course, name)
            admit(
                self.access.context.store,
                group=new.course,
                devices=assignment.devices,
                seconds=self._seconds(assignment),
            )

    def _queue(self, rehearsal: Rehearsal, who: Identity) -> None:
        """Queue the requests that are not queued yet, in the name of a present teacher."""
        for job in rehearsal.jobs:
            if self._record(job) is None:
                self._submit(rehearsal, job, owner=who.name)
        self.access.context.notifier.notify()

    def _submit(self, rehearsal: Rehearsal, job: RehearsalJob, *, owner: str) -> None:
        context, course = self.access.context, rehearsal.course
        assignment = self.access.store.assignment(course, job.assignment)
        made = self.access.store.released_version(course, job.assignment, job.version)
        order = order_of(assignment, made, image=job.image)
        context.files.put_input(job.request, order.model_dump_json().encode())
        context.store.submit(
            grading_request(
                request_id=job.request,
                owner=owner,
                group=course,
                devices=assignment.devices,
                seconds=self._seconds(assignment),
                idempotency_key=f"rehearsal {job.request}",
                priority=PriorityClass.OPPORTUNISTIC,
                command=WORKER,
                retries=_RETRIES,
                labels={"course": course, "assignment": job.assignment, "rehearsal": rehearsal.id},
                expected=_RUNS * made.tried.seconds if made.tried else None,
            ),
            context.clock(),
        )

    def _seconds(self, assignment: Assignment) -> int:
        wanted = _START + _RUNS * assignment.seconds
        return int(min(wanted, self.access.max_seconds(assignment.course)))

    def _record(self, job: RehearsalJob) -> RequestRecord | None:
        with suppress(NotFound):
            return self.access.context.store.request(job.request)
        return None

    # -- results --------------------------------------------------------------------------

    def _rehearsal_out(self, rehearsal: Rehearsal) -> RehearsalOut:
        jobs = {job: self._ended_job(job) for job in rehearsal.jobs}
        names = dict.fromkeys(job.assignment for job in rehearsal.jobs)
        shown = [self._assignment_out(rehearsal, jobs.values(), name) for name in names]
        done = sum(each.state != WAITING for each in shown)
        ended = done == len(shown)
        works = all(each.state == WORKS for each in shown) if ended else None
        return RehearsalOut(
            id=rehearsal.id,
            course=rehearsal.course,
            image=rehearsal.image,
            present_image=rehearsal.present_image,
            assignment=rehearsal.assignment,
            asked_at=rehearsal.asked_at,
            asked_by=rehearsal.asked_by,
            ended=ended,
            works=works,
            done=done,
            total=len(shown),
            sentence=_summary(shown, done),
            assignments=shown,
        )

    def _ended_job(self, job: RehearsalJob) -> RehearsalJob:
        """The job with its result, which is stored when it is first read."""
        if job.result or job.why_not:
            return job
        record = self._record(job)
        if record is None or record.state not in TERMINAL:
            return job
        result, why_not = self._result_text(record), ""
        if not result:
            why_not = _why_not(record)
        self.access.store.rehearsals.put_result(job.request, result=result, why_not=why_not)
        return RehearsalJob(
            request=job.request,
            assignment=job.assignment,
            version=job.version,
            image=job.image,
            result=result,
            why_not=why_not,
        )

    def _result_text(self, record: RequestRecord) -> str:
        files = self.access.context.files
        if record.lease is None or not files.keeps(record.id):
            return ""
        try:
            folder = files.attempt_folder(record.id, record.lease.epoch)
            text = (folder / REHEARSAL_RESULT).read_text("utf-8")
            RehearsalResultOut.model_validate_json(text)
        except (OSError, ValidationError, UnicodeDecodeError):
            return ""
        return text

    def _assignment_out(
        self, rehearsal: Rehearsal, jobs: Iterable[RehearsalJob], name: str
    ) -> RehearsedAssignmentOut:
        mine = [job for job in jobs if job.assignment == name]
        by_image = {job.image: job for job in mine}
        here = by_image[_digest(rehearsal.image)]
        other = by_image.get(_digest(rehearsal.present_image)) if len(mine) > 1 else None
        result, before = _read(here), _read(other) if other else None
        state, why = self._state(here, other, result)
        return RehearsedAssignmentOut(
            assignment=name,
            version=here.version,
            state=state,
            why=why,
            findings=list(_compared(result, before)) if state != WAITING and result else [],
            solution_points=result.solution_points if result else None,
            max_points=result.max_points if result else None,
            requests=[job.request for job in mine],
        )

    def _state(
        self, here: RehearsalJob, other: RehearsalJob | None, result: RehearsalResultOut | None
    ) -> tuple[str, str]:
        """The state of an assignment, and why it is not tested or what it waits for."""
        if here.why_not:
            return NOT_TESTED, here.why_not
        if result is None:
            return WAITING, self._wait(here)
        if not result.findings:
            return WORKS, ""
        if other is not None and not (other.result or other.why_not):
            return WAITING, "It breaks; the same is now run on the present image."
        return BREAKS, ""

    def _wait(self, job: RehearsalJob) -> str:
        record = self._record(job)
        if record is None:
            return "It is not queued: start the rehearsal again, which continues this one."
        return progress_sentence(record.state, self.access.context.plan_cache.wait_of(record.id))


def _id_of(key: str) -> str:
    return f"h-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def _digest(reference: str) -> str:
    return reference.partition("@")[2]


def _scope(rehearsal: Rehearsal) -> tuple[object, ...]:
    jobs = {(job.assignment, job.version, job.image) for job in rehearsal.jobs}
    return rehearsal.image, rehearsal.present_image, rehearsal.assignment, frozenset(jobs)


def _read(job: RehearsalJob) -> RehearsalResultOut | None:
    return RehearsalResultOut.model_validate_json(job.result) if job.result else None


def _compared(
    result: RehearsalResultOut, before: RehearsalResultOut | None
) -> Iterator[RehearsedFindingOut]:
    known = {_cell(each) for each in before.findings} if before else None
    for each in result.findings:
        already = None if known is None else _cell(each) in known
        yield RehearsedFindingOut(**each.model_dump(), already=already)


def _cell(finding: RehearsalFindingOut) -> tuple[str, str, str]:
    return finding.part, finding.notebook, finding.cell


def _why_not(record: RequestRecord) -> str:
    if record.state is State.TIMED_OUT:
        return f"It took longer than {units.duration(record.seconds)}."
    if record.state is State.CANCELLED:
        return "It was stopped."
    why = record.cause.message if record.cause else "nothing came out of it"
    return f"It did not come to its end: {why}"


def _summary(shown: list[RehearsedAssignmentOut], done: int) -> str:
    count = units.count(len(shown), "assignment")
    if done < len(shown):
        return f"{done} of {count} done."
    states: Mapping[str, list[str]] = {
        state: [each.assignment for each in shown if each.state == state]
        for state in (BREAKS, NOT_TESTED)
    }
    parts = [
        f"{len(names)} of {count} {verb}: {', '.join(names)}."
        for names, verb in (
            (states[BREAKS], "broken"),
            (states[NOT_TESTED], "not tested"),
        )
        if names
    ]
    if parts:
        return " ".join(parts)
    return "The one assignment works." if len(shown) == 1 else f"All {count} work."
