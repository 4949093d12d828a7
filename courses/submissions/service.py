"""What students hand in, the receipts for it, and how their assignments stand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ...hub.errors import Forbidden, InvalidInput
from ...hub.messages import units
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity
from ...hub.schemas.courses import (
    AssignmentOut,
    AssignmentsOut,
    HandedInOut,
    ReceiptOut,
    ReceiptsOut,
    SubmitIn,
)
from ..deadlines import rules as deadline_rules
from ..deadlines.shifts import DeadlineShifts
from ..feedback.delivery import OwnGrades, newest
from ..files.transfer import bundle_of_body, content_out, store_bundle
from ..model.records import (
    Assignment,
    CourseRole,
    Feedback,
    Fetched,
    Member,
    NewSubmission,
    Submission,
)
from ..roster.access import TAUGHT_BY, CourseMembership, check_open
from .receipts import SubmissionReceipts


class SubmissionService(OwnGrades):
    """The part of ``CourseDesk`` about what comes in."""

    __slots__ = ()

    # -- handing in -----------------------------------------------------------------------

    def submit(self, who: Identity, course: str, name: str, body: SubmitIn) -> ReceiptOut:
        """Take what a student sends, whole or not at all; the same again gives the same receipt.

        What comes too late to count is taken too: the teacher may still let it count.

        Raises:
            Forbidden: for those who are no students of the course.
            NotFound: it is not released.
            InvalidInput, TooLarge: of the files; nothing is stored then.
            Unavailable: it could not be stored.
        """
        at = self.commands.clock()
        with self.commands.store.together():
            place = self.place(who, course)
            if place.role is not CourseRole.STUDENT:
                raise Forbidden(
                    f"You are a {place.role} of {course}.", accepted="Its students hand in."
                )
            check_open(place.course)
            assignment = self.assignment(place, name)
        parcel = bundle_of_body(body)
        if parcel is None:
            raise InvalidInput(
                "Nothing was handed in: there are no files.", accepted="Files.", field="files"
            )
        made = self.store.submit(
            NewSubmission(
                course=course,
                assignment=name,
                person=who.name,
                at=at,
                files=store_bundle(self.blobs, parcel),
                version=min(body.version, assignment.version),
            )
        )
        with self.commands.store.together():
            book = SubmissionReceipts.read(self.store, assignment, self.moved_in(course), who.name)
        return next(r for r in book.receipts(place.member) if r.number == made.number)

    # -- looking --------------------------------------------------------------------------

    def receipts(self, who: Identity, course: str, name: str, *, person: str = "") -> ReceiptsOut:
        """One's own, or as a teacher or grader those of one person or of everybody."""
        place = self.place(who, course)
        assignment = self.assignment(place, name)
        if place.role is CourseRole.STUDENT:
            if person not in {"", who.name}:
                raise Forbidden("Receipts are for whoever handed in.", accepted="Your own.")
            person = who.name
        book = SubmissionReceipts.read(
            self.store, assignment, self.moved_in(course), person or None
        )
        members = map(self.called(course), book.people)
        return ReceiptsOut(receipts=[each for m in members for each in book.receipts(m)])

    def handed_in(self, who: Identity, submission_id: int) -> HandedInOut:
        """The files of a submission, for its student and for those who grade it."""
        found = self.submission(who, submission_id)
        return HandedInOut(
            id=found.id,
            course=found.course,
            assignment=found.assignment,
            person=found.person,
            number=found.number,
            at=found.at,
            sha256=found.files.sha256,
            files=[content_out(self.blobs, file) for file in found.files.files],
        )

    def choose(self, who: Identity, submission_id: int, *, counts: bool) -> ReceiptOut:
        """A teacher lets a submission count whatever the clock said, or not any more."""
        found = self.store.submission(submission_id)
        place = self.place(who, found.course, TAUGHT_BY)
        check_open(place.course)
        target = f"{found.course}/{found.assignment}"
        after = {"person": found.person, "number": found.number if counts else None}
        change = self.change(who, AuditAction.SUBMISSION_CHOOSE, target, after=after)
        self.store.choose(found, counts=counts, change=change)
        shown = self.receipts(who, found.course, found.assignment, person=found.person)
        return next(each for each in shown.receipts if each.number == found.number)

    def assignments(self, who: Identity, course: str) -> AssignmentsOut:
        place = self.place(who, course)
        return AssignmentsOut(assignments=self._assignments(place))

    def my_assignments(self, who: Identity) -> list[AssignmentOut] | None:
        """Of all courses in which somebody is a student; what is due next comes first.

        None for who is a student nowhere.
        """
        places = [
            place
            for place in self.places(who)
            if place.role is CourseRole.STUDENT and place.course.archived_at is None
        ]
        if not places:
            return None
        found = [each for place in places for each in self._assignments(place)]
        never = float("inf")
        return sorted(found, key=lambda a: (a.state == "closed", a.due or never, a.course, a.name))

    # -- within ---------------------------------------------------------------------------

    def _assignments(self, place: CourseMembership) -> list[AssignmentOut]:
        name, member = place.course.name, place.member
        found = self.store.assignments(name)
        moved = self.moved_in(name)
        if place.role is not CourseRole.STUDENT:
            sent, fetched = self.store.submissions(name), self.store.fetched(name)
            return [self._of_class(each, moved, sent, fetched) for each in found]
        # All of the course at once: a desk asks for every assignment.
        sent = self.store.submissions(name, person=member.person)
        fetched = self.store.fetched(name, person=member.person)
        given = self.store.feedback(name, person=member.person)
        versions = {each.assignment: each.version for each in fetched}
        return [
            self._of_student(member, each, self._book(each, sent, moved), versions, given)
            for each in found
            if each.open
        ]

    def _book(
        self, assignment: Assignment, sent: Iterable[Submission], moved: DeadlineShifts
    ) -> SubmissionReceipts:
        theirs = tuple(each for each in sent if each.assignment == assignment.name)
        return SubmissionReceipts.of(self.store, assignment, moved, theirs)

    def _of_student(
        self,
        member: Member,
        assignment: Assignment,
        book: SubmissionReceipts,
        versions: Mapping[str, int],
        given: Mapping[int, Feedback],
    ) -> AssignmentOut:
        receipts = book.receipts(member)
        version = versions.get(assignment.name, 0)
        extended = book.moved.of(assignment, member)
        shown = self._shown(assignment, member, book.moved)
        return shown.model_copy(
            update={
                "extension": f"{units.duration(extended)} more" if extended else "",
                "state": self._state(shown, receipts, version),
                "fetched_version": version,
                "receipts": receipts,
                "now": deadline_rules.now_sentence(
                    self.commands.clock(), shown.due, assignment.late
                ),
                **self._points(given[r.id] for r in receipts if r.id in given),
            }
        )

    def _points(self, given: Iterable[Feedback]) -> dict[str, float | bool | None]:
        feedback = newest(given)
        if feedback is None:
            return {}
        grade = self.released_grade(feedback)
        if grade is None:
            return {"feedback": True}
        return {"feedback": True, "score": grade.score, "max_score": grade.max_score}

    def _state(self, shown: AssignmentOut, receipts: Collection[ReceiptOut], version: int) -> str:
        if receipts:
            return "submitted"
        if shown.closes_at is not None and self.commands.clock() > shown.closes_at:
            return "closed"
        return "fetched" if version else "open"

    def _of_class(
        self,
        assignment: Assignment,
        moved: DeadlineShifts,
        sent: Collection[Submission],
        fetched: Collection[Fetched],
    ) -> AssignmentOut:
        nobody, name = Member(course=assignment.course, person=""), assignment.name
        people = {each.id: each.person for each in sent if each.assignment == name}
        verdicts = self.store.verdicts(assignment.course, name) if people else ()
        graded = {each.submission for each in verdicts if not each.why_not}
        return self._shown(assignment, nobody, moved).model_copy(
            update={
                "state": "open" if assignment.open else "not released",
                "fetched": sum(each.assignment == name for each in fetched),
                "submitted": len(set(people.values())),
                "graded": len({people[number] for number in graded if number in people}),
            }
        )

    def _shown(
        self, assignment: Assignment, member: Member, moved: DeadlineShifts
    ) -> AssignmentOut:
        until = moved.due(assignment, member)
        last = assignment.late.steps[-1].seconds if assignment.late.steps else 0
        return AssignmentOut(
            course=assignment.course,
            name=assignment.name,
            due=until,
            class_due=assignment.due,
            zone=assignment.zone,
            late=deadline_rules.late_text(assignment.late),
            late_rule=deadline_rules.late_sentence(assignment.late),
            state="open",
            closes_at=None if until is None else until + last,
            version=assignment.version,
            devices=assignment.devices,
            seconds=assignment.seconds,
        )
