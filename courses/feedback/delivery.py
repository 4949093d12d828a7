"""What students get back: feedback on a submission, for its student and for those who grade."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ValidationError

from ...hub.errors import Forbidden, InvalidInput
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity
from ...hub.schemas.courses import ContentOut, ParcelIn
from ...hub.schemas.grading import GradeOut, MyGradeOut
from ..files.bundle import FileBundle
from ..files.transfer import bundle_of_body, content_out, contents, store_bundle
from ..model.records import CourseRole, Feedback, Submission
from ..roster.access import GRADED_BY, CourseAccess, check_open

GRADE = ".grade.json"
"""Beside the pages: the points as they were when they were given back. Not one of the files."""


class FeedbackDelivery(CourseAccess):
    """The part of ``CourseDesk`` about what goes back."""

    __slots__ = ()

    def give_back(self, who: Identity, submission_id: int, body: ParcelIn) -> None:
        """The student sees it from now on; what was given back for the same before is gone.

        Raises:
            Forbidden: for students.
            InvalidInput, TooLarge: of the files; nothing is stored then.
        """
        found = self.store.submission(submission_id)
        check_open(self.place(who, found.course, GRADED_BY).course)
        parcel = bundle_of_body(body)
        if parcel is None:
            raise InvalidInput("There is no feedback in it.", accepted="Files.", field="files")
        self.deliver(who, found, parcel)

    def deliver(self, who: Identity, sent: Submission, parcel: FileBundle) -> None:
        """Whose submission it is, and whether who does it may, was asked before."""
        feedback = Feedback(
            submission=sent.id,
            files=store_bundle(self.blobs, parcel),
            released_at=self.commands.clock(),
            released_by=who.name,
        )
        change = self.change(
            *(who, AuditAction.FEEDBACK_RELEASE, f"{sent.course}/{sent.assignment}"),
            after={"person": sent.person, "number": sent.number},
        )
        self.store.give_back(feedback, change=change)

    def feedback(self, who: Identity, submission_id: int) -> list[ContentOut]:
        """Its files; none where nothing was given back yet."""
        found = self.submission(who, submission_id)
        given = self.store.feedback(found.course, found.assignment, found.person).get(found.id)
        files = () if given is None else given.files.files
        return [content_out(self.blobs, file) for file in files if file.name != GRADE]


_NOT_YET = "Your teacher has not released feedback yet."


_IN_PAGES = "Your points stand in the feedback."


class OwnGrades(FeedbackDelivery):
    """The part of ``CourseDesk`` about one's own grades."""

    __slots__ = ()

    def my_grade(self, who: Identity, course: str, name: str) -> MyGradeOut:
        """Of the newest submission on which there is feedback.

        Raises:
            Forbidden: for those who are no students of the course.
        """
        place = self.place(who, course)
        if place.role is not CourseRole.STUDENT:
            raise Forbidden(
                f"You are a {place.role} of {course}, and have no grade there.",
                accepted=f"What the class has: carrel course grades {name}",
            )
        assignment = self.assignment(place, name)
        feedback = newest(self.store.feedback(course, assignment.name, who.name).values())
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
        """None where a teacher's own nbgrader made the feedback."""
        kept = [file for file in feedback.files.files if file.name == GRADE]
        try:
            return GradeOut.model_validate_json(contents(self.blobs, kept)[GRADE])
        except (KeyError, ValidationError):
            return None


def newest(given: Iterable[Feedback]) -> Feedback | None:
    """What was given back last."""
    return max(given, key=lambda each: each.released_at, default=None)
