"""Bodies of schedules."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from .base import FiniteJson, In, Out
from .requests import JobIn

Cron = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        description="Minute, hour, day of month, month, weekday; such as `0 6 * * 1-5`.",
    ),
]
Zone = Annotated[
    str, Field(min_length=1, max_length=64, description="Such as `Europe/Berlin` or `UTC`.")
]
Key = Annotated[str, Field(max_length=64)]

SCHEDULE_LABEL: Final = "schedule"
"""The label of the jobs of a schedule; its value is the id."""


class ScheduleIn(In):
    """Body of ``POST /api/v1/schedules``: a job as in ``POST /requests``, and its times.

    The files of the job are stored now. ``deadline`` is not accepted; ``idempotency_key`` is that
    of the schedule, and the one of the job is ignored.
    """

    cron: Cron
    zone: Zone = "UTC"
    job: JobIn
    idempotency_key: Key = ""


class ScheduleChangeIn(In):
    """Body of ``POST /api/v1/schedules/{id}/change``; omitted fields keep their values."""

    cron: Cron | None = None
    zone: Zone | None = None
    state: Literal["active", "paused"] | None = None


class ScheduleRunIn(In):
    """Body of ``POST /api/v1/schedules/{id}/run``.

    ``parameters`` replace those of the schedule with the same names, for this job. The same
    ``idempotency_key`` returns the first request.
    """

    parameters: dict[str, FiniteJson] = {}
    idempotency_key: Key = ""


class ScheduleOut(Out):
    """A schedule; times are in seconds since the epoch.

    ``last_error`` says why the job of the last time was refused. ``missed`` is the number of times
    before ``last_due`` that passed while the service was not running, at most 1,000.
    """

    id: str
    owner: str = ""
    group: str
    course: str = ""
    """The course whose rehearsals it starts; empty for a schedule of jobs."""
    what: str
    """The notebook or the command, or what is rehearsed."""
    devices: int
    cron: str
    zone: str
    state: Literal["active", "paused"]
    paused_why: str = ""
    """Why the service paused it; empty if you did."""
    created_at: float
    next_at: float | None = None
    """Null while it is paused."""
    upcoming: list[float] = []
    """The next times, at most five; the first one is `next_at`."""
    last_due: float | None = None
    last_request: str = ""
    """The last job, or the last rehearsal."""
    last_error: str = ""
    missed: int = 0


class ScheduledJobOut(Out):
    """The job that a schedule submits, without the content of its notebook and of its files."""

    group: str
    devices: int
    model: str | None = None
    seconds: int
    notebook: str = ""
    command: list[str] = []
    workdir: str = ""
    uploaded: bool = False
    """Whether it works in a copy of uploaded files."""
    image: str = ""
    kernel: str = ""
    memory_bytes: int = 0
    retries: int | None = None
    priority: str = "normal"
    parameters: dict[str, JsonValue] = {}
    labels: dict[str, str] = {}


class SchedulesOut(Out):
    schedules: list[ScheduleOut]
