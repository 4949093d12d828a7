"""The protocols of the store of courses and of the blob store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO, Protocol

from ...hub.records.audit import AuditEntry
from .leaderboards import LeaderboardStore
from .official_checks import OfficialCheckStore
from .prefixes import PrefixStore
from .records import (
    Assignment,
    Course,
    Extension,
    Feedback,
    Fetched,
    GradingRun,
    Member,
    NewSubmission,
    Outage,
    RegradeRequest,
    ReleasedVersion,
    Submission,
    SubmissionVerdict,
)
from .rehearsals import RehearsalStore


class CourseStore(Protocol):
    """Stores courses. Each method is one transaction; ``change`` goes to the audit log.

    Attributes:
        prefixes, rehearsals, official_checks, leaderboards: of the same database.
    """

    @property
    def prefixes(self) -> PrefixStore: ...

    @property
    def rehearsals(self) -> RehearsalStore: ...

    @property
    def official_checks(self) -> OfficialCheckStore: ...

    @property
    def leaderboards(self) -> LeaderboardStore: ...

    # -- courses and their people ---------------------------------------------------------

    def courses(self) -> tuple[Course, ...]:
        """All courses, by name."""

    def course(self, name: str) -> Course:
        """Raises NotFound."""

    def put_course(self, course: Course, *, change: AuditEntry | None = None) -> None:
        """Create or change a course. Raises NotFound where there is no such group."""

    def members(self, course: str) -> tuple[Member, ...]:
        """The roster by name, with those who have left."""

    def memberships(self, person: str) -> tuple[Member, ...]:
        """The entries of one person on all rosters, by course, with those who have left."""

    def put_members(
        self, course: str, members: Sequence[Member], *, change: AuditEntry | None = None
    ) -> None:
        """Add or replace entries of the roster. Raises NotFound."""

    # -- assignments ----------------------------------------------------------------------

    def assignments(self, course: str) -> tuple[Assignment, ...]:
        """The assignments of a course, by name."""

    def assignment(self, course: str, name: str) -> Assignment:
        """Raises NotFound."""

    def put_assignment(self, assignment: Assignment, *, change: AuditEntry | None = None) -> None:
        """Create or change an assignment, but not its version. Raises NotFound."""

    def release(
        self, assignment: Assignment, version: ReleasedVersion, *, change: AuditEntry | None = None
    ) -> ReleasedVersion:
        """Change an assignment and release a version, which gets its number here.

        With the source and files of the newest version, that version is returned.

        Raises:
            NotFound: there is no such course.
        """

    def released_version(
        self, course: str, assignment: str, version: int | None = None
    ) -> ReleasedVersion:
        """A released version, by default the newest. Raises NotFound."""

    def put_fetched(self, fetched: Fetched) -> None:
        """Store the version that a student fetched last."""

    def fetched(
        self, course: str, assignment: str | None = None, person: str | None = None
    ) -> tuple[Fetched, ...]:
        """The versions that students fetched last, by assignment and person."""

    # -- submissions ----------------------------------------------------------------------

    def submit(self, new: NewSubmission) -> Submission:
        """Store a submission. With the content of the student's last one, that one is returned.

        Raises:
            NotFound: there is no such assignment.
        """

    def submissions(
        self, course: str, assignment: str | None = None, person: str | None = None
    ) -> tuple[Submission, ...]:
        """Submissions, by assignment, person and number."""

    def submission(self, submission_id: int) -> Submission:
        """Raises NotFound."""

    def choose(
        self,
        submission: Submission,
        *,
        counts: bool,
        change: AuditEntry | None = None,
    ) -> None:
        """Let a submission count whatever its time, or withdraw that choice."""

    def chosen(self, course: str, assignment: str) -> dict[str, int]:
        """The numbers of chosen submissions, by person."""

    # -- grading --------------------------------------------------------------------------

    def add_run(self, run: GradingRun, *, change: AuditEntry | None = None) -> None:
        """Raises NotFound where there is no such assignment."""

    def runs(self, course: str, assignment: str) -> tuple[GradingRun, ...]:
        """The grading runs of an assignment, oldest first."""

    def run(self, request: str) -> GradingRun:
        """Raises NotFound."""

    def add_verdict(self, verdict: SubmissionVerdict) -> bool:
        """Store a verdict; False where the run has one on this submission, which stays.

        Raises:
            NotFound: there is no such run, or it does not grade that submission.
        """

    def verdicts(self, course: str, assignment: str) -> tuple[SubmissionVerdict, ...]:
        """The verdicts of all runs, in the order of the runs and by submission."""

    # -- feedback -------------------------------------------------------------------------

    def put_feedback(self, feedback: Feedback, *, change: AuditEntry | None = None) -> None:
        """Store feedback, in place of earlier feedback. Raises NotFound."""

    def feedback(
        self, course: str, assignment: str | None = None, person: str | None = None
    ) -> dict[int, Feedback]:
        """The feedback, by submission."""

    # -- regrade requests -----------------------------------------------------------------

    def open_regrade(self, request: RegradeRequest) -> RegradeRequest:
        """Store a request; the open one about the same cell of the student is returned instead.

        Raises:
            NotFound: there is no such assignment.
        """

    def update_regrade(
        self, regrade_id: int, change: Callable[[RegradeRequest], RegradeRequest]
    ) -> RegradeRequest:
        """Store what ``change`` makes of the current request: new messages, and its end.

        What ``change`` raises leaves the request as it is.

        Raises:
            NotFound: there is no such request.
        """

    def regrade(self, regrade_id: int) -> RegradeRequest:
        """Raises NotFound."""

    def regrades(
        self, course: str, assignment: str | None = None, person: str | None = None
    ) -> tuple[RegradeRequest, ...]:
        """The requests of a course, oldest first."""

    # -- due dates ------------------------------------------------------------------------

    def extend(self, extension: Extension, *, change: AuditEntry | None = None) -> None:
        """Raises NotFound where there is no such assignment."""

    def remove_extensions(
        self,
        course: str,
        assignment: str,
        *,
        person: str = "",
        section: str = "",
        change: AuditEntry | None = None,
    ) -> None:
        """Remove all extensions of a person or of a section."""

    def extensions(self, course: str) -> tuple[Extension, ...]:
        """The extensions of a course, oldest first."""

    def add_outage(self, outage: Outage, *, change: AuditEntry | None = None) -> None: ...

    def outages(self) -> tuple[Outage, ...]:
        """All outages, oldest first."""


class Blobs(Protocol):
    """Stores contents by their SHA-256, safe against a loss of power."""

    def put(self, content: bytes) -> str:
        """Store a content; returns its SHA-256 in 64 hexadecimal digits."""

    def open(self, sha256: str) -> BinaryIO:
        """Raises NotFound."""
