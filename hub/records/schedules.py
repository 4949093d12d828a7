"""Schedules: jobs, or rehearsals of a course, that the service starts by a cron expression."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ScheduleState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule without the body of its job or rehearsal, which may be large.

    Attributes:
        course: whose rehearsals it starts; empty for a schedule of jobs.
        what: the notebook or the command, for lists.
        cron: five fields: minute, hour, day of month, month, weekday.
        zone: name of the time zone of ``cron``.
        paused_why: why the service paused it; empty if its owner did.
        paused_at: when the service did so; None if it did not.
        next_at: its next time; None while it is paused.
        last_due: its last time at which a job was submitted or refused.
        last_request: the last job or rehearsal that was started for a time, empty before.
        last_error: why the job of the last time was refused; empty if it was submitted.
        missed: how many times before ``last_due`` passed without a job, because the service was
            not running.
        refusals: refused jobs in a row.
        idempotency_key: unique for its owner; the same key returns the first schedule.
    """

    id: str
    owner: str
    group: str
    what: str
    devices: int
    cron: str
    zone: str
    created_at: float
    idempotency_key: str
    course: str = ""
    state: ScheduleState = ScheduleState.ACTIVE
    paused_why: str = ""
    paused_at: float | None = None
    next_at: float | None = None
    last_due: float | None = None
    last_request: str = ""
    last_error: str = ""
    missed: int = 0
    refusals: int = 0
