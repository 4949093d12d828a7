"""Queue grading runs on the pool, give their workers orders, and show verdicts and grades.

A run fixes at its start which submissions it grades. Its worker asks for those without a verdict,
so that an interrupted run continues; each verdict is stored once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...hub.admission.policy import admit
from ...hub.admission.request_factory import grading_request, new_id
from ...hub.errors import InvalidInput, NotFound, StaleEpoch
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity
from ...hub.records.json_value import Json
from ...hub.records.leases import LeaseState
from ...hub.records.requests import RequestRecord
from ...hub.runtime.context import Context
from ...hub.scheduling.model.states import TERMINAL, State
from ...hub.schemas.grading import (
    GradeIn,
    GradeOut,
    GradesOut,
    GradingOrderOut,
    GradingOut,
    VerdictIn,
    WorkOut,
)
from ..deadlines.shifts import DeadlineShifts, late_penalty
from ..files.transfer import ref_out
from ..gradebook.grades import grades
from ..gradebook.reader import GradebookPage, all_pages_of, pages_of
from ..grading import duration
from ..model.interfaces import Blobs, CourseStore
from ..model.records import (
    NOT_KNOWN,
    Assignment,
    CellScore,
    GradingRun,
    Member,
    ReleasedVersion,
    Submission,
    SubmissionVerdict,
)
from ..releases.graded_cells import graded_cells
from ..roster.access import GRADERS, CourseAccess, check_not_archived
from ..roster.class_list import ClassList, member_out
from ..submissions.receipts import SubmissionReceipts

GRADER = ("python", "-P", "-m", "carrel.courses.grading_runs.worker")
"""``python`` is the one beside the service's own; -P keeps the working folder out of its path."""
_SHORTEST, _MARGIN, _START = 600, 3.0, 60.0
_RETRIES = 3


@dataclass(frozen=True, slots=True)
class GradingService:
    """Attributes:
    root: the folder of all courses, with their gradebooks; None where nothing is graded.
    """

    access: CourseAccess
    class_list: ClassList
    blobs: Blobs
    root: Path | None = None

    @property
    def context(self) -> Context:
        return self.access.context

    @property
    def store(self) -> CourseStore:
        return self.access.store

    # -- runs -----------------------------------------------------------------------------

    def start(self, who: Identity, course: str, name: str, body: GradeIn) -> GradingOut:
        """Queue a grading run of the submissions that count, or return the one that is live.

        It continues an interrupted run of the same scope and version.

        Raises:
            Forbidden: the user is a student.
            InvalidInput: no submission counts, there is no such cell, or the image of the course
                is gone.
            OverMaximum: the pool or the course never has the devices or the time.
        """
        membership = self.access.membership(who, course, GRADERS)
        check_not_archived(membership.course)
        assignment = self.access.assignment(membership, name)
        self.access.image_of(membership.course)  # refuses a missing image before it is queued
        made = self.store.released_version(course, name)
        if body.question:
            self._check_question(made, body.question)
        same = self._runs_of(made, body)
        newest, verdicts = self._newest(same), self.store.verdicts(course, name)
        if newest is not None and newest[1].state not in TERMINAL:
            return self._progress(*newest, verdicts)
        submissions = self._submissions(assignment, body.person)
        if newest is not None and newest[0].version == made.version:
            submissions = _without_verdict(newest[0], submissions, verdicts)
        expected = self._expected(made, verdicts, len(submissions))
        run = self._run(who, made, body, submissions, expected=expected)
        seconds = self._seconds(assignment, run)
        admit(
            self.context.store,
            group=course,
            devices=assignment.devices,
            seconds=seconds,
        )
        target = f"{course}/{name}"
        after: dict[str, Json] = {
            "person": body.person,
            "question": body.question,
            "submissions": len(submissions),
        }
        change = self.access.audit_entry(who, AuditAction.GRADE, target, after=after)
        self.store.add_run(run, change=change)
        record = self.context.store.submit(
            grading_request(
                request_id=run.request,
                owner=who.name,
                group=course,
                devices=assignment.devices,
                seconds=seconds,
                # Of two callers at the same time the second one gets the run of the first.
                idempotency_key=f"grade {target} {body.person} {body.question} {len(same)}",
                command=GRADER,
                retries=_RETRIES,
                labels={"course": course, "assignment": name},
                deadline=body.deadline,
                expected=run.expected,
            ),
            self.context.clock(),
        )
        self.context.notifier.notify()
        return self._progress(self.store.run(record.id), record, verdicts)

    def _check_question(self, made: ReleasedVersion, question: str) -> None:
        known = self._cells_of(made)
        if question not in known:
            raise InvalidInput(
                f"{made.assignment} has no graded cell {question[:80]!r}.",
                accepted=f"One of: {', '.join(known)}.",
                field="question",
            )

    def _cells_of(self, made: ReleasedVersion) -> list[str]:
        return list(dict.fromkeys(each.cell for each in graded_cells(self.blobs, made)))

    def _runs_of(self, made: ReleasedVersion, body: GradeIn) -> list[GradingRun]:
        found = self.store.runs(made.course, made.assignment)
        scope = body.person, body.question
        return [run for run in found if (run.person, run.question) == scope]

    def _newest(self, runs: Collection[GradingRun]) -> tuple[GradingRun, RequestRecord] | None:
        """The newest run that was queued: the service may have stopped before it queued one."""
        for run in sorted(runs, key=lambda each: each.asked_at, reverse=True):
            with suppress(NotFound):
                return run, self.context.store.request(run.request)
        return None

    def _submissions(self, assignment: Assignment, person: str) -> list[Submission]:
        if person:
            self.class_list.member(assignment.course, person)
        found = [each for _, each in self.counting(assignment, person)]
        if not found:
            raise InvalidInput(
                f"No submission for {assignment.name} counts.",
                accepted="Submissions; a late one counts with: carrel course count ID",
            )
        return found

    def counting(self, assignment: Assignment, person: str = "") -> list[tuple[Member, Submission]]:
        """The submission that is graded of each current student, by name."""
        shifts = DeadlineShifts.read(self.store, assignment.course)
        receipts = SubmissionReceipts.read(self.store, assignment, shifts, person or None)
        members = map(self.class_list.lookup(assignment.course), receipts.people)
        pairs = ((each, receipts.counting(each)) for each in members if each.left_at is None)
        return [(member, sent) for member, sent in pairs if sent is not None]

    def _run(
        self,
        who: Identity,
        made: ReleasedVersion,
        body: GradeIn,
        submissions: Collection[Submission],
        *,
        expected: float,
    ) -> GradingRun:
        return GradingRun(
            request=new_id("g"),
            course=made.course,
            assignment=made.assignment,
            version=made.version,
            person=body.person,
            question=body.question,
            submissions=tuple(each.id for each in submissions),
            asked_at=self.context.clock(),
            asked_by=who.name,
            expected=expected,
        )

    def _expected(
        self, made: ReleasedVersion, verdicts: Iterable[SubmissionVerdict], count: int
    ) -> float:
        """Seconds, by the pace of earlier runs of this version, else of the release check."""
        whole = self._runs_of(made, GradeIn())
        runs = {run.request for run in whole if run.version == made.version}
        times: defaultdict[str, list[float]] = defaultdict(list)
        for each in verdicts:
            if each.request in runs:
                times[each.request].append(each.at)
        checked = made.tried.pace if made.tried else NOT_KNOWN
        return duration.expected(duration.as_seen(checked, times.values()), count)

    def _seconds(self, assignment: Assignment, run: GradingRun) -> int:
        """The time limit: several times the estimate, at most the limit of the course."""
        worst = len(run.submissions) * assignment.seconds / duration.parallel()
        wanted = _START + (_MARGIN * run.expected if run.expected else worst)
        return int(min(max(_SHORTEST, wanted), self.access.max_seconds(run.course)))

    # -- for the worker -------------------------------------------------------------------

    def order(self, lease_id: str) -> GradingOrderOut:
        """What the worker with this lease has to grade. Raises NotFound."""
        run = self.store.run(self.context.store.lease(lease_id).request_id)
        assignment = self.store.assignment(run.course, run.assignment)
        made = self.store.released_version(run.course, run.assignment, run.version)
        done = _verdict_times(run, self.store.verdicts(run.course, run.assignment))
        member = self.class_list.lookup(run.course)
        shifts = DeadlineShifts.read(self.store, run.course)
        works = []
        for number in run.submissions:
            if number in done:
                continue
            found = self.store.submission(number)
            works.append(
                WorkOut(
                    submission=found.id,
                    person=found.person,
                    at=found.at,
                    penalty=late_penalty(assignment, shifts, member(found.person), found),
                    files=[ref_out(file) for file in found.files.files],
                )
            )
        image = self.access.image_of(self.store.course(run.course))
        return order_of(assignment, made, image=image, question=run.question, works=works)

    def store_verdict(self, lease_id: str, body: VerdictIn) -> bool:
        """Store a verdict; False where the run has one on this submission.

        Raises:
            StaleEpoch: the lease is over: another attempt grades, or the run has ended.
        """
        lease = self.context.store.lease(lease_id)
        if lease.state is LeaseState.RELEASED:
            raise StaleEpoch(f"The lease {lease_id} is over: this attempt is not to grade.")
        verdict = SubmissionVerdict(
            request=lease.request_id,
            submission=body.submission,
            at=self.context.clock(),
            seconds=body.seconds,
            cells=tuple(CellScore(**cell.model_dump()) for cell in body.cells),
            notes=tuple(body.notes),
            why_not=body.why_not,
        )
        stored = self.store.add_verdict(verdict)
        if stored:
            self.context.notifier.notify()
        return stored

    # -- grades ---------------------------------------------------------------------------

    def grades(self, who: Identity, course: str, name: str) -> GradesOut:
        """The newest run, and the grades of all students. For teachers and graders."""
        membership = self.access.membership(who, course, GRADERS)
        assignment = self.access.assignment(membership, name)
        newest = self._newest(self.store.runs(course, name))
        verdicts = self.store.verdicts(course, name)
        made = self.store.released_version(course, name) if assignment.version else None
        found = self._grades(assignment, verdicts)
        submitted = {grade.person for grade in found}
        return GradesOut(
            course=course,
            assignment=name,
            run=None if newest is None else self._progress(*newest, verdicts),
            questions=[] if made is None else self._cells_of(made),
            grades=found,
            no_submission=[
                member_out(each)
                for each in self.class_list.students(course)
                if each.person not in submitted
            ],
        )

    def grade(self, who: Identity, course: str, name: str, person: str) -> GradeOut:
        """The grade of one student. For teachers and graders.

        Raises:
            NotFound: no submission of the student counts.
        """
        for found in self.grades_alone(who, course, name, person):
            return found
        raise NotFound(f"No submission of {person[:80]} for {name} counts.")

    def grades_alone(
        self, who: Identity, course: str, name: str, person: str = ""
    ) -> list[GradeOut]:
        """The grades of the class, or of one student, without the run. For teachers and graders."""
        assignment = self.access.assignment(self.access.membership(who, course, GRADERS), name)
        return self._grades(assignment, self.store.verdicts(course, name), person)

    def grades_by_assignment(self, who: Identity, course: str) -> dict[str, list[GradeOut]]:
        """The grades of the class in all released assignments. For teachers and graders."""
        self.access.membership(who, course, GRADERS)
        with self.context.store.together():
            released = [each for each in self.store.assignments(course) if each.version]
            names = [each.name for each in released]
            verdicts = {name: self.store.verdicts(course, name) for name in names}
            pages = all_pages_of(self.root, course, names)
            return {
                each.name: self._grades(each, verdicts[each.name], pages=pages[each.name])
                for each in released
            }

    def _grades(
        self,
        assignment: Assignment,
        verdicts: Sequence[SubmissionVerdict],
        person: str = "",
        *,
        pages: Mapping[str, GradebookPage] | None = None,
    ) -> list[GradeOut]:
        """The grades of the class, or of one student.

        Args:
            pages: of the gradebook, read after the verdicts; None to read them here.
        """
        course, name = assignment.course, assignment.name
        shifts = DeadlineShifts.read(self.store, course)
        feedback = self.store.feedback(course, name, person or None)
        # A verdict is stored after its page of the gradebook, and so was read before it.
        pages = pages_of(self.root, course, name) if pages is None else pages
        own = dict[int, list[SubmissionVerdict]]()
        for verdict in verdicts:
            own.setdefault(verdict.submission, []).append(verdict)
        return [
            grades(
                *(member, sent, own.get(sent.id, ())),
                penalty=late_penalty(assignment, shifts, member, sent),
                given=feedback.get(sent.id),
                page=pages.get(member.person),
            )
            for member, sent in self.counting(assignment, person)
        ]

    def _progress(
        self, run: GradingRun, record: RequestRecord, verdicts: Iterable[SubmissionVerdict]
    ) -> GradingOut:
        times, total = _verdict_times(run, verdicts).values(), len(run.submissions)
        ended, now = record.state in TERMINAL, self.context.clock()
        began = now if record.started_at is None else record.started_at
        left = duration.left(run.expected, total, tuple(times), began=began, now=now)
        least, most = duration.bounds(left, len(times))
        known = left > 0 and not ended and record.state is not State.STOPPING
        return GradingOut(
            request=run.request,
            course=run.course,
            assignment=run.assignment,
            person=run.person,
            question=run.question,
            state=str(record.state),
            ended=ended,
            done=len(times),
            total=total,
            expected=run.expected,
            seconds_left=left if known else None,
            least_seconds_left=least if known else None,
            most_seconds_left=most if known else None,
            asked_at=run.asked_at,
            asked_by=run.asked_by,
            cause=record.cause.message if ended and record.cause else "",
        )


def order_of(
    assignment: Assignment,
    made: ReleasedVersion,
    *,
    image: str,
    question: str = "",
    works: Iterable[WorkOut] = (),
) -> GradingOrderOut:
    """What a worker has to know of a version, and the submissions that it grades."""
    tried = made.tried
    return GradingOrderOut(
        course=made.course,
        assignment=made.assignment,
        image=image,
        question=question,
        due=assignment.due,
        devices=assignment.devices,
        seconds=assignment.seconds,
        source=[ref_out(file) for file in made.source.files],
        apart={name: list(ids) for name, ids in tried.apart.items()} if tried else None,
        works=list(works),
    )


def _verdict_times(run: GradingRun, verdicts: Iterable[SubmissionVerdict]) -> Mapping[int, float]:
    """The times of this run's verdicts, by submission."""
    return {each.submission: each.at for each in verdicts if each.request == run.request}


def _without_verdict(
    before: GradingRun, submissions: list[Submission], verdicts: Iterable[SubmissionVerdict]
) -> list[Submission]:
    """The submissions that an unfinished run has left; all of them where it was finished."""
    done = _verdict_times(before, verdicts)
    if done.keys() >= set(before.submissions):
        return submissions
    return [each for each in submissions if each.id not in done] or submissions
