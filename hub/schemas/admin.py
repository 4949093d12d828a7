"""The values of administration that travel over HTTP: quotas, people, marks, the audit list."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

from .base import LARGEST, LATEST, MODEL_LENGTH, In, Out
from .calendar import BudgetIn

Why = Annotated[str, Field(max_length=500)]
PersonName = Annotated[str, Field(min_length=1, max_length=64)]
Limit = Annotated[int, Field(ge=0, le=LARGEST)]
ModelName = Annotated[str, Field(min_length=1, max_length=MODEL_LENGTH)]


class GroupIn(In):
    """Body of ``PUT /api/v1/groups/{name}``: the group as it shall be.

    All but the parent, the maximum and the longest time limit stays as it is where it is left
    out. ``null`` for ``borrowing``, ``lending``, ``max_sessions`` and ``budget`` is no limit, for
    ``models`` all of them.
    """

    parent: Annotated[str | None, Field(max_length=64)] = None
    max_devices: Limit
    max_devices_per_user: Limit
    max_seconds: Limit = 8 * 3600
    idle_seconds: Limit | None = None
    guaranteed: Annotated[Limit, Field(description="Devices that it has back when it asks.")] = 0
    borrowing: Annotated[
        Limit | None, Field(description="Devices that it may hold above its guarantee.")
    ] = None
    lending: Annotated[
        Limit | None, Field(description="Devices of its guarantee that others may use.")
    ] = None
    weight: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="Its part of what siblings share.")
    ] = 1.0
    models: Annotated[list[ModelName], Field(min_length=1, max_length=100)] | None = None
    max_sessions: Annotated[
        Limit | None, Field(description="Sessions with devices of one member at one time.")
    ] = None
    sessions_borrow: Annotated[
        bool, Field(description="Sessions may use devices that others are guaranteed.")
    ] = False
    budget: BudgetIn | None = None
    teachers: Annotated[list[PersonName], Field(max_length=1000)] | None = None


class DrainIn(In):
    """Body of ``PUT /api/v1/pool/{target}/drain``.

    Without ``until`` what runs ends by itself; with it, what is left then is stopped.
    """

    until: Annotated[float, Field(allow_inf_nan=False, le=LATEST)] | None = None
    why: Why = ""


class QuarantineIn(In):
    """Body of ``PUT /api/v1/pool/{target}/quarantine``."""

    why: Annotated[str, Field(min_length=1, max_length=500)]


class PersonIn(In):
    """Body of ``POST /api/v1/people``: an account of Carrel's own."""

    name: PersonName
    admin: bool = False
    groups: list[PersonName] = Field(default_factory=list, max_length=100)


class QuotaOut(Out):
    """A group with what its members, and those of the groups below it, use now.

    ``depth`` is 0 for a root. ``held`` are devices, ``waiting`` people; ``device_seconds`` is
    everything ever charged, with what is open; ``budget_used`` of them were in the present
    period of its budget, where it has one. ``borrowing``, ``lending`` and ``max_sessions``
    are null where there is no limit, ``models`` where all are allowed.
    """

    name: str
    parent: str | None
    depth: int
    max_devices: int
    max_devices_per_user: int
    max_seconds: int
    idle_seconds: int
    guaranteed: int = 0
    borrowing: int | None = None
    lending: int | None = None
    weight: float = 1.0
    models: list[str] | None = None
    max_sessions: int | None = None
    sessions_borrow: bool = False
    budget: BudgetIn | None = None
    teachers: list[str]
    held: int
    waiting: int
    device_seconds: float
    budget_used: float | None = None


class QuotaTreeOut(Out):
    """Every group comes after the one above it."""

    groups: list[QuotaOut]


class ConsequencesOut(Out):
    """What a change means, in sentences, and whether it was made.

    ``changes`` is false where everything is already as it was asked for.
    """

    sentences: list[str]
    saved: bool
    changes: bool = True


class NodeOut(Out):
    """A node; ``drained`` as a whole, which its devices then are too.

    ``ready`` is how many containers wait there for jobs.
    """

    name: str
    drained: bool
    drain_until: float | None = None
    why: str = ""
    ready: int = 0


class PersonOut(Out):
    """``account`` is false for somebody whom another sign-in than Carrel's own knows."""

    name: str
    admin: bool
    account: bool
    groups: list[str]
    teaches: list[str]
    live: int
    device_seconds: float


class PeopleOut(Out):
    """``hub_away``: JupyterHub did not answer, so that groups are not known just now."""

    people: list[PersonOut]
    hub_away: bool = False


class PasswordOut(Out):
    """A new password; it is shown this once."""

    name: str
    password: str


class ChangeOut(Out):
    """A line of the audit list: ``before`` and ``after`` hold what was changed."""

    id: int
    at: float
    who: str
    action: str
    target: str
    why: str
    before: dict[str, JsonValue]
    after: dict[str, JsonValue]


class ChangesOut(Out):
    changes: list[ChangeOut]
    next: int | None = None
    """``before`` of the following page; null on the last one."""
