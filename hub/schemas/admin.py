"""Bodies of administration: quotas, users, drains, quarantines and the audit log."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from .base import LARGEST, MODEL_LENGTH, In, Moment, Out, Span
from .calendar import BudgetIn
from .names import USER_LENGTH

Why = Annotated[str, Field(max_length=500)]
PersonName = Annotated[str, Field(min_length=1, max_length=USER_LENGTH)]
Limit = Annotated[int, Field(ge=0, le=LARGEST)]
ModelName = Annotated[str, Field(min_length=1, max_length=MODEL_LENGTH)]


class GroupIn(In):
    """Body of ``PUT /api/v1/groups/{name}``: the settings of the group.

    Omitted fields keep their values, except ``parent``, the maximum quota and the time limit. A
    null ``borrowing``, ``lending``, ``max_sessions`` or ``budget`` means no limit; null ``models``
    allow all models.
    """

    parent: Annotated[str | None, Field(max_length=64)] = None
    max_devices: Limit
    max_devices_per_user: Limit
    max_seconds: Span = 8 * 3600
    idle_seconds: Span | None = None
    guaranteed: Annotated[
        Limit, Field(description="Guaranteed quota: devices that it can reclaim.")
    ] = 0
    borrowing: Annotated[
        Limit | None, Field(description="Devices that it may borrow above its guaranteed quota.")
    ] = None
    lending: Annotated[
        Limit | None,
        Field(description="Devices of its guaranteed quota that other groups may borrow."),
    ] = None
    weight: Annotated[
        float, Field(gt=0, description="Fair-share weight among groups with the same parent.")
    ] = 1.0
    models: Annotated[list[ModelName], Field(min_length=1, max_length=100)] | None = None
    max_sessions: Annotated[
        Limit | None, Field(description="Concurrent sessions with devices of one member.")
    ] = None
    sessions_borrow: Annotated[bool, Field(description="Whether sessions may borrow devices.")] = (
        False
    )
    budget: BudgetIn | None = None
    programs: Annotated[
        bool, Field(description="Whether programs of its members may submit jobs.")
    ] = False
    teachers: Annotated[list[PersonName], Field(max_length=1000)] | None = None


class DrainIn(In):
    """Body of ``PUT /api/v1/pool/{target}/drain``.

    Without ``until``, running requests continue to their own end. With it, requests that still run
    at this time are stopped.
    """

    until: Moment | None = None
    why: Why = ""


class QuarantineIn(In):
    """Body of ``PUT /api/v1/pool/{target}/quarantine``."""

    why: Annotated[str, Field(min_length=1, max_length=500)]


class PersonIn(In):
    """Body of ``POST /api/v1/people``: a new account of Carrel."""

    name: PersonName
    admin: bool = False
    groups: list[PersonName] = Field(default_factory=list, max_length=100)


class PersonRolesIn(In):
    """Body of ``PUT /api/v1/people/{name}``: the groups and the role of a user.

    Omitted fields keep their values. ``groups`` are those in which the user is a member; groups of
    JupyterHub without a quota are not changed.
    """

    groups: Annotated[list[PersonName] | None, Field(max_length=1000)] = None
    teaches: Annotated[list[PersonName] | None, Field(max_length=1000)] = None
    admin: bool | None = None


class PeopleImportIn(In):
    """Body of ``POST /api/v1/people/import``: a table (CSV) of accounts to create."""

    table: Annotated[str, Field(max_length=200_000)]


class QuotaOut(Out):
    """A group with the current usage of its members and subgroups.

    ``depth`` is 0 for a root. ``held`` counts devices, ``waiting`` counts users with queued
    requests. ``device_seconds`` is all usage, charged and open; ``budget_used`` is the part in the
    current period of the budget, if there is one. ``borrowing``, ``lending`` and ``max_sessions``
    are null without a limit, ``models`` if all models are allowed.
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
    programs: bool = False
    budget: BudgetIn | None = None
    teachers: list[str]
    held: int
    waiting: int
    device_seconds: float
    budget_used: float | None = None


class QuotaTreeOut(Out):
    """All groups in tree order; each group follows its parent."""

    groups: list[QuotaOut]


class ConsequencesOut(Out):
    """The effect of a change, in sentences, and whether it was saved.

    ``changes`` is false if the new values equal the old ones.
    """

    sentences: list[str]
    saved: bool
    changes: bool = True


class NodeOut(Out):
    """A node. ``drained`` is true if the whole node is drained, with all its devices.

    ``ready`` is the number of warm containers for jobs.
    """

    name: str
    drained: bool
    drain_until: float | None = None
    why: str = ""
    ready: int = 0


class PersonOut(Out):
    """A user. ``account`` is false if the user signs in without an account of Carrel."""

    name: str
    admin: bool
    account: bool
    groups: list[str]
    teaches: list[str]
    live: int
    device_seconds: float


class PeopleOut(Out):
    """Users. ``hub_away``: JupyterHub did not answer, so the groups are unknown."""

    people: list[PersonOut]
    hub_away: bool = False


class PasswordOut(Out):
    """A new password; shown only once."""

    name: str
    password: str


class PasswordLinkOut(Out):
    """A one-time link, by which a user sets a password; shown only once.

    The link is the page ``password`` of the service, followed by ``#`` and the code.
    """

    name: str
    code: str
    expires_at: float


class ImportRowOut(Out):
    """A row of a table of accounts: what happens to it, and why."""

    line: int
    name: str
    admin: bool = False
    groups: list[str] = Field(default_factory=list)
    status: Literal["new", "exists", "wrong"]
    note: str = ""


class PeopleImportOut(Out):
    """The rows of a table of accounts; ``links`` are those of the accounts without a password."""

    rows: list[ImportRowOut]
    links: list[PasswordLinkOut] = Field(default_factory=list)
    saved: bool = False
    changes: bool = True
    """Whether there is an account to create, or a group to join."""


class ChangeOut(Out):
    """An entry of the audit log: ``before`` and ``after`` hold the changed values."""

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
    """``before`` of the next page; null on the last one."""
