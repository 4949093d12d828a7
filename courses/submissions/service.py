"""Store submissions, show receipts and files, and choose which submission counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...hub.attempts.notebook_format import read_notebook
from ...hub.errors import Conflict, Forbidden, InvalidInput
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity
from ...hub.schemas.courses import HandedInOut, ReceiptOut, ReceiptsOut, SubmitIn
from ..deadlines.shifts import DeadlineShifts
from ..files.bundle import FileBundle
from ..files.transfer import bundle_of_body, content_out, store_bundle
from ..model.interfaces import Blobs
from ..model.records import CourseRole, NewSubmission
from ..roster.access import TEACHERS, CourseAccess, check_not_archived
from ..roster.class_list import ClassList
from .receipts import NOTEBOOK, SubmissionReceipts


@dataclass(frozen=True, slots=True)
class SubmissionService:
    """Submissions of students, and which of them counts."""

    access: CourseAccess
    class_list: ClassList
    blobs: Blobs

    def submit(self, who: Identity, course: str, name: str, body: SubmitIn) -> ReceiptOut:
        """Store a submission, all of it or nothing; the same files again give the same receipt.

        Submissions that are too late to count are stored as well: a teacher may let them count.

        Raises:
            Forbidden: the user is not a student of the course.
            NotFound: it is not released.
            InvalidInput, TooLarge: of the files; nothing is stored then.
            Conflict: a released notebook is missing, and ``incomplete`` is not set.
            Unavailable: it could not be stored.
        """
        context, store = self.access.context, self.access.store
        at = context.clock()
        with context.store.together():
            membership = self.access.submitter(who, course)
            assignment = self.access.assignment(membership, name)
        bundle = bundle_of_body(body)
        if bundle is None:
            raise InvalidInput(
                "Nothing was submitted: there are no files.", accepted="Files.", field="files"
            )
        last = store.submissions(course, name, who.name)[-1:]
        repeated = any(each.files.sha256 == bundle.sha256 for each in last)
        if assignment.version and not body.incomplete and not repeated:
            released = store.released_version(course, name)
            _check_complete(bundle, [file.name for file in released.files.files])
        made = store.submit(
            NewSubmission(
                course=course,
                assignment=name,
                person=who.name,
                at=at,
                files=store_bundle(self.blobs, bundle),
                version=min(body.version, assignment.version),
            )
        )
        with context.store.together():
            shifts = DeadlineShifts.read(store, course)
            found = SubmissionReceipts.read(store, assignment, shifts, who.name)
        receipts = found.receipts(membership.member)
        return next(each for each in receipts if each.number == made.number)

    def receipts(self, who: Identity, course: str, name: str, *, person: str = "") -> ReceiptsOut:
        """A student's own receipts; for teachers and graders those of one or of all students."""
        membership, store = self.access.membership(who, course), self.access.store
        assignment = self.access.assignment(membership, name)
        if membership.role is CourseRole.STUDENT:
            if person not in {"", who.name}:
                raise Forbidden(
                    "Students see only their own receipts.", accepted="Your own receipts."
                )
            person = who.name
        shifts = DeadlineShifts.read(store, course)
        found = SubmissionReceipts.read(store, assignment, shifts, person or None)
        members = map(self.class_list.lookup(course), found.people)
        return ReceiptsOut(receipts=[each for m in members for each in found.receipts(m)])

    def files(self, who: Identity, submission_id: int) -> HandedInOut:
        """The files of a submission, for its student and its graders."""
        found = self.access.submission(who, submission_id)
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
        """Let a submission count whatever its time, or withdraw that choice. For teachers."""
        found = self.access.store.submission(submission_id)
        membership = self.access.membership(who, found.course, TEACHERS)
        check_not_archived(membership.course)
        target = f"{found.course}/{found.assignment}"
        after = {"person": found.person, "number": found.number if counts else None}
        change = self.access.audit_entry(who, AuditAction.SUBMISSION_CHOOSE, target, after=after)
        self.access.store.choose(found, counts=counts, change=change)
        shown = self.receipts(who, found.course, found.assignment, person=found.person)
        return next(each for each in shown.receipts if each.number == found.number)


def _check_complete(bundle: FileBundle, released: Iterable[str]) -> None:
    """Refuse files that lack a notebook, so that they do not replace better ones by mistake."""
    wanted = [name for name in released if name.endswith(NOTEBOOK)]
    problems = [f"{name} is missing" for name in wanted if name not in bundle.files]
    problems += [
        f"{name} cannot be read as a notebook"
        for name in wanted
        if name in bundle.files and not _can_be_graded(name, bundle.files[name])
    ]
    if problems:
        raise Conflict(
            f"Nothing was submitted: {', '.join(problems)}.",
            accepted="All notebooks of the assignment, under their names; or confirm that you "
            "submit without them. It would be graded instead of what you submitted before.",
            field="incomplete",
        )


def _can_be_graded(name: str, data: bytes) -> bool:
    try:
        read_notebook(name, data)
    except InvalidInput:
        return False
    return True
