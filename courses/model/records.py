"""The values of courses: what is handed out, what comes in, and until when.

A course is a group of the quota tree with more to it; its name is the group's. Times are seconds
since the epoch (UTC), spans are seconds. The store gives submissions their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class CourseRole(StrEnum):
    """What somebody is in a course; the teachers are those of the group."""

    TEACHER = "teacher"
    GRADER = "grader"
    STUDENT = "student"


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Attributes:
    image: its work runs and is graded in it; empty on an engine without images.
    archived_at: from then on it can only be read.
    """

    name: str
    title: str = ""
    image: str = ""
    created_at: float
    created_by: str
    archived_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A student or a grader; whoever has left stays known, with all that they handed in.

    Attributes:
        full_name: as the roster has it.
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
    """Up to so many seconds after the due time, this part of the points is taken off."""

    seconds: int
    penalty: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRule:
    """What lateness costs; later than the last step does not count. No step: nothing late does."""

    steps: tuple[LateStep, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Attributes:
    due: None for one that is never due.
    zone: in which its due time was said, such as ``Europe/Berlin``.
    devices: that grading one submission needs.
    seconds: that one submission may take in grading.
    version: of the newest hand-out; 0 before there is one.
    hidden: students do not see it, as of one that came with a clone, before it is released.
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
    """A file whose content lies among the blobs."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """Files that belong together; ``sha256`` is over all of their names and contents."""

    sha256: str
    files: tuple[FileRef, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingPace:
    """Attributes:
    start: seconds that the engine takes until its first cage is there.
    each: seconds from one verdict to the next, while as many are graded at once as in a run.
        0 where nothing is known.
    """

    start: float = 0.0
    each: float = 0.0


NOT_KNOWN: Final = GradingPace()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """What the check before a release found.

    Attributes:
        seconds: that grading one submission takes, alone.
        pace: that of a grading run here, for what it is expected to take.
        apart: by notebook, the ids of the tests that run apart from the student's kernel.
    """

    seconds: float
    pace: GradingPace = NOT_KNOWN
    apart: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOut:
    """A released version of an assignment.

    Attributes:
        version: from 1 on.
        files: what students get.
        source: what the teacher wrote, solutions and hidden tests included: never a student's.
        tried: None where it was not tried in the grading sandbox before it was released.
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
    """More time for one person or one section; several of them add up."""

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
    """A span in which people could not work, as an administrator recorded it.

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
    """What a student sends, with the time at which the server had all of it.

    Attributes:
        version: of the hand-out that it answers, as far as is known; 0 else.
    """

    course: str
    assignment: str
    person: str
    at: float
    files: Folder
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One that is stored for good.

    Attributes:
        id: the store's own.
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
    """One grading of a class, or of a part of it; what it grades is settled when it is asked for.

    Attributes:
        request: the id of its request on the pool, which is also its own.
        version: of the hand-out by whose key it grades.
        person, question: empty for everybody, and for all cells.
        submissions: the ids of what it grades.
        expected: seconds that it is expected to take; 0 where nothing is known.
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
    """What one cell of a submission got, in a word, in points and in a sentence for its student.

    Attributes:
        score: None where a person decides.
        review: a person should look at it, whatever the score.
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
    """What came out for one submission in one run.

    Attributes:
        notes: sentences about the whole of it.
        why_not: why it could not be graded; empty where it was.
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
    """What a student gets back for a submission.

    Attributes:
        submission: its id.
        files: pages (HTML), one for each notebook.
    """

    submission: int
    files: Folder
    released_at: float
    released_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """That a student has a version of a hand-out."""

    course: str
    assignment: str
    person: str
    version: int
    at: float
