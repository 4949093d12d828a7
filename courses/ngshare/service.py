"""Offer the services of courses by ngshare's REST API.

It differs in two points: courses exist only for their members, and nothing is deleted, so that
deleting an assignment withdraws it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...hub.errors import Conflict, Forbidden, NotFound
from ...hub.records.identity import Identity
from ...hub.schemas.courses import BundleIn, ReceiptOut, ReleaseIn, SubmitIn
from ...hub.schemas.ngshare import SentOut, TakenOut, TreeOut, WhoOut
from ..files.transfer import bundle_of_body, content_out
from ..model.records import CourseRole
from ..roster.access import TEACHERS, CourseMembership
from ..services import CourseServices
from ..store.not_found import no_assignment
from .forms import NgshareForm, read_stamp, said, sent_files, stamp, tree

_DENIED = "Permission denied (not course instructor)"


@dataclass(frozen=True, slots=True)
class NgshareService:
    """Blocking functions with the rights of ``CourseServices``."""

    services: CourseServices

    # -- courses and people ---------------------------------------------------------------

    def courses(self, who: Identity) -> list[str]:
        return [each.course.name for each in self.services.access.memberships(who)]

    def instructors(self, who: Identity, course: str) -> list[WhoOut]:
        self._membership(who, course)
        shown = self.services.administration.show(who, course)
        return [WhoOut(username=name) for name in shown.teachers]

    def students(self, who: Identity, course: str) -> list[WhoOut]:
        self._membership(who, course)
        with said(_DENIED, Forbidden):
            found = self.services.roster.listed(who, course)
        return [
            _named(member.person, member.full_name)
            for member in found
            if member.role == CourseRole.STUDENT and member.left_at is None
        ]

    def student(self, who: Identity, course: str, name: str) -> WhoOut:
        """A student; students see only themselves."""
        membership = self._membership(who, course)
        if membership.role is CourseRole.STUDENT and name == who.name:
            return _named(name, membership.member.full_name)
        return _one(self.students(who, course), name, "Student")

    def instructor(self, who: Identity, course: str, name: str) -> WhoOut:
        return _one(self.instructors(who, course), name, "Instructor")

    # -- assignments ----------------------------------------------------------------------

    def assignments(self, who: Identity, course: str) -> list[str]:
        """The released assignments."""
        self._membership(who, course)
        found = self.services.overview.assignments(who, course).assignments
        return [each.name for each in found if each.state != "not released"]

    def fetch(self, who: Identity, course: str, name: str, *, list_only: bool) -> TreeOut:
        """The files of the newest version; listing them is not stored as a fetch."""
        self._assignment(who, course, name)
        if list_only:
            files = self.services.access.store.released_version(course, name).files.files
            found = [content_out(self.services.assignments.blobs, file) for file in files]
        else:
            found = self.services.assignments.fetch(who, course, name).files
        return tree(found, list_only=list_only)

    def release(
        self, who: Identity, course: str, name: str, form: NgshareForm, *, force: bool = False
    ) -> None:
        """Release files that the teacher's own nbgrader has made."""
        self._membership(who, course)
        known = {each.name: each for each in self.services.access.store.assignments(course)}
        with said(_DENIED, Forbidden):
            self.services.access.membership(who, course, TEACHERS)
        if name in known and known[name].open and not force:
            raise Conflict(
                f"Assignment already exists. {name} of {course} is released.",
                accepted="Release it again by force, or withdraw it first.",
            )
        stripped = bundle_of_body(BundleIn(files=sent_files(form.files)))
        assert stripped is not None, "sent_files refuses an empty list"
        body = ReleaseIn(files=sent_files(form.source) if form.source else [], due=form.due)
        self.services.assignments.release(who, course, name, body, stripped=stripped)

    def withdraw(self, who: Identity, course: str, name: str) -> None:
        self._assignment(who, course, name)
        with said(_DENIED, Forbidden):
            self.services.assignments.withdraw(who, course, name)

    # -- submissions ----------------------------------------------------------------------

    def submit(self, who: Identity, course: str, name: str, form: NgshareForm) -> TakenOut:
        self._assignment(who, course, name)
        # nbgrader's clients cannot ask: one that lacks notebooks replaces no complete one.
        complete = [
            each for each in self._receipts(who, course, name, who.name) if not each.missing
        ]
        body = SubmitIn(
            files=sent_files(form.files),
            version=form.answered_version(),
            incomplete=not complete,
        )
        receipt = self.services.submissions.submit(who, course, name, body)
        return TakenOut(
            timestamp=stamp(receipt.at), sha256=receipt.sha256, sentence=receipt.sentence
        )

    def submissions(
        self, who: Identity, course: str, name: str, student: str | None = None
    ) -> list[SentOut]:
        """The submissions of all students (for graders) or of one, oldest first."""
        membership = self._assignment(who, course, name)
        if student is None and membership.role is CourseRole.STUDENT:
            raise Forbidden(f"{_DENIED}. You see your own.", accepted=f"…/{who.name}")
        return [
            SentOut(
                student_id=each.person,
                timestamp=stamp(each.at),
                counts=each.counts,
                standing=each.standing,
                sentence=each.sentence,
            )
            for each in self._receipts(who, course, name, student)
        ]

    def collect(
        self,
        who: Identity,
        course: str,
        name: str,
        student: str,
        *,
        timestamp: str = "",
        list_only: bool = False,
    ) -> TreeOut:
        """The files of a submission; without a time those of the last one."""
        found = self._submission(who, course, name, student, timestamp)
        files = self.services.submissions.files(who, found.id).files
        return tree(files, list_only=list_only, timestamp=stamp(found.at))

    # -- feedback -------------------------------------------------------------------------

    def upload_feedback(
        self, who: Identity, course: str, name: str, student: str, form: NgshareForm
    ) -> None:
        found = self._submission(who, course, name, student, form.wanted_timestamp())
        with said(_DENIED, Forbidden):
            self.services.delivery.deliver_files(
                who, found.id, BundleIn(files=sent_files(form.files))
            )

    def feedback(
        self,
        who: Identity,
        course: str,
        name: str,
        student: str,
        form: NgshareForm,
        *,
        list_only: bool = False,
    ) -> TreeOut:
        """The feedback on a submission; no files before it is released."""
        found = self._submission(who, course, name, student, form.wanted_timestamp())
        files = self.services.delivery.files(who, found.id)
        return tree(files, list_only=list_only, timestamp=stamp(found.at))

    # -- internal -------------------------------------------------------------------------

    def _membership(self, who: Identity, course: str) -> CourseMembership:
        with said("Course not found", NotFound):
            return self.services.access.membership(who, course)

    def _assignment(self, who: Identity, course: str, name: str) -> CourseMembership:
        """The user's membership; raises NotFound where the assignment is not released."""
        membership = self._membership(who, course)
        with said("Assignment not found", NotFound):
            if not self.services.access.assignment(membership, name).open:
                raise no_assignment(course, name)
        return membership

    def _receipts(
        self, who: Identity, course: str, name: str, student: str | None
    ) -> list[ReceiptOut]:
        with said(_DENIED, Forbidden):
            shown = self.services.submissions.receipts(who, course, name, person=student or "")
        if student is not None and student != who.name and not shown.receipts:
            with said("Student not found", NotFound):
                self.services.class_list.member(course, student)
        return shown.receipts

    def _submission(
        self, who: Identity, course: str, name: str, student: str, timestamp: str
    ) -> ReceiptOut:
        self._assignment(who, course, name)
        wanted = read_stamp(timestamp) if timestamp else ""
        found = self._receipts(who, course, name, student)
        same = [each for each in found if wanted in ("", stamp(each.at))]
        if not same:
            raise NotFound(
                f"Submission not found. {student[:80]} has no submission of that time.",
                accepted=f"Times: {', '.join(stamp(each.at) for each in found[-3:]) or 'none'}.",
            )
        return same[-1]


def _named(username: str, full_name: str) -> WhoOut:
    first, _, last = full_name.rpartition(" ")
    return WhoOut(username=username, first_name=first or None, last_name=last or None)


def _one(people: Iterable[WhoOut], name: str, kind: str) -> WhoOut:
    for each in people:
        if each.username == name:
            return each
    raise NotFound(f"{kind} not found. {name[:80]!r} is not in this course.")
