"""What a student has in points: as their teacher released it with the feedback, and nothing newer.

The grade lies beside the pages of the feedback, as it was when that was given back. What a regrade
changes is seen once feedback is released again.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ValidationError

from ..hub.errors import Forbidden
from ..hub.interfaces.files import Identity
from ..hub.schemas.grading import GradeOut, MyGradeOut
from .feedback.delivery import GRADE, Returning
from .files.transfer import contents
from .model.records import Feedback, Role

_NOT_YET = "Your teacher has not released feedback yet."
_IN_PAGES = "Your points stand in the feedback."


class OwnGrades(Returning):
    """The part of ``CourseDesk`` about one's own grades."""

    __slots__ = ()

    def my_grade(self, who: Identity, course: str, name: str) -> MyGradeOut:
        """Of the newest submission on which there is feedback.

        Raises:
            Forbidden: for those who are no students of the course.
        """
        place = self.place(who, course)
        if place.role is not Role.STUDENT:
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
