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
LARGEST = 2**53 - 1
"""Whole numbers above it are not the same in every JSON reader."""


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
    notebook: NotebookIn | None = None
    command: Annotated[
        list[Annotated[str, Field(max_length=4096)]],
        Field(max_length=256, description="Program and arguments, instead of a notebook."),
    ] = []
    archive: Annotated[
        str, Field(description="A .tar.gz of the working folder, in base64; 32 MiB at most.")
    ] = ""
    workdir: Annotated[
        str, Field(max_length=1024, description="Working folder below the home; the home itself.")
    ] = ""
    memory_bytes: Annotated[
        int, Field(description="Memory that its processes may use together; 0 for any.")
    ] = 0
    retries: Annotated[int, Field(description="How often a lost attempt is tried again.")] = 0
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

    pid: Annotated[int, Field(ge=1, le=LARGEST)]
    started_at: Annotated[float, Field(allow_inf_nan=False)]


class EventIn(In):
    seq: Annotated[int, Field(ge=1, le=LARGEST)]
    at: Annotated[float, Field(allow_inf_nan=False)]
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


class StepOut(Out):
    """Progress inside a cell or a command: ``done`` of ``of``, in whatever unit it counts."""

    done: float
    of: float | None = None
    text: str = ""


class ProgressOut(Out):
    """How far a job has come: over its code cells, and inside the one that runs."""

    cells: int
    done: int
    current: int | None = None
    step: StepOut | None = None


class FileOut(Out):
    """A file that a job put into ``$CARREL_OUTPUT_DIR``; ``name`` may hold folders."""

    name: str
    size: int
    modified_at: float


class FilesOut(Out):
    files: list[FileOut]
    left_out: int = 0
    """Entries that are not offered: links, special files, names that are no UTF-8, too many."""


class GroupOut(Out):
    """A group that the caller may use, with the limits that hold for it now."""

    name: str
    max_devices: int
    max_devices_per_user: int
    max_seconds: int
    teachers: list[str] = []


class GroupsOut(Out):
    groups: list[GroupOut]


class QueueEntryOut(Out):
    """A place in the queue; who and what only for those entitled to see it."""

    place: int
    kind: str
    devices: int
    sentence: str
    expected_at: float | None = None
    yours: bool
    request_id: str | None = None
    owner: str | None = None
    group: str | None = None
    title: str = ""


class QueueOut(Out):
    queue: list[QueueEntryOut]
    total: int = 0
    """How many wait altogether; ``queue`` holds the first of them."""


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
    command: list[str] = []
    workdir: str = ""
    memory_bytes: int = 0
    retries: int = 0
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
    next: str = ""
    """Cursor of the following page; empty on the last one."""


class ErrorBody(Out):
    code: str
    message: str
    accepted: str = ""


class ErrorOut(Out):
    """A problem after RFC 9457; ``error`` says the same once more, in the older form.

    ``code`` is stable and made for programs, ``detail`` is the sentence for people, and
    ``accepted`` says what would have been accepted, where that helps.
    """

    type: str = "about:blank"
    title: str = ""
    status: int = 0
    detail: str = ""
    code: str = ""
    accepted: str = ""
    error: ErrorBody
