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
