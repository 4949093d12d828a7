"""Bodies of terms, budgets and reservations."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .base import LARGEST, In, Out


class BudgetIn(In):
    """The device-seconds that a group and its subgroups may use in each period."""

    device_seconds: Annotated[float, Field(ge=0, le=LARGEST)]
    period: Literal["week", "term"]


class BudgetOut(Out):
    """A budget in its current period, in device-seconds.

    ``used`` is in the ledger, ``running`` is what running requests may still use until their time
    limits, ``left`` is the rest. ``starts_at`` and ``ends_at`` are null between two terms.
    ``warning`` is a sentence for display, empty while enough is left.
    """

    group: str
    period: Literal["week", "term"]
    device_seconds: float
    used: float
    running: float
    left: float
    starts_at: float | None = None
    ends_at: float | None = None
    warning: str = ""


class BudgetLeftOut(Out):
    """What a job would leave of a budget, in device-seconds; negative where it is not enough.

    ``left`` is what running requests leave if they use their whole time limits, ``likely_left`` the
    same after the likely charge of the job, ``least_left`` after the most that it can be charged.
    """

    group: str
    period: Literal["week", "term"]
    left: float
    likely_left: float
    least_left: float


class CostOut(Out):
    """The predicted charge of one attempt of a job, in device-seconds; advice only.

    ``device_seconds`` is typical, and 9 of 10 such jobs are charged between ``low`` and ``high``;
    ``most`` is the charge for the whole time limit. Where nothing is ``known``, they are 0 and
    ``most``.
    """

    device_seconds: float
    low: float
    high: float
    most: float
    known: bool
    budgets: list[BudgetLeftOut] = []
    """The budgets that bind the job."""
    sentence: str


class TermIn(In):
    """Body of ``PUT /api/v1/terms/{name}``; the first and the last day belong to the term."""

    first: Annotated[str, Field(max_length=10, description="The first day, such as `2026-10-12`.")]
    last: Annotated[str, Field(max_length=10)]


class TermOut(Out):
    name: str
    first: str
    last: str
    running: bool


class TermsOut(Out):
    terms: list[TermOut]


class ReservationIn(In):
    """Body of ``POST /api/v1/reservations``.

    ``when`` is a weekday, several (``Mon,Wed``) or a date, two local times, and their time zone.
    With weekdays, the reservation is weekly; it then requires ``until``, its last day, and starts
    on ``first``, by default today.
    """

    group: Annotated[str, Field(min_length=1, max_length=64)]
    devices: Annotated[int, Field(ge=1, le=LARGEST)]
    when: Annotated[
        str, Field(max_length=100, description="Such as `Tue 10:00-12:00 Europe/Berlin`.")
    ]
    until: Annotated[str, Field(max_length=10)] = ""
    first: Annotated[str, Field(max_length=10)] = ""
    why: Annotated[str, Field(max_length=500)] = ""


class ReservationOut(Out):
    """A reservation. ``starts_at`` and ``ends_at`` are those of the current or next occurrence."""

    id: str
    group: str
    devices: int
    when: str
    first: str
    until: str
    why: str = ""
    starts_at: float | None = None
    ends_at: float | None = None
    running: bool = False


class ReservationsOut(Out):
    reservations: list[ReservationOut]


class DueWorkOut(Out):
    """The work of a class for one due date, and how it is known."""

    course: str
    assignment: str
    due: float
    students: int
    device_hours: float
    source: str


class DemandDayOut(Out):
    """One day (UTC); ``device_hours`` by course, ``reserved`` devices by group."""

    day: str
    device_hours: dict[str, float]
    reserved: dict[str, int]
    needed: int
    """Devices of all courses and reservations together."""


class DemandClashOut(Out):
    """A day on which more devices are needed than the pool has; ``parts`` by course and group."""

    day: str
    needed: int
    pool: int
    parts: dict[str, int]


class ProposedReservationOut(Out):
    """A reservation before a due date; ``reservation`` is null if no device is free for it.

    ``wanted`` devices would be needed.
    """

    course: str
    assignment: str
    due: float
    wanted: int
    reservation: ReservationIn | None


class SemesterPlanOut(Out):
    """The demand of the courses for devices up to the end of a term."""

    since: float
    until: float
    term: str = ""
    """Empty for the next 120 days, without a term."""
    pool: int
    works: list[DueWorkOut]
    days: list[DemandDayOut]
    clashes: list[DemandClashOut]
    proposals: list[ProposedReservationOut]
    notes: list[str] = []
    """What is assumed, and which due dates are not planned."""
