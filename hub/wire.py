"""The values that travel over HTTP, used by the service and by every client of it.

Input models refuse unknown keys and do not convert types, so that a mistake is answered
and never guessed at. Times are seconds since the epoch (UTC); spans are seconds.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

NAME = r"[a-z0-9](?:[a-z0-9._@-]{0,62}[a-z0-9])?"
"""Names of people and groups."""
MAX_NOTEBOOK_BYTES = 32 * 1024 * 1024


class In(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Out(BaseModel):
    """Clients ignore fields that a newer service adds."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class NotebookIn(In):
    name: Annotated[str, Field(min_length=1, max_length=255)]
    content: Annotated[str, Field(description="The .ipynb file's text.")]


class JobIn(In):
    """Body of ``POST /api/v1/requests``."""

    kind: Literal["job"] = "job"
    group: Annotated[str, Field(min_length=1, max_length=64)]
    devices: Annotated[int, Field(description="Whole devices, 0 for a job on CPU.")] = 0
    seconds: Annotated[int, Field(description="Time limit.")] = 3600
    notebook: NotebookIn
    parameters: dict[str, JsonValue] = {}
    kernel: Annotated[str, Field(max_length=128)] = ""
    output: Annotated[str, Field(max_length=255, description="File name of the result.")] = ""
    labels: dict[str, str] = {}
    idempotency_key: Annotated[str, Field(max_length=128)] = ""


class SessionIn(In):
    """What a person chooses for a session, also JupyterHub's ``user_options``."""

    devices: int = 0
    hours: float = 2.0
    group: Annotated[str, Field(max_length=64)] = ""


class OpenSessionIn(In):
    """Body of ``PUT /api/v1/sessions`` (the hub's own token only)."""

    owner: str
    server_name: str
    options: dict[str, JsonValue] = {}


class StartedIn(In):
    """Body of ``POST /api/v1/leases/{id}/started``: which process it is."""

    pid: int
    started_at: float


class EventIn(In):
    seq: Annotated[int, Field(ge=1)]
    at: float
    kind: Annotated[str, Field(max_length=32)]
    data: dict[str, JsonValue] = {}


class EventsIn(In):
    """Body of ``POST /api/v1/leases/{id}/events``."""

    events: Annotated[list[EventIn], Field(max_length=1000)]


class StopIn(In):
    """Body of ``POST /api/v1/requests/{id}/stop`` (hub token): how a session came to its end."""

    cause: Literal["stopped", "cancelled", "start_failed", "server_died"]
    message: Annotated[str, Field(max_length=2000)] = ""
    details: Annotated[str, Field(max_length=20000)] = ""


class GroupIn(In):
    parent: str | None = None
    max_devices: int
    max_devices_per_user: int
    max_seconds: int = 8 * 3600


class DeviceOut(Out):
    """A device as the reader may see it: ``state`` is free, yours, taken, busy, sick or gone."""

    id: str
    node: str
    index: int
    model: str
    memory_bytes: int
    simulated: bool
    state: Literal["free", "yours", "taken", "busy", "sick", "gone"]
    why: str = ""
    request_id: str | None = None
    owner: str | None = None


class WaitOut(Out):
    """Place in the queue, why, and until when. ``sentence`` is ready to be shown."""

    place: int
    ahead: int
    reason: str
    sentence: str
    expected_at: float | None = None
    latest_at: float | None = None


class CauseOut(Out):
    code: str
    message: str
    details: str = ""


class LeaseOut(Out):
    id: str
    epoch: int
    state: str
    devices: list[DeviceOut]
    granted_at: float
    released_at: float | None = None
    pid: int | None = None
    started_at: float | None = None


class ProgressOut(Out):
    """How far a notebook has come."""

    cells: int
    done: int
    current: int | None = None


class RequestOut(Out):
    id: str
    kind: str
    owner: str
    group: str
    devices: int
    seconds: int
    state: str
    submitted_at: float
    started_at: float | None = None
    ended_at: float | None = None
    ends_by: float | None = None
    """When its time limit will stop it, once it has been granted."""
    server_name: str = ""
    notebook: str = ""
    output: str = ""
    parameters: dict[str, JsonValue] = {}
    labels: dict[str, str] = {}
    wait: WaitOut | None = None
    cause: CauseOut | None = None
    lease: LeaseOut | None = None
    progress: ProgressOut | None = None
    device_seconds: float = 0.0
    ended: bool = False


class EventOut(Out):
    id: int
    request_id: str
    epoch: int
    at: float
    kind: str
    data: dict[str, JsonValue]


class UsageOut(Out):
    owner: str
    group: str
    charged: float
    open: float


class LedgerOut(Out):
    id: int
    lease_id: str
    request_id: str
    epoch: int
    owner: str
    group: str
    devices: int
    starts_at: float
    ends_at: float
    device_seconds: float


class UsageReport(Out):
    device_seconds: float
    by_group: list[UsageOut]
    ledger: list[LedgerOut]


class MeOut(Out):
    name: str
    admin: bool
    groups: list[str]
    teaches: list[str]


class PoolOut(Out):
    devices: list[DeviceOut]
    free: int
    total: int
    waiting: int
    simulated: bool


class RequestsOut(Out):
    requests: list[RequestOut]


class ErrorBody(Out):
    code: str
    message: str
    accepted: str = ""


class ErrorOut(Out):
    error: ErrorBody
