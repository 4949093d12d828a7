"""Bodies of programs: their tokens, budgets, approvals and dry runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..base import LARGEST, In, Out
from ..calendar import CostOut
from ..requests import RequestOut

LONGEST_DAYS = 366


class ProgramIn(In):
    """Body of ``POST /api/v1/programs``."""

    name: Annotated[str, Field(min_length=1, max_length=40, description="Such as `tuning-agent`.")]
    device_seconds: Annotated[
        float, Field(gt=0, le=LARGEST, description="Its budget, for its whole lifetime.")
    ]
    approve_above: Annotated[
        float | None,
        Field(
            ge=0,
            le=LARGEST,
            description="Device-seconds above which a job waits for your approval; 0: any job with "
            "devices; null: none.",
        ),
    ] = None
    days: Annotated[int, Field(ge=1, le=LONGEST_DAYS, description="How long its token works.")] = 30
    reads_owner: Annotated[
        bool, Field(description="Whether it may also read your other sessions and jobs.")
    ] = False


class ProgramOut(Out):
    """A program. Amounts are device-seconds.

    ``reserved`` is what its queued and running jobs may still use.
    """

    id: str
    name: str
    owner: str
    device_seconds: float
    used: float
    reserved: float
    left: float
    approve_above: float | None = None
    reads_owner: bool = False
    jobs: int = 0
    live_jobs: int = 0
    """Of its jobs: those that have not ended."""
    created_at: float
    expires_at: float
    revoked_at: float | None = None
    revoked_by: str = ""
    works: bool
    """Whether its token is accepted now."""


class NewProgramOut(Out):
    """A new program. ``token`` is in this answer only: the service stores a hash of it."""

    program: ProgramOut
    token: str


class ProgramsOut(Out):
    programs: list[ProgramOut]


class ApprovalOut(Out):
    """A job that waits for the approval of its owner, and when it is cancelled without one."""

    request: RequestOut
    cancelled_at: float


class ApprovalsOut(Out):
    approvals: list[ApprovalOut]


class RunTimeOut(Out):
    """The predicted run time of a job, in seconds; advice only."""

    seconds: float
    """The typical run time; the time limit if nothing is known."""
    low: float
    high: float
    """9 of 10 such jobs take between `low` and `high`."""
    basis: str | None = None
    """The most alike earlier jobs: `own_parameters`, `parameters`, `own_program`, `program`,
    `owner` or `group`; null if there are none."""
    runs: int = 0
    """How many of these are known."""
    suggested_seconds: int | None = None
    """A time limit that such a job is unlikely to reach."""
    critical_path: str = ""
    """The stages of a sweep that determine its end, if its trials share some."""
    sentence: str


class DryRunOut(Out):
    """What a submission would cost; nothing is stored.

    ``device_seconds`` is the charge for the whole time limit, the most that one attempt may cost.
    ``device_seconds_left`` is what is left of the budget of the calling program after it; null for
    users.
    """

    group: str
    devices: int
    seconds: int
    device_seconds: float
    sentence: str
    """When it would start."""
    starts_now: bool = False
    expected_at: float | None = None
    """Null if it would start now, and if its start is not known."""
    needs_approval: bool = False
    device_seconds_left: float | None = None
    run_time: RunTimeOut | None = None
    """Null while the service loads its history, and for jobs of several members."""
    cost: CostOut | None = None
    """What is likely to be charged; null without devices."""
    together: str = ""
    """How many trials of a sweep are trained as one, and why the others are not."""
