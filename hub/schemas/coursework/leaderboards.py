"""Bodies of leaderboards: students submit weights, which are scored on hidden data."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ..base import In, Out
from ..courses import BundleIn, FileIn, FileRefOut

LEADERBOARD_RESULT = "leaderboard.json"
"""The result file in the attempt folder; only the service reads it."""
MOST_SCORED_PER_DAY = 50
MOST_REFUSED_PER_DAY = 20
"""Files of one student that cannot be scored; they cost none of the submissions of the day."""

Metric = Literal["accuracy", "cross-entropy", "rmse", "mae"]
Counts = Literal["best", "last"]


class LeaderboardIn(BundleIn):
    """Body of ``PUT …/leaderboard``.

    The files are ``leaderboard.py``, which builds the architecture and the hidden data, and what it
    reads. Without files, those of before are kept. Students never get them. ``per_day`` 0 ends the
    submissions; the table stays.
    """

    metric: Metric = "accuracy"
    per_day: Annotated[int, Field(ge=0, le=MOST_SCORED_PER_DAY)]
    public_percent: Annotated[
        int, Field(ge=1, le=99, description="Part of the hidden data for the public score.")
    ] = 50
    counts: Annotated[
        Counts, Field(description="Which submission of a student is in the table.")
    ] = "best"
    private_after_due: Annotated[
        bool, Field(description="Students see the private scores after the due date.")
    ] = False


class WeightsIn(In):
    """Body of ``POST …/leaderboard/submissions``: one safetensors file; idempotent."""

    file: FileIn


class LeaderboardRuleOut(Out):
    """The rule of a leaderboard; ``per_day`` is 0 where nothing can be submitted.

    ``opened`` is false where the assignment has no leaderboard, and then the rest are defaults.
    """

    course: str
    assignment: str
    opened: bool
    metric: Metric = "accuracy"
    lower_is_better: bool = False
    per_day: int = 0
    public_percent: int = 50
    counts: Counts = "best"
    private_after_due: bool = False


class LeaderboardEntryOut(Out):
    """One submission of weights, with its verdict.

    ``outcome`` is empty until it is evaluated, then ``scored``, ``refused``, ``stopped`` (it took
    too much time or memory) or ``fault`` (of the system or of the teacher's files); all but the
    first cost none of the day's submissions. ``repeated``: of a ``fault``, that the same file was
    submitted or scored again since. ``person`` is empty, and ``private`` null, where the reader may
    not see them.
    """

    id: str
    person: str = ""
    sent_at: float
    sha256: str
    outcome: str
    sentence: str
    repeated: bool = False
    public: float | None = None
    private: float | None = None


class LeaderboardRowOut(Out):
    """The place of one student. Equal scores have equal ranks.

    ``own`` says whether the row is the reader's. Only teachers and graders see ``person``, and
    ``private`` before it is shown.
    """

    rank: int
    pseudonym: str
    person: str = ""
    own: bool = False
    public: float
    private: float | None = None
    submissions: int
    sent_at: float


class LeaderboardOut(Out):
    """A leaderboard as a student sees it.

    ``left`` are the submissions left today, ``next_at`` is when the next day begins in ``zone``.
    ``past_due`` says that the reader cannot submit any more.
    """

    rule: LeaderboardRuleOut
    private_shown: bool
    rows: list[LeaderboardRowOut]
    mine: list[LeaderboardEntryOut]
    left: int
    past_due: bool
    next_at: float
    zone: str


class LeaderboardLogOut(Out):
    """A leaderboard as its teachers and graders see it, with all submissions, newest first.

    ``unscored`` counts the files that a fault left without score; ``POST …/leaderboard/again``
    scores them. ``failure`` says why the newest of them failed. ``private_shown``: students see the
    private scores, and the table is ordered by them.
    """

    rule: LeaderboardRuleOut
    private_shown: bool = False
    rows: list[LeaderboardRowOut]
    entries: list[LeaderboardEntryOut]
    unscored: int = 0
    failure: str = ""


class WeightsRefOut(Out):
    """The weights of one submission in the blob store.

    ``alone``: it has failed before, and is scored in a group of its own.
    """

    entry: str
    sha256: str
    size: int
    alone: bool = False


class LeaderboardOrderOut(Out):
    """The input of the evaluator, stored with the request."""

    course: str
    assignment: str
    image: str
    files: list[FileRefOut]
    metric: Metric
    public_percent: int
    seed: int
    seconds: int
    entries: list[WeightsRefOut]


class EntryScoreOut(Out):
    """The scores of one submission, or the sentence for its student why there are none.

    ``fault`` is true where it was not evaluated; ``stopped`` says that the time or the memory of
    its own group was used up.
    """

    entry: str
    public: float | None = None
    private: float | None = None
    problem: str = ""
    fault: bool = False
    stopped: bool = False


class LeaderboardResultOut(Out):
    """The result file of the evaluator. ``failure`` is for teachers: what leaderboard.py lacks."""

    scores: list[EntryScoreOut]
    failure: str = ""
