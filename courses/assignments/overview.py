"""List the assignments of a course with their state: for one student, or for the class."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ...hub.messages import units
from ...hub.records.identity import Identity
from ...hub.schemas.courses import AssignmentOut, AssignmentsOut, ReceiptOut
from ..deadlines import rules as deadline_rules
from ..deadlines.shifts import DeadlineShifts
from ..feedback.delivery import FeedbackDelivery, newest
from ..model.records import Assignment, CourseRole, Feedback, Fetched, Member, Submission
from ..roster.access import CourseAccess, CourseMembership
from ..submissions.receipts import SubmissionReceipts


@dataclass(frozen=True, slots=True)
class AssignmentOverview:
    """Assignments with due dates, submissions and points."""

    access: CourseAccess
    delivery: FeedbackDelivery

    def assignments(self, who: Identity, course: str) -> AssignmentsOut:
        """The assignments of a course; students see the released ones, with their own work."""
        return AssignmentsOut(assignments=self._assignments(self.access.membership(who, course)))

    def own_assignments(self, who: Identity) -> list[AssignmentOut] | None:
        """The assignments of all courses that the user takes, the earliest due date first.

        None where the user is not a student of any course.
        """
        memberships = [
            each
            for each in self.access.memberships(who)
            if each.role is CourseRole.STUDENT and each.course.archived_at is None
        ]
        if not memberships:
            return None
        found = [each for membership in memberships for each in self._assignments(membership)]
        never = float("inf")
        return sorted(found, key=lambda a: (a.state == "closed", a.due or never, a.course, a.name))

    # -- internal -------------------------------------------------------------------------

    def _assignments(self, membership: CourseMembership) -> list[AssignmentOut]:
        course, member, store = membership.course.name, membership.member, self.access.store
        found = store.assignments(course)
        shifts = DeadlineShifts.read(store, course)
        if membership.role is not CourseRole.STUDENT:
            submissions, fetched = store.submissions(course), store.fetched(course)
            return [self._for_class(each, shifts, submissions, fetched) for each in found]
        # Read for the whole course at once: the home page lists every assignment.
        submissions = store.submissions(course, person=member.person)
        fetched = store.fetched(course, person=member.person)
        feedback = store.feedback(course, person=member.person)
        versions = {each.assignment: each.version for each in fetched}
        return [
            self._for_student(
                member, each, self._receipts(each, submissions, shifts), versions, feedback
            )
            for each in found
            if each.open
        ]

    def _receipts(
        self, assignment: Assignment, submissions: Iterable[Submission], shifts: DeadlineShifts
    ) -> SubmissionReceipts:
        found = tuple(each for each in submissions if each.assignment == assignment.name)
        return SubmissionReceipts.of(self.access.store, assignment, shifts, found)

    def _for_student(
        self,
        member: Member,
        assignment: Assignment,
        submissions: SubmissionReceipts,
        versions: Mapping[str, int],
        feedback: Mapping[int, Feedback],
    ) -> AssignmentOut:
        receipts = submissions.receipts(member)
        version = versions.get(assignment.name, 0)
        extension = submissions.shifts.extension(assignment, member)
        shown = _assignment_out(assignment, member, submissions.shifts)
        now = self.access.context.clock()
        return shown.model_copy(
            update={
                "extension": f"{units.duration(extension)} more" if extension else "",
                "state": _state(shown, receipts, feedback, version, now),
                "fetched_version": version,
                "receipts": receipts,
                "now": deadline_rules.now_sentence(now, shown.due, assignment.late),
                **self._points(feedback[r.id] for r in receipts if r.id in feedback),
            }
        )

    def _points(self, feedback: Iterable[Feedback]) -> dict[str, float | bool | None]:
        last = newest(feedback)
        if last is None:
            return {}
        grade = self.delivery.released_grade(last)
        if grade is None:
            return {"feedback": True}
        return {
            "feedback": True,
            "score": grade.score,
            "max_score": grade.max_score,
            "provisional": grade.provisional,
        }

    def _for_class(
        self,
        assignment: Assignment,
        shifts: DeadlineShifts,
        submissions: Collection[Submission],
        fetched: Collection[Fetched],
    ) -> AssignmentOut:
        any_member, name = Member(course=assignment.course, person=""), assignment.name
        people = {each.id: each.person for each in submissions if each.assignment == name}
        verdicts = self.access.store.verdicts(assignment.course, name) if people else ()
        graded = {each.submission for each in verdicts if not each.why_not}
        return _assignment_out(assignment, any_member, shifts).model_copy(
            update={
                "state": "open" if assignment.open else "not released",
                "fetched": sum(each.assignment == name for each in fetched),
                "submitted": len(set(people.values())),
                "graded": len({people[number] for number in graded if number in people}),
            }
        )


def _state(
    shown: AssignmentOut,
    receipts: Collection[ReceiptOut],
    feedback: Mapping[int, Feedback],
    version: int,
    now: float,
) -> str:
    if receipts:
        return "graded" if any(each.id in feedback for each in receipts) else "submitted"
    if shown.closes_at is not None and now > shown.closes_at:
        return "closed"
    return "fetched" if version else "open"


def _assignment_out(
    assignment: Assignment, member: Member, shifts: DeadlineShifts
) -> AssignmentOut:
    due = shifts.due(assignment, member)
    last = assignment.late.steps[-1].seconds if assignment.late.steps else 0
    return AssignmentOut(
        course=assignment.course,
        name=assignment.name,
        due=due,
        class_due=assignment.due,
        zone=assignment.zone,
        late=deadline_rules.late_text(assignment.late),
        late_rule=deadline_rules.late_sentence(assignment.late),
        state="open",
        closes_at=None if due is None else due + last,
        version=assignment.version,
        devices=assignment.devices,
        seconds=assignment.seconds,
    )
