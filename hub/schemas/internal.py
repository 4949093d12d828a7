"""Bodies of calls by JupyterHub's spawners, sessions and attempts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .base import LARGEST, LONGEST, FiniteJson, In, Moment, Out
from .requests import WarningOut


class OpenSessionIn(In):
    """Body of ``PUT /api/v1/sessions`` (service token of JupyterHub only)."""

    owner: str
    server_name: str
    options: dict[str, FiniteJson] = {}


class KernelsIn(In):
    """Body of ``POST /api/v1/requests/{id}/kernels``: the kernel activity of a session.

    ``cell_seconds_ago`` is the time since a cell last ran; null if none has run. A session that
    measures itself, because its engine does not, adds the CPU time of its processes and what its
    devices did.
    """

    count: Annotated[int, Field(ge=0, le=LARGEST)]
    running: Annotated[int, Field(ge=0, le=LARGEST, description="Kernels that execute a cell now.")]
    cell_seconds_ago: Annotated[float, Field(ge=0, le=LONGEST)] | None = None
    cpu_seconds: Annotated[float, Field(ge=0, le=LONGEST)] | None = None
    devices: Literal["worked", "quiet", "unknown"] | None = None


class StartedIn(In):
    """Body of ``POST /api/v1/leases/{id}/started``: the process of the lease."""

    pid: Annotated[int, Field(ge=1, le=LARGEST)]
    started_at: Moment


class JoinIn(In):
    """Body of ``POST /api/v1/leases/{id}/join``: the process of a member of a gang.

    The other members reach it at ``address``, where ``port`` is free.
    """

    pid: Annotated[int, Field(ge=1, le=LARGEST)]
    started_at: Moment
    address: Annotated[str, Field(min_length=1, max_length=255)]
    port: Annotated[int, Field(ge=1, le=65535)]


class JoinOut(Out):
    """Whether all members have joined, and then the addresses by rank and the port of member 0."""

    ready: bool
    addresses: list[str] = []
    port: int = 0


class EventIn(In):
    seq: Annotated[int, Field(ge=1, le=LARGEST)]
    at: Moment
    kind: Annotated[str, Field(max_length=32)]
    data: dict[str, FiniteJson] = {}


class EventsIn(In):
    """Body of ``POST /api/v1/leases/{id}/events``."""

    events: Annotated[list[EventIn], Field(max_length=1000)]


class StopIn(In):
    """Body of ``POST /api/v1/requests/{id}/stop``: the end of a session.

    Only with the service token of JupyterHub.
    """

    cause: Literal["stopped", "cancelled", "start_failed", "server_died"]
    message: Annotated[str, Field(max_length=2000)] = ""
    details: Annotated[str, Field(max_length=20000)] = ""


class HeldOut(Out):
    """A device that is held until ``claim_by`` for the owner of another session."""

    request_id: str
    server_name: str
    claim_by: float
    message: str


class WatchOut(Out):
    """The state of a session, with the notices for its user.

    ``again_seconds`` is the time until the next report of its kernels; it reports at once when a
    request in ``follow`` changes.
    """

    state: str
    warning: WarningOut | None = None
    """Why this session will be stopped, if it will."""
    held: HeldOut | None = None
    """The device that is held for its owner; of several the one that is lost first."""
    shown: Literal["", "warning", "held"] = ""
    """Which of both acts first."""
    again_seconds: float
    follow: list[str] = []
    """Requests whose changes make other notices: itself, and those that wait to be held."""
