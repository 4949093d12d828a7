"""Compute due dates and late penalties of one course, with its extensions and outages."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.interfaces import CourseStore
from ..model.records import Assignment, Extension, Member, Outage, Submission
from . import rules as deadline_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlineShifts:
    """What moves due dates in one course."""

    extensions: tuple[Extension, ...]
    outages: tuple[Outage, ...]

    @classmethod
    def read(cls, store: CourseStore, course: str) -> DeadlineShifts:
        return cls(extensions=store.extensions(course), outages=store.outages())

    def due(self, assignment: Assignment, member: Member) -> float | None:
        return deadline_rules.due_for(assignment, member, self.extensions, self.outages)

    def counts(self, assignment: Assignment, member: Member, at: float) -> bool:
        """Whether what a member submits at this time counts."""
        return deadline_rules.lateness(at, self.due(assignment, member), assignment.late).counts

    def extension(self, assignment: Assignment, member: Member) -> int:
        """Seconds of all extensions that a member has."""
        found = deadline_rules.extensions_of(assignment, member, self.extensions)
        return sum(each.seconds for each in found)


def late_penalty(
    assignment: Assignment, shifts: DeadlineShifts, member: Member, submission: Submission
) -> float:
    """The part of the points that lateness costs, from 0 to 1.

    A submission that is too late is graded only where a teacher chose it, and then costs nothing.
    """
    due = shifts.due(assignment, member)
    late = deadline_rules.lateness(submission.at, due, assignment.late)
    return 0.0 if late.standing is deadline_rules.LatenessState.TOO_LATE else late.penalty
