"""Deliver feedback on submissions to students, with the points of that moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError

from ...hub.errors import Forbidden, InvalidInput
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity
from ...hub.schemas.courses import BundleIn, ContentOut
from ...hub.schemas.grading import GradeOut, MyGradeOut
from ..files.bundle import FileBundle
from ..files.transfer import bundle_of_body, content_out, contents, store_bundle
from ..model.interfaces import Blobs
from ..model.records import CourseRole, Feedback, Submission
from ..roster.access import GRADERS, CourseAccess, check_not_archived

GRADE = ".grade.json"
"""The points as they were released, stored beside the pages. Not listed as one of the files."""
_NOT_YET = "Your teacher has not released feedback yet."
_IN_PAGES = "Your points are in the feedback."


@dataclass(frozen=True, slots=True)
class FeedbackDelivery:
    """Feedback that was released, for its student and for graders."""

    access: CourseAccess
    blobs: Blobs

    def deliver_files(self, who: Identity, submission_id: int, body: BundleIn) -> None:
        """Release files as the feedback on a submission, in place of earlier feedback on it.

        Raises:
            Forbidden: the user is a student.
            InvalidInput, TooLarge: of the files; nothing is stored then.
        """
        found = self.access.store.submission(submission_id)
        check_not_archived(self.access.membership(who, found.course, GRADERS).course)
        bundle = bundle_of_body(body)
        if bundle is None:
            raise InvalidInput("There is no feedback in it.", accepted="Files.", field="files")
        self.deliver(who, found, bundle)

    def deliver(self, who: Identity, submission: Submission, bundle: FileBundle) -> None:
        """Store feedback. The caller has checked that the user may do it."""
        feedback = Feedback(
            submission=submission.id,
            files=store_bundle(self.blobs, bundle),
            released_at=self.access.context.clock(),
            released_by=who.name,
        )
        target = f"{submission.course}/{submission.assignment}"
        change = self.access.audit_entry(
            *(who, AuditAction.FEEDBACK_RELEASE, target),
            after={"person": submission.person, "number": submission.number},
        )
        self.access.store.put_feedback(feedback, change=change)

    def files(self, who: Identity, submission_id: int) -> list[ContentOut]:
        """The files of the feedback on a submission; none before it is released."""
        found = self.access.submission(who, submission_id)
        feedback = self.access.store.feedback(found.course, found.assignment, found.person)
        released = feedback.get(found.id)
        files = () if released is None else released.files.files
        return [content_out(self.blobs, file) for file in files if file.name != GRADE]

    def own_grade(self, who: Identity, course: str, name: str) -> MyGradeOut:
        """A student's own points, from the newest feedback.

        Raises:
            Forbidden: the user is not a student of the course.
        """
        membership = self.access.membership(who, course)
        if membership.role is not CourseRole.STUDENT:
            raise Forbidden(
                f"You are a {membership.role} of {course}, and have no grade there.",
                accepted=f"What the class has: carrel course grades {name}",
            )
        assignment = self.access.assignment(membership, name)
        released = self.access.store.feedback(course, assignment.name, who.name)
        feedback = newest(released.values())
        if feedback is None:
            return MyGradeOut(course=course, assignment=name, sentence=_NOT_YET)
        grade = self.released_grade(feedback)
        return MyGradeOut(
            course=course,
            assignment=name,
            submission=feedback.submission,
            released_at=feedback.released_at,
            grade=grade,
            pages=[file.name for file in feedback.files.files if file.name.endswith(".html")],
            sentence="" if grade else _IN_PAGES,
        )

    def released_grade(self, feedback: Feedback) -> GradeOut | None:
        """The points in feedback; None where a teacher's own nbgrader made it."""
        found = [file for file in feedback.files.files if file.name == GRADE]
        try:
            return GradeOut.model_validate_json(contents(self.blobs, found)[GRADE])
        except (KeyError, ValidationError):
            return None


def newest(feedback: Iterable[Feedback]) -> Feedback | None:
    """The feedback that was released last."""
    return max(feedback, key=lambda each: each.released_at, default=None)
