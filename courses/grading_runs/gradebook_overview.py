"""The gradebook of a whole course: the points of all students in all assignments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...hub.records.identity import Identity
from ...hub.schemas.grading import (
    CourseGradebookOut,
    GradebookAssignmentOut,
    GradebookRowOut,
    GradebookScoreOut,
    GradeOut,
)
from ..roster.class_list import ClassList
from .service import GradingService


@dataclass(frozen=True, slots=True)
class GradebookOverview:
    """Points across assignments, for teachers and graders."""

    class_list: ClassList
    grading: GradingService

    def table(self, who: Identity, course: str) -> CourseGradebookOut:
        """The points of all current students in all released assignments, by name.

        Raises:
            Forbidden: the user is a student.
        """
        found = self.grading.grades_by_assignment(who, course)
        scores = [_scores(grades) for grades in found.values()]
        rows = [
            GradebookRowOut(
                person=member.person,
                full_name=member.full_name,
                section=member.section,
                scores=[each.get(member.person, GradebookScoreOut()) for each in scores],
            )
            for member in self.class_list.students(course)
        ]
        assignments = [
            GradebookAssignmentOut(
                name=name,
                max_score=max((each.max_score for each in grades if each.graded), default=None),
            )
            for name, grades in found.items()
        ]
        return CourseGradebookOut(course=course, assignments=assignments, rows=rows)


def _scores(grades: Iterable[GradeOut]) -> dict[str, GradebookScoreOut]:
    return {
        each.person: GradebookScoreOut(
            score=each.score if each.graded else None,
            submitted=True,
            provisional=each.provisional > 0 and each.graded,
        )
        for each in grades
    }
