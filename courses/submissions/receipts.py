"""Write receipts for submissions: on time or late, and which submission counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...hub.messages import units
from ...hub.schemas.courses import ReceiptOut
from ..deadlines import rules as deadline_rules
from ..deadlines.shifts import DeadlineShifts
from ..files.transfer import ref_out
from ..model.interfaces import CourseStore
from ..model.records import Assignment, Member, ReleasedVersion, Submission

NOTEBOOK = ".ipynb"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionReceipts:
    """The submissions of all students to one assignment, or those of one student.

    Attributes:
        by_person: the submissions of each student, oldest first.
        newest_version: the newest version; None before a release, and without any submission.
        chosen: numbers of the submissions that teachers chose, by student.
    """

    assignment: Assignment
    newest_version: ReleasedVersion | None
    by_person: Mapping[str, tuple[Submission, ...]]
    chosen: Mapping[str, int]
    shifts: DeadlineShifts

    @classmethod
    def read(
        cls,
        store: CourseStore,
        assignment: Assignment,
        shifts: DeadlineShifts,
        person: str | None = None,
    ) -> SubmissionReceipts:
        sent = store.submissions(assignment.course, assignment.name, person)
        return cls.of(store, assignment, shifts, sent)

    @classmethod
    def of(
        cls,
        store: CourseStore,
        assignment: Assignment,
        shifts: DeadlineShifts,
        sent: tuple[Submission, ...],
    ) -> SubmissionReceipts:
        """The receipts of these submissions; without any, nothing else is read."""
        course, name = assignment.course, assignment.name
        by_person: dict[str, tuple[Submission, ...]] = {}
        for each in sent:
            by_person[each.person] = (*by_person.get(each.person, ()), each)
        return cls(
            assignment=assignment,
            newest_version=store.released_version(course, name)
            if sent and assignment.version
            else None,
            by_person=by_person,
            chosen=store.chosen(course, name) if sent else {},
            shifts=shifts,
        )

    @property
    def people(self) -> tuple[str, ...]:
        return tuple(sorted(self.by_person))

    def counting(self, member: Member) -> Submission | None:
        """The student's submission that is graded."""
        sent = self.by_person.get(member.person, ())
        until = self.shifts.due(self.assignment, member)
        return deadline_rules.counting_submission(
            sent, until, self.assignment.late, self.chosen.get(member.person)
        )

    def receipts(self, member: Member) -> list[ReceiptOut]:
        """The receipts of one student, oldest first."""
        until, counts = self.shifts.due(self.assignment, member), self.counting(member)
        return [
            self._receipt(
                each, deadline_rules.lateness(each.at, until, self.assignment.late), counts
            )
            for each in self.by_person.get(member.person, ())
        ]

    def _receipt(
        self, sent: Submission, late: deadline_rules.Lateness, counts: Submission | None
    ) -> ReceiptOut:
        it_counts = counts is not None and counts.number == sent.number
        return ReceiptOut(
            id=sent.id,
            number=sent.number,
            course=sent.course,
            assignment=sent.assignment,
            person=sent.person,
            at=sent.at,
            sha256=sent.files.sha256,
            files=[ref_out(file) for file in sent.files.files],
            size=sent.files.size,
            standing=str(late.standing),
            penalty=late.penalty,
            counts=it_counts,
            sentence=_sentence(late, sent, counts),
            missing=self._missing(sent),
        )

    def _missing(self, sent: Submission) -> list[str]:
        names = {file.name for file in sent.files.files}
        wanted = () if self.newest_version is None else self.newest_version.files.files
        missing = (file.name for file in wanted if file.name not in names)
        return [name for name in missing if name.endswith(NOTEBOOK)]


def _sentence(late: deadline_rules.Lateness, sent: Submission, counts: Submission | None) -> str:
    standing = {
        deadline_rules.LatenessState.ON_TIME: "On time",
        deadline_rules.LatenessState.LATE: (
            f"{units.duration(late.seconds)} late, which costs {late.penalty * 100:g} % of the "
            "points"
        ),
        deadline_rules.LatenessState.TOO_LATE: (
            f"{units.duration(late.seconds)} late, too late to count"
        ),
    }[late.standing]
    if counts is None:
        return f"{standing}; your teacher may still accept it."
    if counts.number == sent.number:
        return f"{standing}; this one is graded."
    return f"{standing}; submission {counts.number} is graded."
