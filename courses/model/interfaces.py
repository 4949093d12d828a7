"""What courses need of the world: a store for what is true, and a place for contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Protocol

from ...hub.records.audit import AuditEntry
from .records import (
    Assignment,
    Course,
    Extension,
    Feedback,
    Fetched,
    GradingRun,
    HandOut,
    Member,
    NewSubmission,
    Outage,
    Submission,
    SubmissionVerdict,
)


class CourseStore(Protocol):
    """Every method is one transaction; a ``change`` is written to the audit list in the same."""

    # -- courses and their people ---------------------------------------------------------

    def courses(self) -> tuple[Course, ...]:
        """All of them, by name."""

    def course(self, name: str) -> Course:
        """Raises NotFound."""

    def put_course(self, course: Course, *, change: AuditEntry | None = None) -> None:
        """Make or change one. Raises NotFound where there is no such group."""

    def members(self, course: str) -> tuple[Member, ...]:
        """By name, also those who have left."""

    def memberships(self, person: str) -> tuple[Member, ...]:
        """Of one person in every course, by course, also those that are over."""

    def put_members(
        self, course: str, members: Sequence[Member], *, change: AuditEntry | None = None
    ) -> None:
        """Add these, in place of what was known of the same people. Raises NotFound."""

    # -- assignments ----------------------------------------------------------------------

    def assignments(self, course: str) -> tuple[Assignment, ...]:
        """By name."""

    def assignment(self, course: str, name: str) -> Assignment:
        """Raises NotFound."""

    def put_assignment(self, assignment: Assignment, *, change: AuditEntry | None = None) -> None:
        """Make or change one; its version stays what the store has. Raises NotFound."""

    def release(
        self, assignment: Assignment, hand_out: HandOut, *, change: AuditEntry | None = None
    ) -> HandOut:
        """Change an assignment and hand out a version of it, in one step; it gets its number here.

        The same source and files as those of the newest version are that version.

        Raises:
            NotFound: there is no such course.
        """

    def hand_out(self, course: str, assignment: str, version: int | None = None) -> HandOut:
        """The newest where none is named. Raises NotFound."""

    def note_fetched(self, fetched: Fetched) -> None:
        """The latest of each person is kept."""

    def fetched(
        self, course: str, assignment: str | None = None, person: str | None = None
    ) -> tuple[Fetched, ...]:
        """By assignment and person."""

    # -- what comes in --------------------------------------------------------------------

    def submit(self, new: NewSubmission) -> Submission:
        """Keep one for good. The same content as in the student's last one is that one.

        Raises:
            NotFound: there is no such assignment.
        """

    def submissions(
        self, course: str, assignment: str | None = None, person: str | None = None
    ) -> tuple[Submission, ...]:
        """By assignment, person and number."""

    def submission(self, submission_id: int) -> Submission:
        """Raises NotFound."""

    def choose(
        self,
        submission: Submission,
        *,
        counts: bool,
        change: AuditEntry | None = None,
    ) -> None:
        """Let this one of its student's count whatever the clock said, or let it not any more."""

    def chosen(self, course: str, assignment: str) -> dict[str, int]:
        """The numbers that teachers chose, by person."""

    # -- grading --------------------------------------------------------------------------

    def add_run(self, run: GradingRun, *, change: AuditEntry | None = None) -> None:
        """Raises NotFound where there is no such assignment."""

    def runs(self, course: str, assignment: str) -> tuple[GradingRun, ...]:
        """In the order in which they were asked for."""

    def run(self, request: str) -> GradingRun:
        """Raises NotFound."""

    def add_verdict(self, verdict: SubmissionVerdict) -> bool:
        """Keep it for good; False where this run has one of the submission, which stays.

        Raises:
            NotFound: there is no such run, or it does not grade that submission.
        """

    def verdicts(self, course: str, assignment: str) -> tuple[SubmissionVerdict, ...]:
        """Of all runs, by their order and by submission."""

    # -- what goes back -------------------------------------------------------------------

    def give_back(self, feedback: Feedback, *, change: AuditEntry | None = None) -> None:
        """In place of what was given back before. Raises NotFound."""

    def feedback(
        self, course: str, assignment: str | None = None, person: str | None = None
    ) -> dict[int, Feedback]:
        """What was given back, by submission."""

    # -- more time ------------------------------------------------------------------------

    def extend(self, extension: Extension, *, change: AuditEntry | None = None) -> None:
        """Raises NotFound where there is no such assignment."""

    def take_time_back(
        self,
        course: str,
        assignment: str,
        *,
        person: str = "",
        section: str = "",
        change: AuditEntry | None = None,
    ) -> None:
        """Remove every extension of this person, or of this section."""

    def extensions(self, course: str) -> tuple[Extension, ...]:
        """In the order in which they were given."""

    def add_outage(self, outage: Outage, *, change: AuditEntry | None = None) -> None: ...

    def outages(self) -> tuple[Outage, ...]:
        """In the order in which they were recorded."""


class Blobs(Protocol):
    """Contents by their SHA-256. What was put is there for good, also after a loss of power."""

    def put(self, content: bytes) -> str:
        """Its SHA-256, in 64 hexadecimal digits."""

    def open(self, sha256: str) -> BinaryIO:
        """Raises NotFound."""
