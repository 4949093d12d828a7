"""Grading as a request on the pool: asked for, done by the service's own grader, and looked at.

A run settles at the start what it grades. Its grader asks for what has no verdict yet, so that
whatever is interrupted goes on; each verdict is written once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress

from ...hub.admission.policy import ResourceRequest
from ...hub.admission.request_factory import new_id
from ...hub.errors import InvalidInput, NotFound, StaleEpoch
from ...hub.interfaces.backend import OWN_WORK
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity
from ...hub.records.json_value import Json
from ...hub.records.leases import LeaseState
from ...hub.records.requests import JobSpec, NewRequest, RequestRecord
from ...hub.scheduling.model.snapshot import Kind
from ...hub.scheduling.model.states import TERMINAL
from ...hub.schemas.grading import (
    GradeIn,
    GradesOut,
    GradingOrderOut,
    GradingOut,
    VerdictIn,
    WorkOut,
)
from ..deadlines.shifts import late_penalty
from ..files.transfer import ref_out
from ..gradebook.grades import grades
from ..grading import duration
from ..model.records import (
    NOT_KNOWN,
    Assignment,
    CellScore,
    GradingRun,
    HandOut,
    Member,
    Submission,
    SubmissionVerdict,
)
from ..releases.graded_cells import graded_cells
from ..roster.access import GRADED_BY, CourseAccess, check_open
from ..submissions.receipts import SubmissionReceipts

GRADER = ("python", "-P", "-m", "carrel.courses.grading_runs.worker")
"""Found beside the service's own Python. Without the working folder in its path (-P)."""
_SHORTEST, _MARGIN, _START = 600, 3.0, 60.0
_RETRIES = 3


class GradingService(CourseAccess):
    """The part of ``CourseDesk`` about grading."""

    __slots__ = ()

    # -- asking ---------------------------------------------------------------------------

    def grade(self, who: Identity, course: str, name: str, body: GradeIn) -> GradingOut:
        """Have the pool grade what counts; a run of the same that waits or runs is that one.

        What an interrupted run of the same has graded already is not graded again.

        Raises:
            Forbidden: for students.
            InvalidInput: nothing was handed in that counts, or there is no such cell.
                Or the image of the course is gone.
            OverMaximum: the pool or the course never has what it takes.
        """
        place = self.place(who, course, GRADED_BY)
        check_open(place.course)
        assignment = self.assignment(place, name)
        self.image_of(place.course)  # refused here, and not by a grader that nobody looks at
        made = self.store.hand_out(course, name)
        if body.question:
            self._check_question(made, body.question)
        same = self._runs_of(made, body)
        newest, verdicts = self._newest(same), self.store.verdicts(course, name)
        if newest is not None and newest[1].state not in TERMINAL:
            return self._progress(*newest, verdicts)
        works = self._works(assignment, body.person)
        if newest is not None and newest[0].version == made.version:
            works = _unjudged(newest[0], works, verdicts)
        run = self._run(who, made, body, works, expected=self._expected(made, verdicts, len(works)))
        seconds = self._seconds(assignment, run)
        self.commands.admission.admit(
            ResourceRequest(
                owner=who.name, group=course, devices=assignment.devices, seconds=seconds
            )
        )
        target = f"{course}/{name}"
        after: dict[str, Json] = {
            "person": body.person,
            "question": body.question,
            "submissions": len(works),
        }
        self.store.add_run(run, change=self.change(who, AuditAction.GRADE, target, after=after))
        record = self.commands.store.submit(
            NewRequest(
                id=run.request,
                kind=Kind.GRADING,
                owner=who.name,
                group=course,
                devices=assignment.devices,
                seconds=seconds,
                # Of two that ask at one time the second one gets the run of the first.
                idempotency_key=f"grade {target} {body.person} {body.question} {len(same)}",
                job=JobSpec(notebook_name="", command=GRADER, retries=_RETRIES),
                labels={"course": course, "assignment": name},
                deadline=body.deadline,
                expected=run.expected or None,
            ),
            self.commands.clock(),
        )
        self.commands.notifier.notify()
        return self._progress(self.store.run(record.id), record, verdicts)

    def _check_question(self, made: HandOut, question: str) -> None:
        known = self._cells_of(made)
        if question not in known:
            raise InvalidInput(
                f"{made.assignment} has no graded cell {question[:80]!r}.",
                accepted=f"One of: {', '.join(known)}.",
                field="question",
            )

    def _cells_of(self, made: HandOut) -> list[str]:
        return list(dict.fromkeys(each.cell for each in graded_cells(self.blobs, made)))

    def _runs_of(self, made: HandOut, body: GradeIn) -> list[GradingRun]:
        found = self.store.runs(made.course, made.assignment)
        scope = body.person, body.question
        return [run for run in found if (run.person, run.question) == scope]

    def _newest(self, runs: Collection[GradingRun]) -> tuple[GradingRun, RequestRecord] | None:
        """The newest one that has a request: one may have been interrupted before."""
        for run in sorted(runs, key=lambda each: each.asked_at, reverse=True):
            with suppress(NotFound):
                return run, self.commands.store.request(run.request)
        return None

    def _works(self, assignment: Assignment, person: str) -> list[Submission]:
        if person:
            self.member_of(assignment.course, person)
        found = [each for _, each in self._counting(assignment, person)]
        if not found:
            raise InvalidInput(
                f"Nothing was handed in for {assignment.name} that counts.",
                accepted="Submissions; a late one counts with: carrel course count ID",
            )
        return found

    def _counting(
        self, assignment: Assignment, person: str = ""
    ) -> list[tuple[Member, Submission]]:
        """What is graded of each student, by name; nothing of those who have left."""
        moved = self.moved_in(assignment.course)
        book = SubmissionReceipts.read(self.store, assignment, moved, person or None)
        members = map(self.called(assignment.course), book.people)
        pairs = ((each, book.counting(each)) for each in members if each.left_at is None)
        return [(member, sent) for member, sent in pairs if sent is not None]

    def _run(
        self,
        who: Identity,
        made: HandOut,
        body: GradeIn,
        works: Collection[Submission],
        *,
        expected: float,
    ) -> GradingRun:
        return GradingRun(
            request=new_id(OWN_WORK),
            course=made.course,
            assignment=made.assignment,
            version=made.version,
            person=body.person,
            question=body.question,
            submissions=tuple(work.id for work in works),
            asked_at=self.commands.clock(),
            asked_by=who.name,
            expected=expected,
        )

    def _expected(self, made: HandOut, verdicts: Iterable[SubmissionVerdict], count: int) -> float:
        """As earlier runs of the same files went, else as the check before the release did."""
        whole = self._runs_of(made, GradeIn())
        runs = {run.request for run in whole if run.version == made.version}
        came: defaultdict[str, list[float]] = defaultdict(list)
        for each in verdicts:
            if each.request in runs:
                came[each.request].append(each.at)
        checked = made.tried.pace if made.tried else NOT_KNOWN
        return duration.expected(duration.as_seen(checked, came.values()), count)

    def _seconds(self, assignment: Assignment, run: GradingRun) -> int:
        """Its time limit: several times the estimate, at most what the course may have."""
        worst = len(run.submissions) * assignment.seconds / duration.parallel()
        wanted = _START + (_MARGIN * run.expected if run.expected else worst)
        return int(min(max(_SHORTEST, wanted), self.longest(run.course)))

    # -- the grader's side ----------------------------------------------------------------

    def order(self, lease_id: str) -> GradingOrderOut:
        """What is left to do of the run for which the lease was given. Raises NotFound."""
        run = self.store.run(self.commands.store.lease(lease_id).request_id)
        assignment = self.store.assignment(run.course, run.assignment)
        made = self.store.hand_out(run.course, run.assignment, run.version)
        judged = _judged(run, self.store.verdicts(run.course, run.assignment))
        called, moved = self.called(run.course), self.moved_in(run.course)
        works = []
        for number in run.submissions:
            if number in judged:
                continue
            sent = self.store.submission(number)
            works.append(
                WorkOut(
                    submission=sent.id,
                    person=sent.person,
                    at=sent.at,
                    penalty=late_penalty(assignment, moved, called(sent.person), sent),
                    files=[ref_out(file) for file in sent.files.files],
                )
            )
        image = self.image_of(self.store.course(run.course))
        return order_of(assignment, made, image=image, question=run.question, works=works)

    def judge(self, lease_id: str, body: VerdictIn) -> bool:
        """Keep a verdict; False where the run has one of this submission.

        Raises:
            StaleEpoch: another attempt of the run has taken over, or none is to run any more.
        """
        lease = self.commands.store.lease(lease_id)
        if lease.state is LeaseState.RELEASED:
            raise StaleEpoch(f"The lease {lease_id} is over: this attempt is not to grade.")
        verdict = SubmissionVerdict(
            request=lease.request_id,
            submission=body.submission,
            at=self.commands.clock(),
            seconds=body.seconds,
            cells=tuple(CellScore(**cell.model_dump()) for cell in body.cells),
            notes=tuple(body.notes),
            why_not=body.why_not,
        )
        kept = self.store.add_verdict(verdict)
        if kept:
            self.commands.notifier.notify()
        return kept

    # -- looking --------------------------------------------------------------------------

    def grades(self, who: Identity, course: str, name: str) -> GradesOut:
        """For teachers and graders: the newest run, and what everybody has."""
        place = self.place(who, course, GRADED_BY)
        assignment = self.assignment(place, name)
        newest = self._newest(self.store.runs(course, name))
        moved = self.moved_in(course)
        verdicts, given = self.store.verdicts(course, name), self.store.feedback(course, name)
        made = self.store.hand_out(course, name) if assignment.version else None
        by_hand = self.by_hand(course, name)
        return GradesOut(
            course=course,
            assignment=name,
            run=None if newest is None else self._progress(*newest, verdicts),
            questions=[] if made is None else self._cells_of(made),
            grades=[
                grades(
                    *(member, sent, verdicts, late_penalty(assignment, moved, member, sent)),
                    given=given.get(sent.id),
                    page=by_hand.get(member.person),
                )
                for member, sent in self._counting(assignment)
            ],
        )

    def _progress(
        self, run: GradingRun, record: RequestRecord, verdicts: Iterable[SubmissionVerdict]
    ) -> GradingOut:
        came, total = _judged(run, verdicts).values(), len(run.submissions)
        ended, now = record.state in TERMINAL, self.commands.clock()
        began = now if record.started_at is None else record.started_at
        left = duration.left(run.expected, total, tuple(came), began=began, now=now)
        return GradingOut(
            request=run.request,
            course=run.course,
            assignment=run.assignment,
            person=run.person,
            question=run.question,
            state=str(record.state),
            ended=ended,
            done=len(came),
            total=total,
            expected=run.expected,
            seconds_left=None if ended else left or None,
            asked_at=run.asked_at,
            asked_by=run.asked_by,
            cause=record.cause.message if ended and record.cause else "",
        )


def order_of(
    assignment: Assignment,
    made: HandOut,
    *,
    image: str,
    question: str = "",
    works: Iterable[WorkOut] = (),
) -> GradingOrderOut:
    """What a grader has to know of a version, and its work."""
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


def _judged(run: GradingRun, verdicts: Iterable[SubmissionVerdict]) -> Mapping[int, float]:
    """When the verdict on each submission came, of those that have one from this run."""
    return {each.submission: each.at for each in verdicts if each.request == run.request}


def _unjudged(
    before: GradingRun, works: list[Submission], verdicts: Iterable[SubmissionVerdict]
) -> list[Submission]:
    """What an unfinished run has left; all of it where that one came to its end."""
    judged = _judged(before, verdicts)
    if judged.keys() >= set(before.submissions):
        return works
    return [each for each in works if each.id not in judged] or works
