"""The values of courses: courses, members, assignments, submissions, grading and feedback.

A course belongs to the group of the quota tree with its name. Times are seconds since the epoch
(UTC), durations are seconds. The store numbers submissions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class CourseRole(StrEnum):
    """The role of a user in a course. Its teachers are those of the group."""

    TEACHER = "teacher"
    GRADER = "grader"
    STUDENT = "student"


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Attributes:
    image: in which its work runs and is graded; empty on a backend without images.
    archived_at: when it became read-only.
    """

    name: str
    title: str = ""
    image: str = ""
    created_at: float
    created_by: str
    archived_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A student or a grader. Members who have left keep their entry and their submissions.

    Attributes:
        full_name: from the roster.
        section: part of the class, such as a lab group; empty for none.
        left_at: None while they are in the course.
    """

    course: str
    person: str
    role: CourseRole = CourseRole.STUDENT
    full_name: str = ""
    section: str = ""
    left_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LateStep:
    """The part of the points that lateness of up to ``seconds`` costs."""

    seconds: int
    penalty: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRule:
    """The penalties for lateness. A submission later than the last step does not count."""

    steps: tuple[LateStep, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Attributes:
    due: None for no due date.
    zone: time zone of the due date, such as ``Europe/Berlin``.
    devices: needed to grade one submission.
    seconds: time limit of grading one submission.
    version: the newest released one; 0 before the first release.
    hidden: not shown to students, such as one of a cloned course before its release.
    """

    course: str
    name: str
    due: float | None = None
    zone: str = "UTC"
    late: LateRule = LateRule()
    devices: int = 0
    seconds: int = 600
    version: int = 0
    hidden: bool = False

    @property
    def open(self) -> bool:
        """Whether students can see it."""
        return self.version > 0 and not self.hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRef:
    """A file whose content is in the blob store."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A set of files; ``sha256`` is the hash of all names and contents."""

    sha256: str
    files: tuple[FileRef, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingPace:
    """Attributes:
    start: seconds until the engine's first sandbox is open.
    each: seconds between verdicts, with as many submissions in parallel as in a run; 0 for
        unknown.
    """

    start: float = 0.0
    each: float = 0.0


NOT_KNOWN: Final = GradingPace()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """The result of the check before a release.

    Attributes:
        seconds: for grading one submission alone.
        pace: of a grading run on this machine.
        apart: by notebook, the ids of the tests that run isolated from the student's kernel.
    """

    seconds: float
    pace: GradingPace = NOT_KNOWN
    apart: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedVersion:
    """A released version of an assignment.

    Attributes:
        version: from 1 on.
        files: what students get.
        source: what the teacher wrote, with solutions and hidden tests. Never for students.
        tried: the result of its check; None where it was not checked.
    """

    course: str
    assignment: str
    version: int
    files: Folder
    source: Folder
    released_at: float
    released_by: str
    tried: TrialResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """More time for one person or one section; several extensions add up."""

    course: str
    assignment: str
    person: str = ""
    section: str = ""
    seconds: int
    given_at: float
    given_by: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A span in which users could not work, recorded by an administrator.

    Attributes:
        course: empty for all courses.
    """

    starts_at: float
    ends_at: float
    course: str = ""
    why: str = ""
    recorded_at: float
    recorded_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSubmission:
    """A submission before it is stored, with the time at which the server had received it.

    Attributes:
        version: that it answers; 0 for unknown.
    """

    course: str
    assignment: str
    person: str
    at: float
    files: Folder
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A stored submission.

    Attributes:
        id: unique in the store.
        number: from 1 on, for each student and assignment.
    """

    id: int
    number: int
    course: str
    assignment: str
    person: str
    at: float
    files: Folder
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingRun:
    """One grading of a class or a part of it. Its submissions are fixed when it is queued.

    Attributes:
        request: the ID of its request on the pool, and of the run itself.
        version: the released version whose answer key it uses.
        person, question: empty for all students, and for all cells.
        submissions: the IDs of the submissions to grade.
        expected: expected seconds; 0 for unknown.
    """

    request: str
    course: str
    assignment: str
    version: int
    person: str = ""
    question: str = ""
    submissions: tuple[int, ...]
    asked_at: float
    asked_by: str
    expected: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CellScore:
    """The verdict on one cell: a word, points, and a sentence for the student.

    Attributes:
        score: None where a person grades it.
        review: a person should review it, whatever the score.
    """

    notebook: str
    cell: str
    word: str
    sentence: str
    score: float | None
    max_score: float
    review: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionVerdict:
    """The result of one submission in one run.

    Attributes:
        notes: sentences about the whole submission.
        why_not: why it could not be graded; empty if it was.
    """

    request: str
    submission: int
    at: float
    seconds: float
    cells: tuple[CellScore, ...] = ()
    notes: tuple[str, ...] = ()
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """The feedback on a submission.

    Attributes:
        submission: its id.
        files: pages (HTML), one for each notebook.
    """

    submission: int
    files: Folder
    released_at: float
    released_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegradeMessage:
    """One message in the thread of a regrade request."""

    author: str
    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegradeRequest:
    """A student's question about points, and its thread.

    Attributes:
        id: unique in the store; 0 before it is stored.
        notebook, cell: empty for the whole assignment.
        messages: oldest first; the first one is the student's.
    """

    id: int
    course: str
    assignment: str
    person: str
    notebook: str = ""
    cell: str = ""
    opened_at: float
    closed_at: float | None = None
    closed_by: str = ""
    messages: tuple[RegradeMessage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The version of an assignment that a student fetched last."""

    course: str
    assignment: str
    person: str
    version: int
    at: float
