"""The desk of courses in the words of ngshare's REST API.

Two things are meant otherwise here: to strangers a course does not exist, and nothing is ever
deleted, so that deleting an assignment withdraws it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...hub.errors import Conflict, Forbidden, NotFound
from ...hub.records.identity import Identity
from ...hub.schemas.courses import ParcelIn, ReceiptOut, ReleaseIn, SubmitIn
from ...hub.schemas.ngshare import SentOut, TakenOut, TreeOut, WhoOut
from ..files.transfer import bundle_of_body, content_out
from ..model.records import Assignment, CourseRole
from ..roster.access import CourseMembership
from ..services import CourseServices
from ..store.not_found import no_assignment
from .forms import NgshareForm, read_stamp, said, sent_files, stamp, tree

_DENIED = "Permission denied (not course instructor)"


@dataclass(frozen=True, slots=True)
class NgshareService:
    """Plain blocking functions with the rights of ``CourseServices``."""

    desk: CourseServices

    # -- courses and people ---------------------------------------------------------------

    def courses(self, who: Identity) -> list[str]:
        return [place.course.name for place in self.desk.places(who)]

    def instructors(self, who: Identity, course: str) -> list[WhoOut]:
        place = self._place(who, course)
        return [WhoOut(username=name) for name in self.desk.show(who, place.course.name).teachers]

    def students(self, who: Identity, course: str) -> list[WhoOut]:
        self._place(who, course)
        with said(_DENIED, Forbidden):
            found = self.desk.members(who, course).members
        return [
            _named(member.person, member.full_name)
            for member in found
            if member.role == CourseRole.STUDENT and member.left_at is None
        ]

    def student(self, who: Identity, course: str, name: str) -> WhoOut:
        """Oneself, or as a teacher or grader anybody."""
        place = self._place(who, course)
        if place.role is CourseRole.STUDENT and name == who.name:
            return _named(name, place.member.full_name)
        return _one(self.students(who, course), name, "Student")

    def instructor(self, who: Identity, course: str, name: str) -> WhoOut:
        return _one(self.instructors(who, course), name, "Instructor")

    # -- assignments ----------------------------------------------------------------------

    def assignments(self, who: Identity, course: str) -> list[str]:
        """Those that are released."""
        self._place(who, course)
        found = self.desk.assignments(who, course).assignments
        return [each.name for each in found if each.state != "not released"]

    def fetch(self, who: Identity, course: str, name: str, *, list_only: bool) -> TreeOut:
        """The hand-out; only a fetch of its contents is kept as one."""
        self._assignment(who, course, name)
        if list_only:
            files = self.desk.store.hand_out(course, name).files.files
            found = [content_out(self.desk.blobs, file) for file in files]
        else:
            found = self.desk.hand_out(who, course, name).files
        return tree(found, list_only=list_only)

    def release(
        self, who: Identity, course: str, name: str, form: NgshareForm, *, force: bool = False
    ) -> None:
        """Hand out what the teacher's own nbgrader has made."""
        place = self._place(who, course)
        known = {each.name: each for each in self.desk.store.assignments(place.course.name)}
        with said(_DENIED, Forbidden):
            self.desk.place(who, course, (CourseRole.TEACHER,))
        if name in known and known[name].open and not force:
            raise Conflict(
                f"Assignment already exists. {name} of {course} is released.",
                accepted="Release it again by force, or withdraw it first.",
            )
        stripped = bundle_of_body(ParcelIn(files=sent_files(form.files)))
        assert stripped is not None, "no files were refused"
        body = ReleaseIn(files=sent_files(form.source) if form.source else [], due=form.due)
        self.desk.release(who, course, name, body, stripped=stripped)

    def withdraw(self, who: Identity, course: str, name: str) -> None:
        self._assignment(who, course, name)
        with said(_DENIED, Forbidden):
            self.desk.withdraw(who, course, name)

    # -- submissions ----------------------------------------------------------------------

    def submit(self, who: Identity, course: str, name: str, form: NgshareForm) -> TakenOut:
        self._assignment(who, course, name)
        body = SubmitIn(files=sent_files(form.files), version=form.answered_version())
        receipt = self.desk.submit(who, course, name, body)
        return TakenOut(
            timestamp=stamp(receipt.at), sha256=receipt.sha256, sentence=receipt.sentence
        )

    def submissions(
        self, who: Identity, course: str, name: str, student: str | None = None
    ) -> list[SentOut]:
        """Of everybody for those who grade, or of one student; the first one first."""
        place = self._assignment(who, course, name)
        if student is None and place.role is CourseRole.STUDENT:
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
        """The files of a submission; of the last one where no time is named."""
        found = self._submission(who, course, name, student, timestamp)
        files = self.desk.handed_in(who, found.id).files
        return tree(files, list_only=list_only, timestamp=stamp(found.at))

    # -- feedback -------------------------------------------------------------------------

    def give_back(
        self, who: Identity, course: str, name: str, student: str, form: NgshareForm
    ) -> None:
        found = self._submission(who, course, name, student, form.wanted_timestamp())
        with said(_DENIED, Forbidden):
            self.desk.give_back(who, found.id, ParcelIn(files=sent_files(form.files)))

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
        """What was given back on a submission; no files where nothing was yet."""
        found = self._submission(who, course, name, student, form.wanted_timestamp())
        files = self.desk.feedback(who, found.id)
        return tree(files, list_only=list_only, timestamp=stamp(found.at))

    # -- within ---------------------------------------------------------------------------

    def _place(self, who: Identity, course: str) -> CourseMembership:
        with said("Course not found", NotFound):
            return self.desk.place(who, course)

    def _assignment(self, who: Identity, course: str, name: str) -> CourseMembership:
        """One that is released; also teachers have no other in an exchange."""
        place = self._place(who, course)
        with said("Assignment not found", NotFound):
            found: Assignment = self.desk.assignment(place, name)
            if not found.open:
                raise no_assignment(course, name)
        return place

    def _receipts(
        self, who: Identity, course: str, name: str, student: str | None
    ) -> list[ReceiptOut]:
        with said(_DENIED, Forbidden):
            found = self.desk.receipts(who, course, name, person=student or "").receipts
        if student is not None and student != who.name and not found:
            with said("Student not found", NotFound):
                self.desk.member_of(course, student)
        return found

    def _submission(
        self, who: Identity, course: str, name: str, student: str, timestamp: str
    ) -> ReceiptOut:
        self._assignment(who, course, name)
        wanted = read_stamp(timestamp) if timestamp else ""
        found = self._receipts(who, course, name, student)
        same = [each for each in found if wanted in ("", stamp(each.at))]
        if not same:
            raise NotFound(
                f"Submission not found. {student[:80]} has handed in nothing at that time.",
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
    raise NotFound(f"{kind} not found. Nobody here is called {name[:80]!r}.")
