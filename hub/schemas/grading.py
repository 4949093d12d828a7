"""Bodies of grading: runs, results, and the input of the grader."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .base import LARGEST, LONGEST, In, Moment, Out
from .courses import ContentOut, FileRefOut, MemberOut
from .names import USER_LENGTH

_MOST_CELLS = 10_000
Points = Annotated[float, Field(ge=-1e9, le=1e9)]
Sentence = Annotated[str, Field(max_length=2000)]


class GradeIn(In):
    """Body of ``POST …/assignments/{assignment}/grading``.

    Without ``person`` and ``question``, all submissions and all cells are graded.
    """

    person: Annotated[str, Field(max_length=USER_LENGTH)] = ""
    question: Annotated[
        str, Field(max_length=200, description="The nbgrader id of a cell, such as `squares`.")
    ] = ""
    deadline: Moment | None = None


class SeenPointsIn(In):
    """The points and the comment that a change is based on, as they were read."""

    points: Points | None
    comment: str = ""


class ManualPointsIn(In):
    """Body of ``PUT …/assignments/{assignment}/points``: points of a person for one cell.

    ``points`` null keeps those of the test, if there is one. With ``seen``, the call is refused
    (409) if the cell has other points or another comment by now, also from Formgrader.
    """

    person: Annotated[str, Field(min_length=1, max_length=USER_LENGTH)]
    notebook: Annotated[str, Field(min_length=1, max_length=1000)]
    cell: Annotated[str, Field(min_length=1, max_length=1000)]
    points: Points | None
    comment: str = ""
    seen: SeenPointsIn | None = None


class FeedbackIn(In):
    """Body of ``POST …/assignments/{assignment}/feedback``: the student who gets feedback."""

    person: Annotated[str, Field(min_length=1, max_length=USER_LENGTH)]


class FeedbackOut(Out):
    """Feedback pages (HTML without scripts), one per notebook; empty before the release."""

    files: list[ContentOut]


class CellScoreOut(Out):
    """The result of one cell.

    ``score`` is null until a person has graded the cell; ``review`` marks cells to review.
    ``by_hand`` is true if a person gave points or extra points, with their ``comment``: ``given``
    are those points, null for none, and ``extra`` is nbgrader's extra credit. ``takes_comment`` is
    false for cells on which nbgrader stores no comment.
    """

    notebook: str
    cell: str
    word: str
    sentence: str
    score: float | None
    max_score: float
    review: bool = False
    by_hand: bool = False
    comment: str = ""
    given: float | None = None
    extra: float = 0.0
    takes_comment: bool = False

    @property
    def waits(self) -> bool:
        """Whether it needs a person: to give points, or to review them."""
        return self.review or self.score is None


class GradeOut(Out):
    """The grade of one student: the newest result of each cell of the submission that counts.

    ``penalty`` is the fraction of the points that is deducted for lateness; ``score`` is after the
    deduction. ``why_not`` says why there is no result, ``feedback_at`` when the student got
    feedback. ``provisional`` is the number of cells that a person has yet to grade or to review.
    """

    person: str
    full_name: str = ""
    section: str = ""
    submission: int
    number: int
    graded_at: float | None = None
    score: float = 0.0
    max_score: float = 0.0
    penalty: float = 0.0
    review: bool = False
    provisional: int = 0
    cells: list[CellScoreOut] = []
    notes: list[str] = []
    why_not: str = ""
    feedback_at: float | None = None

    @property
    def graded(self) -> bool:
        """Whether it has points: it was graded, and could be."""
        return self.graded_at is not None and not self.why_not


class GradingOut(Out):
    """A grading run; ``request`` is the id of the job that runs it.

    ``seconds_left`` is null before the first estimate and after the end; its bounds,
    ``least_seconds_left`` and ``most_seconds_left``, differ while little is known. ``cause``
    describes the end in a sentence.
    """

    request: str
    course: str
    assignment: str
    person: str = ""
    question: str = ""
    state: str
    ended: bool
    done: int
    total: int
    expected: float
    seconds_left: float | None = None
    least_seconds_left: float | None = None
    most_seconds_left: float | None = None
    asked_at: float
    asked_by: str
    cause: str = ""


class GradesOut(Out):
    """The grading of an assignment: ``run`` is the newest run, null before the first one.

    ``questions`` are the ids of its graded cells, in order. ``no_submission`` lists the
    students without a submission that counts.
    """

    course: str
    assignment: str
    run: GradingOut | None = None
    questions: list[str] = []
    grades: list[GradeOut]
    no_submission: list[MemberOut] = []


class DistributionOut(Out):
    """The points of the students who have been graded, after late penalties.

    ``bars`` counts the students by tenths of ``max_score``; the last bar includes the maximum.
    """

    students: int
    mean: float
    median: float
    least: float
    most: float
    max_score: float
    bars: list[int]


class CellRateOut(Out):
    """A cell in numbers: of ``students`` with a score, ``passed`` have all its points."""

    notebook: str
    cell: str
    students: int
    passed: int
    mean: float
    max_score: float


class StatisticsOut(Out):
    """``distribution`` is null before the first grade."""

    course: str
    assignment: str
    distribution: DistributionOut | None = None
    cells: list[CellRateOut] = []


class GradebookAssignmentOut(Out):
    """``max_score`` is null before the first grade."""

    name: str
    max_score: float | None = None


class GradebookScoreOut(Out):
    """``score`` is null without a grade; ``provisional``: a person has yet to grade a cell."""

    score: float | None = None
    submitted: bool = False
    provisional: bool = False


class GradebookRowOut(Out):
    """A student with a score for each assignment, in the order of the assignments."""

    person: str
    full_name: str = ""
    section: str = ""
    scores: list[GradebookScoreOut]


class CourseGradebookOut(Out):
    """The points of all current students in all released assignments, after late penalties."""

    course: str
    assignments: list[GradebookAssignmentOut]
    rows: list[GradebookRowOut]


class GradedOut(Out):
    """The courses that a user teaches or grades, by name."""

    courses: list[str]


class MyGradeOut(Out):
    """A student's own grade, as of the last release of feedback.

    ``submission`` and ``pages`` locate the feedback. ``grade`` is null before the release of
    feedback, and if the feedback comes from the teacher's own nbgrader; ``sentence`` says which.
    """

    course: str
    assignment: str
    submission: int | None = None
    released_at: float | None = None
    grade: GradeOut | None = None
    pages: list[str] = []
    sentence: str = ""


# -- regrade requests: threads between a student and the graders of a course ------------------


class RegradeIn(In):
    """Body of ``POST …/assignments/{assignment}/regrades``.

    Without ``cell``, it is about the whole assignment. At most 5,000 characters of ``text``.
    """

    notebook: Annotated[str, Field(max_length=1000)] = ""
    cell: Annotated[str, Field(max_length=1000)] = ""
    text: str


class RegradeReplyIn(In):
    """Body of ``POST /api/v1/regrades/{regrade}/messages``: a message, the end, or both."""

    text: str = ""
    close: bool = False


class RegradeMessageOut(Out):
    author: str
    at: float
    text: str


class RegradeOut(Out):
    """A regrade request with its thread, oldest message first; ``cell`` is empty for all cells."""

    id: int
    course: str
    assignment: str
    person: str
    notebook: str
    cell: str
    opened_at: float
    closed_at: float | None = None
    closed_by: str = ""
    messages: list[RegradeMessageOut]


class RegradesOut(Out):
    regrades: list[RegradeOut]


# -- between the service and its grader -------------------------------------------------------


class WorkOut(Out):
    """One submission to grade."""

    submission: int
    person: str
    at: float
    penalty: float
    files: list[FileRefOut]


class GradingOrderOut(Out):
    """The input of the grader.

    ``apart`` is null if the assignment was not validated. ``image`` is the digest of the grading
    image, empty without images.
    """

    course: str
    assignment: str
    image: str
    question: str
    due: float | None
    devices: int
    seconds: int
    source: list[FileRefOut]
    apart: dict[str, list[str]] | None
    works: list[WorkOut]


class CellScoreIn(In):
    notebook: Annotated[str, Field(max_length=1000)]
    cell: Annotated[str, Field(max_length=1000)]
    word: Annotated[str, Field(max_length=40)]
    sentence: Sentence
    score: Points | None
    max_score: Points
    review: bool = False


class VerdictIn(In):
    """Body of ``POST /api/v1/leases/{lease_id}/verdicts``."""

    submission: Annotated[int, Field(ge=1, le=LARGEST)]
    seconds: Annotated[float, Field(ge=0, le=LONGEST)]
    cells: Annotated[list[CellScoreIn], Field(max_length=_MOST_CELLS)] = []
    notes: Annotated[list[Sentence], Field(max_length=_MOST_CELLS)] = []
    why_not: Sentence = ""


class KeptOut(Out):
    """Whether the result was stored: it was the first one for this submission in this run."""

    kept: bool
