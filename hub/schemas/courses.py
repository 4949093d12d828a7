"""Bodies of courses: rosters, assignments, files and receipts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .admin import PasswordOut
from .base import LARGEST, In, Moment, Out
from .calendar import BudgetIn
from .names import USER_LENGTH

CourseName = Annotated[str, Field(min_length=1, max_length=64)]
AssignmentName = Annotated[str, Field(min_length=1, max_length=64)]
Roster = Annotated[
    str,
    Field(
        max_length=1_000_000,
        description="CSV with a column `student`, optionally `name`, `section` and `role`.",
    ),
]
Devices = Annotated[int, Field(ge=0, le=LARGEST)]
Person = Annotated[str, Field(min_length=1, max_length=USER_LENGTH)]
Why = Annotated[str, Field(max_length=500)]


class CourseIn(In):
    """Body of ``POST /api/v1/courses``. The course uses the group of its name, created if missing.

    Omitted quota fields keep their values; in a new group they are 0.
    """

    name: CourseName
    title: Annotated[str, Field(max_length=200)] = ""
    teachers: Annotated[list[Person], Field(max_length=100)] = []
    students: Roster = ""
    image: Annotated[
        str, Field(max_length=160, description="Pinned until the end of the term.")
    ] = ""
    parent: Annotated[str | None, Field(max_length=64)] = None
    guaranteed: Devices | None = None
    max_devices: Devices | None = None
    max_devices_per_user: Devices | None = None
    budget: BudgetIn | None = None


class CloneIn(In):
    """Body of ``POST /api/v1/courses/{course}/clone``.

    The clone gets the quota and the assignments of the course, but not its members.
    """

    name: CourseName
    title: Annotated[str, Field(max_length=200)] = ""
    teachers: Annotated[list[Person], Field(max_length=100)] = []


class RosterIn(In):
    """Body of ``PUT /api/v1/courses/{course}/roster``; replaces the roster."""

    students: Roster


class FileIn(In):
    name: Annotated[str, Field(min_length=1, max_length=1000)]
    content: Annotated[str, Field(description="Base64.")]


class BundleIn(In):
    """Files, either as a list or as a .zip in base64."""

    files: Annotated[list[FileIn], Field(max_length=2000)] = []
    archive: str = ""


class SubmitIn(BundleIn):
    """Body of ``POST …/assignments/{assignment}/submissions``; idempotent.

    ``version`` is the released version that the work is based on; 0 if unknown. Without a released
    notebook, or with one that cannot be read, a submission is refused (409, field ``incomplete``)
    unless ``incomplete`` is true.
    """

    version: Annotated[int, Field(ge=0, le=LARGEST)] = 0
    incomplete: bool = False


class ReleaseIn(BundleIn):
    """Body of ``POST …/assignments/{assignment}/release``.

    The files are the source notebooks, with solutions and tests. Without files, the newest release
    is kept. Other omitted fields keep their values; an empty ``due`` removes the due date. Files
    without a cell that has points are refused (409, field ``ungraded``) unless ``ungraded`` is
    true.
    """

    due: Annotated[
        str | None, Field(max_length=100, description="Such as `2027-02-01 18:00 Europe/Berlin`.")
    ] = None
    late: Annotated[
        str | None,
        Field(
            max_length=200, description="Such as `24h:-10%`; empty: late submissions do not count."
        ),
    ] = None
    devices: Devices | None = None
    seconds: Annotated[int | None, Field(ge=1, le=7 * 86400)] = None
    ungraded: bool = False


class ExtensionIn(In):
    """Body of ``POST …/assignments/{assignment}/extensions``, for a student or a section."""

    person: Annotated[str, Field(max_length=USER_LENGTH)] = ""
    section: Annotated[str, Field(max_length=200)] = ""
    seconds: Annotated[int, Field(ge=1, le=366 * 86400)]
    why: Why = ""


class ExtensionOut(Out):
    """A deadline extension of a student or a section."""

    assignment: str
    person: str
    section: str
    seconds: int
    given_at: float
    given_by: str
    why: str


class ExtensionsOut(Out):
    extensions: list[ExtensionOut]


class OutageIn(In):
    """Body of ``POST /api/v1/outages``; without ``course``, all courses are affected."""

    starts_at: Moment
    ends_at: Moment
    course: Annotated[str, Field(max_length=64)] = ""
    why: Why = ""


class OutageOut(Out):
    starts_at: float
    ends_at: float
    course: str
    why: str
    recorded_by: str


class OutagesOut(Out):
    outages: list[OutageOut]


class CourseOut(Out):
    """``role`` is the caller's: teacher, grader or student; administrators act as teachers.

    ``image`` is ``local`` on a backend without images. ``notes`` are warnings about a new course:
    unknown teachers, and group members that are missing from the roster.
    """

    name: str
    title: str
    role: str
    image: str
    teachers: list[str]
    students: int
    assignments: int
    archived_at: float | None = None
    notes: list[str] = []


class CoursesOut(Out):
    courses: list[CourseOut]


class MemberOut(Out):
    """A member of a course; ``left_at`` is set once a student has left the roster."""

    person: str
    full_name: str
    section: str
    role: str
    left_at: float | None = None


class MembersOut(Out):
    """The people of a course, including members who have left.

    ``without_account`` are those who cannot sign in yet; empty where the site's accounts are not
    Carrel's own.
    """

    teachers: list[str]
    members: list[MemberOut]
    without_account: list[str] = []


class NewAccountsOut(Out):
    """New accounts of a class with their passwords, which are shown only once.

    ``remaining`` is the number of members who still have none: repeat the call.
    """

    created: list[PasswordOut]
    remaining: int = 0


class FileRefOut(Out):
    name: str
    sha256: str
    size: int


class ContentOut(Out):
    name: str
    content: str
    """Base64."""


class HandOutOut(Out):
    """A released version of an assignment; ``sha256`` is the hash of all files."""

    course: str
    assignment: str
    version: int
    released_at: float
    released_by: str
    sha256: str
    files: list[ContentOut]


class NotebookTestsOut(Out):
    """How the cells of a notebook are graded, by their nbgrader ids.

    ``apart`` are tests that run in a separate process, ``in_kernel`` are tests that run in the
    student's kernel, ``by_hand`` are cells that a person grades.
    """

    notebook: str
    apart: list[str]
    in_kernel: list[str]
    by_hand: list[str]


class ReleaseReportOut(Out):
    """The result of the validation before a release.

    The solution must get all ``points`` of the tests, and the released version none. ``tried`` is
    false if the validation did not run; ``seconds`` is the duration of grading one submission.
    """

    tried: bool
    seconds: float
    points: float
    notebooks: list[NotebookTestsOut]


class ReleasedOut(Out):
    """A new release, with warnings for the teacher."""

    course: str
    assignment: str
    version: int
    released_at: float
    sha256: str
    files: list[FileRefOut]
    due: float | None
    zone: str
    late_rule: str
    warnings: list[str] = []
    report: ReleaseReportOut


class HandedInOut(Out):
    """A submission with its files."""

    id: int
    course: str
    assignment: str
    person: str
    number: int
    at: float
    sha256: str
    files: list[ContentOut]


class ReceiptOut(Out):
    """The receipt of a submission: the stored files and the time.

    ``sha256`` covers all names and contents: it is the hash of the lines that ``sha256sum`` prints
    for the files, sorted by name. ``standing`` is ``on time``, ``late`` or ``too late to count``.
    ``counts`` is true for the submission that is graded. ``missing`` are released notebooks that
    were not submitted.
    """

    id: int
    number: int
    course: str
    assignment: str
    person: str
    at: float
    sha256: str
    files: list[FileRefOut]
    size: int
    standing: str
    penalty: float
    counts: bool
    sentence: str
    missing: list[str] = []


class ReceiptsOut(Out):
    receipts: list[ReceiptOut]


class AssignmentOut(Out):
    """An assignment as the caller sees it.

    ``due`` is the caller's due date, ``class_due`` that of the class; both are null without a due
    date. ``state`` is one of: not released (also after a withdrawal), open, fetched, submitted,
    graded (once the student has feedback), closed. ``fetched``,
    ``submitted`` and ``graded`` count students, for teachers and graders. ``now`` describes
    the effect of a submission at this time. ``feedback`` is true once a student has feedback; then
    ``score`` and ``max_score`` are the points, if known, and ``provisional`` is the number of cells
    that a person has yet to grade.
    """

    course: str
    name: str
    due: float | None
    class_due: float | None
    zone: str
    late: str
    late_rule: str
    extension: str = ""
    state: str
    closes_at: float | None
    version: int
    fetched_version: int = 0
    devices: int
    seconds: int
    receipts: list[ReceiptOut] = []
    now: str = ""
    score: float | None = None
    max_score: float | None = None
    provisional: int = 0
    feedback: bool = False
    fetched: int | None = None
    submitted: int | None = None
    graded: int | None = None


class AssignmentsOut(Out):
    assignments: list[AssignmentOut]


class PrefixIn(In):
    """Whether jobs may begin with the prefix of an assignment.

    ``devices`` is how many the jobs have that may; omitted, as many as for grading a submission.
    """

    on: bool
    devices: int | None = Field(default=None, ge=0, le=LARGEST)


class PrefixNotebookOut(Out):
    """The prefix of a notebook.

    ``state`` is computing, ready, or none with the reason in ``why_not``; ``request`` is the job
    that computes it, and ``seconds`` the run time of the cells that other jobs do not run.
    ``compiled_bytes`` is the size of what that job has compiled with PyTorch, which they load.
    """

    notebook: str
    request: str
    state: str
    seconds: float
    why_not: str = ""
    compiled_bytes: int = 0


class PrefixOut(Out):
    """The prefix of an assignment, and what ``jobs`` jobs have saved with it.

    ``seconds`` is the run time of the cells that they did not run; ``device_seconds`` is multiplied
    by the devices that each of them had.
    """

    course: str
    assignment: str
    on: bool
    devices: int
    notebooks: list[PrefixNotebookOut]
    jobs: int
    seconds: float
    device_seconds: float


class PrefixesOut(Out):
    prefixes: list[PrefixOut]
