"""What is answered about people, the pool and requests."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from .base import Out
from .calendar import ReservationOut


class DeviceOut(Out):
    """A device as the reader may see it.

    ``draining`` and ``quarantined`` say that nothing new starts on it, also while ``state`` says
    whose it is; ``drain_until`` is when what is left on it will be stopped.
    """

    id: str
    node: str
    index: int
    model: str
    memory_bytes: int
    simulated: bool
    state: Literal["free", "yours", "taken", "busy", "sick", "gone", "draining"]
    why: str = ""
    draining: bool = False
    drain_until: float | None = None
    quarantined: bool = False
    request_id: str | None = None
    owner: str | None = None


class WaitOut(Out):
    """Place in the queue, why, and until when.

    ``sentence`` is ready to be shown. ``why`` is the same without the place, for whoever shows the
    place by itself.
    """

    place: int
    ahead: int
    reason: str
    sentence: str
    why: str = ""
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
    image: str = ""
    """What it runs in, as ``NAME@sha256:…``; empty on an engine without images."""
    node: str = ""
    """The machine that it runs on, where the pool has several; it need not have a device."""


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
    idle_seconds: int = 0
    """After how long without work a session with devices is warned; 0 for never."""
    models: list[str] | None = None
    """The device models that it may ask for; null for all."""
    teachers: list[str] = []


class GroupsOut(Out):
    groups: list[GroupOut]


class QueueEntryOut(Out):
    """A place in the queue; who, what and ``why`` only for those entitled to see it.

    ``sentence`` is the place and ``why``.
    """

    place: int
    kind: str
    devices: int
    model: str | None = None
    sentence: str
    why: str = ""
    expected_at: float | None = None
    latest_at: float | None = None
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
    model: str | None = None
    """Only devices of this model; null for any."""
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
    priority: str = "normal"
    preemptible: bool = False
    """It may be stopped for a guarantee, and is queued again then."""
    image: str = ""
    """What it runs in, as ``NAME@sha256:…``; empty on an engine without images."""
    internet: bool = True
    """Whether it may reach more than this site's service."""
    deadline: float | None = None
    expected_seconds: float | None = None
    """How long it is expected to run, from what ran before it."""
    labels: dict[str, str] = {}
    wait: WaitOut | None = None
    cause: CauseOut | None = None
    lease: LeaseOut | None = None
    progress: ProgressOut | None = None
    device_seconds: float = 0.0
    ended: bool = False
    claim: bool = False
    """Its device will be held for its owner instead of starting by itself."""
    claim_by: float | None = None
    """Granted and held: when the claim window ends."""
    warning: WarningOut | None = None
    """About to be stopped, and why: idle on a device, or its device is asked back."""


class EventOut(Out):
    id: int
    request_id: str
    epoch: int
    at: float
    kind: str
    data: dict[str, JsonValue]


class WarningOut(Out):
    """Why what runs will be stopped, and when.

    ``seen`` holds the evidence, one sentence each, of a session with a device that does nothing.
    """

    stops_at: float
    message: str
    seen: list[str] = []
    can_keep: bool = True
    """Whether its owner may keep it: once."""
    final: bool = False
    """Whatever runs in it, it is stopped: what holds its devices is asked back."""


class WatchOut(Out):
    """How a session stands: ``warning`` while it is about to be stopped for being idle.

    ``again_seconds`` is when it should tell of its kernels again.
    """

    state: str
    warning: WarningOut | None = None
    again_seconds: float


class QuoteOut(Out):
    """What would happen to a request that nobody has sent yet; nothing is reserved by it.

    ``sentence`` is ready to be shown. ``device_seconds`` is what the whole time limit would
    be charged. A request that would be refused has ``admitted`` false and the refusal's
    ``message`` and ``accepted``.
    """

    admitted: bool
    sentence: str
    group: str = ""
    devices: int = 0
    starts_now: bool = False
    place: int = 0
    ahead: int = 0
    expected_at: float | None = None
    latest_at: float | None = None
    device_seconds: float = 0.0
    message: str = ""
    accepted: str = ""


class QuotesOut(Out):
    quotes: list[QuoteOut]


class MeOut(Out):
    name: str
    admin: bool
    groups: list[str]
    teaches: list[str]


class PoolOut(Out):
    """The devices, and the next ``reservations`` of everybody: they say when it will be smaller."""

    devices: list[DeviceOut]
    free: int
    total: int
    waiting: int
    simulated: bool
    reservations: list[ReservationOut] = []


class RequestsOut(Out):
    requests: list[RequestOut]
    next: str = ""
    """Cursor of the following page; empty on the last one."""
