"""Grading as a request on the pool: asked for, done by the service's own grader, and looked at.

A run settles at the start what it grades. Its grader asks for what has no verdict yet, so that
whatever is interrupted goes on; each verdict is written once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress

from ..hub.admission import Ask
from ..hub.errors import InvalidInput, NotFound, StaleEpoch
from ..hub.intake import new_id
from ..hub.ports.audit import Action
from ..hub.ports.backend import OWN_WORK
from ..hub.ports.records import JobSpec, Json, LeaseState, NewRequest, RequestRecord
from ..hub.ports.world import Identity
from ..hub.scheduling import quota
from ..hub.scheduling.lifecycle import TERMINAL
from ..hub.scheduling.model import Kind
from ..hub.wire.grading import GradeIn, GradesOut, GradingOrderOut, GradingOut, VerdictIn, WorkOut
from . import due
from .carrying import ref_out
from .grades import grades
from .model import Assignment, CellScore, GradingRun, HandOut, Member, Submission, Verdict
from .receipts import Book, Moved
from .rights import GRADED_BY, Rights, check_open

GRADER = ("python", "-P", "-m", "carrel.hub.grader")
"""Found beside the service's own Python. Without the working folder in its path (-P)."""
_SHORTEST, _MARGIN, _START = 600, 3.0, 60.0
_RETRIES = 3
_KNOWN_AFTER = 3
"""From so many verdicts on their own times are the estimate."""


class Judging(Rights):
    """The part of ``CourseDesk`` about grading."""

    __slots__ = ()

    # -- asking ---------------------------------------------------------------------------

    def grade(self, who: Identity, course: str, name: str, body: GradeIn) -> GradingOut:
        """Have the pool grade what counts; a run of the same that waits or runs is that one.

        What an interrupted run of the same has graded already is not graded again.

        Raises:
            Forbidden: for students.
            InvalidInput: nothing was handed in that counts, or there is no such cell.
            OverMaximum: the pool or the course never has what it takes.
        """
        place = self.place(who, course, GRADED_BY)
        check_open(place.course)
        assignment = self.assignment(place, name)
        made = self.store.hand_out(course, name)
        if body.question:
            self._check_question(made, body.question)
        same = self._runs_of(made, body)
        newest = self._newest(same)
        if newest is not None and newest[1].state not in TERMINAL:
            return self._progress(*newest)
        works = self._works(assignment, body.person)
        if newest is not None and newest[0].version == made.version:
            works = self._unjudged(newest[0], works)
        run = self._run(who, made, body, works)
        seconds = self._seconds(assignment, run)
        self.commands.admission.admit(
            Ask(owner=who.name, group=course, devices=assignment.devices, seconds=seconds)
        )
        target = f"{course}/{name}"
        after: dict[str, Json] = {
            "person": body.person,
            "question": body.question,
            "submissions": len(works),
        }
        self.store.add_run(run, change=self.change(who, Action.GRADE, target, after=after))
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
        self.commands.pulse.beat()
        return self._progress(self.store.run(record.id), record)

    def _check_question(self, made: HandOut, question: str) -> None:
        known: list[str] = []
        for file in made.source.files:
            if file.name.endswith(".ipynb") and "/" not in file.name:
                with self.blobs.open(file.sha256) as content:
                    known += _graded_cells(content.read())
        if question not in known:
            raise InvalidInput(
                f"{made.assignment} has no graded cell {question[:80]!r}.",
                accepted=f"One of: {', '.join(known)}.",
                field="question",
            )

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
        known = {member.person: member for member in self.store.members(assignment.course)}
        book = Book.read(self.store, assignment, self._moving(assignment.course), person or None)
        members = (known.get(p) or Member(course=assignment.course, person=p) for p in book.people)
        pairs = ((each, book.counting(each)) for each in members if each.left_at is None)
        return [(member, sent) for member, sent in pairs if sent is not None]

    def _moving(self, course: str) -> Moved:
        return Moved(extensions=self.store.extensions(course), outages=self.store.outages())

    def _unjudged(self, before: GradingRun, works: list[Submission]) -> list[Submission]:
        """What an unfinished run has left; all of it where that one came to its end."""
        judged = self._judged(before)
        if judged >= set(before.submissions):
            return works
        return [each for each in works if each.id not in judged] or works

    def _judged(self, run: GradingRun) -> set[int]:
        found = self.store.verdicts(run.course, run.assignment)
        return {each.submission for each in found if each.request == run.request}

    def _run(
        self, who: Identity, made: HandOut, body: GradeIn, works: Collection[Submission]
    ) -> GradingRun:
        each = made.tried.seconds if made.tried else 0.0
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
            expected=len(works) * each / parallel(),
        )

    def _seconds(self, assignment: Assignment, run: GradingRun) -> int:
        """Its time limit: several times the estimate, at most what the course may have."""
        worst = len(run.submissions) * assignment.seconds / parallel()
        wanted = _START + (_MARGIN * run.expected if run.expected else worst)
        most = quota.limits(quota.Tree(self.commands.store.groups()), run.course)
        longest = most.max_seconds if most else wanted
        return int(min(max(_SHORTEST, wanted), longest))

    # -- the grader's side ----------------------------------------------------------------

    def order(self, lease_id: str) -> GradingOrderOut:
        """What is left to do of the run for which the lease was given. Raises NotFound."""
        run = self.store.run(self.commands.store.lease(lease_id).request_id)
        assignment = self.store.assignment(run.course, run.assignment)
        made = self.store.hand_out(run.course, run.assignment, run.version)
        judged = self._judged(run)
        known = {member.person: member for member in self.store.members(run.course)}
        moved = self._moving(run.course)
        works = []
        for number in run.submissions:
            if number in judged:
                continue
            sent = self.store.submission(number)
            member = known.get(sent.person) or Member(course=run.course, person=sent.person)
            works.append(
                WorkOut(
                    submission=sent.id,
                    person=sent.person,
                    at=sent.at,
                    penalty=_penalty(assignment, moved, member, sent),
                    files=[ref_out(file) for file in sent.files.files],
                )
            )
        tried = made.tried
        return GradingOrderOut(
            course=run.course,
            assignment=run.assignment,
            question=run.question,
            due=assignment.due,
            devices=assignment.devices,
            seconds=assignment.seconds,
            seconds_each=tried.seconds if tried else 0.0,
            source=[ref_out(file) for file in made.source.files],
            apart={name: list(ids) for name, ids in tried.apart.items()} if tried else None,
            works=works,
        )

    def judge(self, lease_id: str, body: VerdictIn) -> bool:
        """Keep a verdict; False where the run has one of this submission.

        Raises:
            StaleEpoch: another attempt of the run has taken over, or none is to run any more.
        """
        lease = self.commands.store.lease(lease_id)
        if lease.state is LeaseState.RELEASED:
            raise StaleEpoch(f"The lease {lease_id} is over: this attempt is not to grade.")
        verdict = Verdict(
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
            self.commands.pulse.beat()
        return kept

    # -- looking --------------------------------------------------------------------------

    def grades(self, who: Identity, course: str, name: str) -> GradesOut:
        """For teachers and graders: the newest run, and what everybody has."""
        place = self.place(who, course, GRADED_BY)
        assignment = self.assignment(place, name)
        newest = self._newest(self.store.runs(course, name))
        moved = self._moving(course)
        verdicts = self.store.verdicts(course, name)
        return GradesOut(
            course=course,
            assignment=name,
            run=None if newest is None else self._progress(*newest),
            grades=[
                grades(member, sent, verdicts, _penalty(assignment, moved, member, sent))
                for member, sent in self._counting(assignment)
            ],
        )

    def _progress(self, run: GradingRun, record: RequestRecord) -> GradingOut:
        done, total = len(self._judged(run)), len(run.submissions)
        ended = record.state in TERMINAL
        left: float | None = run.expected * (total - done) / total if run.expected else None
        if done >= _KNOWN_AFTER and record.started_at is not None:
            left = (self.commands.clock() - record.started_at) / done * (total - done)
        return GradingOut(
            request=run.request,
            course=run.course,
            assignment=run.assignment,
            person=run.person,
            question=run.question,
            state=str(record.state),
            ended=ended,
            done=done,
            total=total,
            expected=run.expected,
            seconds_left=None if ended else left,
            asked_at=run.asked_at,
            asked_by=run.asked_by,
        )


def parallel() -> int:
    """How many submissions are graded at one time: the grader runs on the service's machine."""
    return len(os.sched_getaffinity(0))


def _penalty(assignment: Assignment, moved: Moved, member: Member, sent: Submission) -> float:
    """Of what is graded; a teacher who lets count what came too late takes nothing off."""
    late = due.lateness(sent.at, moved.due(assignment, member), assignment.late)
    return 0.0 if late.standing is due.Standing.TOO_LATE else late.penalty


def _graded_cells(notebook: bytes) -> Iterable[str]:
    cells: list[Mapping[str, Mapping[str, Mapping[str, object]]]] = json.loads(notebook)["cells"]
    for cell in cells:
        role = cell.get("metadata", {}).get("nbgrader", {})
        if role.get("grade") or role.get("task"):
            yield str(role.get("grade_id"))
