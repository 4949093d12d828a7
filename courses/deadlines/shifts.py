"""What moves a due date: extensions and outages; and the penalty for late work."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.records import Assignment, Extension, Member, Outage, Submission
from . import rules as deadline_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlineShifts:
    """What moves due times in one course."""

    extensions: tuple[Extension, ...]
    outages: tuple[Outage, ...]

    def due(self, assignment: Assignment, member: Member) -> float | None:
        return deadline_rules.due_for(assignment, member, self.extensions, self.outages)

    def of(self, assignment: Assignment, member: Member) -> int:
        """Seconds that somebody has been given."""
        return sum(
            each.seconds
            for each in deadline_rules.extensions_of(assignment, member, self.extensions)
        )


def late_penalty(
    assignment: Assignment, moved: DeadlineShifts, member: Member, sent: Submission
) -> float:
    """Of what is graded; a teacher who lets count what came too late takes nothing off."""
    late = deadline_rules.lateness(sent.at, moved.due(assignment, member), assignment.late)
    return 0.0 if late.standing is deadline_rules.LatenessState.TOO_LATE else late.penalty
