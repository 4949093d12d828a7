"""The store of courses that forgets: in dictionaries, under one lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import RLock

from ...hub.interfaces.store import Store
from ...hub.records.audit import AuditEntry
from ..model.records import (
    Assignment,
    Course,
    Extension,
    Feedback,
    Fetched,
    GradingRun,
    HandOut,
    Member,
    NewSubmission,
    Outage,
    Submission,
    SubmissionVerdict,
)
from .not_found import no_assignment, no_course, no_hand_out, no_run, no_submission

Whose = tuple[str, str, str]


class MemoryCourseStore:
    """``courses.ports.CourseStore`` beside the store that has the groups and the audit list."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = RLock()
        self._courses: dict[str, Course] = {}
        self._members: dict[tuple[str, str], Member] = {}
        self._assignments: dict[tuple[str, str], Assignment] = {}
        self._hand_outs: dict[tuple[str, str], list[HandOut]] = {}
        self._fetched: dict[Whose, Fetched] = {}
        self._submissions: list[Submission] = []
        self._latest: dict[Whose, Submission] = {}
        self._choices: dict[Whose, int] = {}
        self._feedback: dict[int, Feedback] = {}
        self._runs: dict[str, GradingRun] = {}
        self._verdicts: dict[tuple[str, int], SubmissionVerdict] = {}
        self._extensions: list[Extension] = []
        self._outages: list[Outage] = []

    # -- courses and their people ---------------------------------------------------------

    def courses(self) -> tuple[Course, ...]:
        with self._lock:
            return tuple(self._courses[name] for name in sorted(self._courses))

    def course(self, name: str) -> Course:
        with self._lock:
            if name not in self._courses:
                raise no_course(name)
            return self._courses[name]

    def put_course(self, course: Course, *, change: AuditEntry | None = None) -> None:
        with self._lock:
            self._store.group(course.name)
            self._courses[course.name] = course
            self._note(change)

    def members(self, course: str) -> tuple[Member, ...]:
        with self._lock:
            found = [each for each in self._members.values() if each.course == course]
        return tuple(sorted(found, key=lambda each: each.person))

    def memberships(self, person: str) -> tuple[Member, ...]:
        with self._lock:
            found = [each for each in self._members.values() if each.person == person]
        return tuple(sorted(found, key=lambda each: each.course))

    def put_members(
        self, course: str, members: Sequence[Member], *, change: AuditEntry | None = None
    ) -> None:
        with self._lock:
            self.course(course)
            self._members |= {(course, each.person): each for each in members}
            self._note(change)

    # -- assignments ----------------------------------------------------------------------

    def assignments(self, course: str) -> tuple[Assignment, ...]:
        with self._lock:
            return tuple(self._assignments[k] for k in sorted(self._assignments) if k[0] == course)

    def assignment(self, course: str, name: str) -> Assignment:
        with self._lock:
            if (course, name) not in self._assignments:
                raise no_assignment(course, name)
            return self._assignments[course, name]

    def put_assignment(self, assignment: Assignment, *, change: AuditEntry | None = None) -> None:
        with self._lock:
            self.course(assignment.course)
            key = assignment.course, assignment.name
            known = self._assignments.get(key)
            version = 0 if known is None else known.version
            self._assignments[key] = replace(assignment, version=version)
            self._note(change)

    def release(
        self, assignment: Assignment, hand_out: HandOut, *, change: AuditEntry | None = None
    ) -> HandOut:
        with self._lock:
            self.put_assignment(assignment, change=change)
            key = assignment.course, assignment.name
            made = self._hand_outs.setdefault(key, [])
            if made and (made[-1].files, made[-1].source) == (hand_out.files, hand_out.source):
                made[-1] = replace(made[-1], tried=hand_out.tried or made[-1].tried)
                return made[-1]
            made.append(replace(hand_out, version=len(made) + 1))
            self._assignments[key] = replace(assignment, version=len(made))
            return made[-1]

    def hand_out(self, course: str, assignment: str, version: int | None = None) -> HandOut:
        with self._lock:
            made = self._hand_outs.get((course, assignment), [])
            number = len(made) if version is None else version
            if not 0 < number <= len(made):
                raise no_hand_out(course, assignment, version)
            return made[number - 1]

    def note_fetched(self, fetched: Fetched) -> None:
        with self._lock:
            self.assignment(fetched.course, fetched.assignment)
            self._fetched[fetched.course, fetched.assignment, fetched.person] = fetched

    def fetched(
        self, course: str, assignment: str | None = None, person: str | None = None
    ) -> tuple[Fetched, ...]:
        with self._lock:
            found = [
                key
                for key in sorted(self._fetched)
                if key[0] == course and assignment in (None, key[1]) and person in (None, key[2])
            ]
            return tuple(self._fetched[key] for key in found)

    # -- what comes in --------------------------------------------------------------------

    def submit(self, new: NewSubmission) -> Submission:
        with self._lock:
            self.assignment(new.course, new.assignment)
            key = new.course, new.assignment, new.person
            last = self._latest.get(key)
            if last is not None and last.files.sha256 == new.files.sha256:
                return last
            made = Submission(
                id=len(self._submissions) + 1,
                number=last.number + 1 if last else 1,
                course=new.course,
                assignment=new.assignment,
                person=new.person,
                at=new.at,
                files=new.files,
                version=new.version,
            )
            self._submissions.append(made)
            self._latest[key] = made
            return made

    def submissions(
        self, course: str, assignment: str | None = None, person: str | None = None
    ) -> tuple[Submission, ...]:
        with self._lock:
            found = [
                each
                for each in self._submissions
                if each.course == course
                and assignment in (None, each.assignment)
                and person in (None, each.person)
            ]
        return tuple(sorted(found, key=lambda s: (s.assignment, s.person, s.number)))

    def submission(self, submission_id: int) -> Submission:
        with self._lock:
            if not 0 < submission_id <= len(self._submissions):
                raise no_submission(submission_id)
            return self._submissions[submission_id - 1]

    def choose(
        self, submission: Submission, *, counts: bool, change: AuditEntry | None = None
    ) -> None:
        key = submission.course, submission.assignment, submission.person
        with self._lock:
            self.submission(submission.id)
            if counts:
                self._choices[key] = submission.number
            else:
                self._choices.pop(key, None)
            self._note(change)

    def chosen(self, course: str, assignment: str) -> dict[str, int]:
        with self._lock:
            return {k[2]: n for k, n in self._choices.items() if k[:2] == (course, assignment)}

    # -- grading --------------------------------------------------------------------------

    def add_run(self, run: GradingRun, *, change: AuditEntry | None = None) -> None:
        with self._lock:
            self.assignment(run.course, run.assignment)
            self._runs[run.request] = run
            self._note(change)

    def runs(self, course: str, assignment: str) -> tuple[GradingRun, ...]:
        with self._lock:
            return tuple(
                run
                for run in self._runs.values()
                if (run.course, run.assignment) == (course, assignment)
            )

    def run(self, request: str) -> GradingRun:
        with self._lock:
            if request not in self._runs:
                raise no_run(request)
            return self._runs[request]

    def add_verdict(self, verdict: SubmissionVerdict) -> bool:
        with self._lock:
            if verdict.submission not in self.run(verdict.request).submissions:
                raise no_submission(verdict.submission)
            key = verdict.request, verdict.submission
            return self._verdicts.setdefault(key, verdict) is verdict

    def verdicts(self, course: str, assignment: str) -> tuple[SubmissionVerdict, ...]:
        with self._lock:
            return tuple(
                self._verdicts[run.request, each]
                for run in self.runs(course, assignment)
                for each in sorted(run.submissions)
                if (run.request, each) in self._verdicts
            )

    # -- what goes back -------------------------------------------------------------------

    def give_back(self, feedback: Feedback, *, change: AuditEntry | None = None) -> None:
        with self._lock:
            self.submission(feedback.submission)
            self._feedback[feedback.submission] = feedback
            self._note(change)

    def feedback(
        self, course: str, assignment: str | None = None, person: str | None = None
    ) -> dict[int, Feedback]:
        with self._lock:
            found = [each.id for each in self.submissions(course, assignment, person)]
            return {id: self._feedback[id] for id in found if id in self._feedback}

    # -- more time ------------------------------------------------------------------------

    def extend(self, extension: Extension, *, change: AuditEntry | None = None) -> None:
        with self._lock:
            self.assignment(extension.course, extension.assignment)
            self._extensions.append(extension)
            self._note(change)

    def take_time_back(
        self,
        course: str,
        assignment: str,
        *,
        person: str = "",
        section: str = "",
        change: AuditEntry | None = None,
    ) -> None:
        whose = course, assignment, person, section
        with self._lock:
            self._extensions = [
                each
                for each in self._extensions
                if (each.course, each.assignment, each.person, each.section) != whose
            ]
            self._note(change)

    def extensions(self, course: str) -> tuple[Extension, ...]:
        with self._lock:
            return tuple(each for each in self._extensions if each.course == course)

    def add_outage(self, outage: Outage, *, change: AuditEntry | None = None) -> None:
        with self._lock:
            self._outages.append(outage)
            self._note(change)

    def outages(self) -> tuple[Outage, ...]:
        with self._lock:
            return tuple(self._outages)

    # -- within ---------------------------------------------------------------------------

    def _note(self, change: AuditEntry | None) -> None:
        if change is not None:
            self._store.add_change(change)
