"""What the store keeps, as frozen values. Times are seconds since the epoch (UTC)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from ..scheduling.model.idleness import IdleWarning
from ..scheduling.model.snapshot import Kind, PriorityClass
from ..scheduling.model.states import State
from .json_value import Json
from .leases import LeaseRecord
from .notices import StopNotice


class CauseCode(StrEnum):
    """Why a request ended, for programs; the sentence is in ``Cause.message``."""

    SUCCEEDED = "succeeded"
    CELL_ERROR = "cell_error"
    KERNEL_DIED = "kernel_died"
    OUT_OF_MEMORY = "out_of_memory"
    COMMAND_FAILED = "command_failed"
    """A command that exited with a status other than 0, or by a signal."""
    START_FAILED = "start_failed"
    SERVER_DIED = "server_died"
    STOPPED = "stopped"
    """A session that its owner closed."""
    CANCELLED = "cancelled"
    TIME_LIMIT = "time_limit"
    IDLE = "idle"
    """A session that held devices and did nothing, after a warning."""
    UNCLAIMED = "unclaimed"
    """A held device that its owner did not claim in time."""
    LOST = "lost"
    DEVICE_FAULT = "device_fault"
    """A device of its lease failed; that attempt is charged nothing."""
    PREEMPTED = "preempted"
    """It was preempted; it is queued again."""
    BUDGET = "budget"
    """Its group has used its budget of this period."""
    DRAINED = "drained"
    """Its device or node was emptied by a date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why it ended: one sentence, and the details under it (traceback, log tail)."""

    code: CauseCode
    message: str
    details: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What a job executes: a notebook (in ``Files``, as the request's input) or a command.

    Attributes:
        notebook_name: empty for a command.
        kernel: name of the kernel spec; the notebook's own where empty.
        command: program and arguments; empty for a notebook.
        workdir: working folder below the owner's home, "" for the home itself; an uploaded
            archive is unpacked into a folder of the attempt, which is the working folder then.
        archive: whether files were uploaded with the job.
        memory_bytes: resident memory that all its processes together may use; 0 for any.
        retries: how often an attempt that was lost is tried again.
        internet: whether it reaches more than Carrel's service, on an engine that can keep it.
    """

    notebook_name: str
    parameters: Mapping[str, Json] = field(default_factory=dict)
    kernel: str = ""
    output_name: str = ""
    command: tuple[str, ...] = ()
    workdir: str = ""
    archive: bool = False
    memory_bytes: int = 0
    retries: int = 0
    internet: bool = True

    def as_json(self) -> dict[str, Json]:
        """Return every field by its name, as JSON: the form in the database and in files."""
        values: dict[str, Json] = {each.name: getattr(self, each.name) for each in fields(self)}
        return values | {"parameters": dict(self.parameters), "command": list(self.command)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> JobSpec:
        """Read that form; a field that is missing, as in older rows and files, has its default."""
        return cls(**{**values, "command": tuple(values.get("command", ()))})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest:
    """A request that passed admission.

    Attributes:
        server_name: of a session: the JupyterHub server name, "" for the default server.
        idempotency_key: unique for its owner; the same key returns the first request.
        claim: of a session: once granted, it is held until its owner claims it.
        preemptible: whether it may be preempted for the guaranteed quota of another group.
        deadline: when it should have ended.
        expected: seconds that it is expected to run, from what ran before it; None: unknown.
        image: ``NAME@sha256:…``, empty on an engine without images.
    """

    id: str
    kind: Kind
    owner: str
    group: str
    devices: int
    seconds: int
    idempotency_key: str
    model: str | None = None
    priority: PriorityClass = PriorityClass.NORMAL
    server_name: str = ""
    job: JobSpec | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    claim: bool = False
    preemptible: bool = False
    deadline: float | None = None
    expected: float | None = None
    image: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """A request with what became of it.

    Attributes:
        target: while stopping, the state it will end in once death is confirmed.
        cause: set as soon as it is known, final in a terminal state.
        lease: of the newest attempt, released or not; None while it never had one.
        claim: of a session: once granted, it is held until its owner claims it.
        claimed_at: when its owner did.
    """

    id: str
    kind: Kind
    owner: str
    group: str
    devices: int
    seconds: int
    idempotency_key: str
    model: str | None
    priority: PriorityClass
    server_name: str
    job: JobSpec | None
    labels: Mapping[str, str]
    state: State
    submitted_at: float
    target: State | None = None
    cause: Cause | None = None
    started_at: float | None = None
    """First time in ``running``."""
    ended_at: float | None = None
    lease: LeaseRecord | None = None
    claim: bool = False
    claimed_at: float | None = None
    warning: IdleWarning | None = None
    """Of a running session: it is idle and will be stopped."""
    kept_at: float | None = None
    """When its owner kept it after such a warning."""
    preemptible: bool = False
    deadline: float | None = None
    expected: float | None = None
    image: str = ""
    notice: StopNotice | None = None
    """The preemption notice of an attempt that holds devices."""
    changes: int = 0
    """How often its owner changed what it asks for while it waited."""
    moved_for: str = ""
    """The request that it was moved for, until it is granted devices again."""
    stopped_for: str = ""
    """The same of one for which it was stopped otherwise."""

    @property
    def unclaimed(self) -> bool:
        """Nothing of it starts before its owner claims it."""
        return self.claim and self.claimed_at is None

    @property
    def trusted(self) -> bool:
        """Whether this is work of the service itself, which runs as the service's account."""
        return self.kind is Kind.GRADING


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestChange:
    """What a request that waits shall ask for instead; None: as before.

    Attributes:
        model: "" for devices of any model.
    """

    devices: int | None = None
    seconds: int | None = None
    group: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilter:
    """None means: any; what is given must all hold.

    Attributes:
        reader: only requests of this person, or of the groups in ``reader_groups``.
        labels: every one of these, with these values.
        ids: only these.
        before: only requests that were submitted before this one; nothing if there is no such.
        text: only those with this in their id, session's name, notebook's name or command,
            whether it is written in capitals or not.
    """

    owner: str | None = None
    groups: frozenset[str] | None = None
    kind: Kind | None = None
    states: frozenset[State] | None = None
    server_name: str | None = None
    reader: str | None = None
    reader_groups: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)
    ids: frozenset[str] | None = None
    before: str | None = None
    text: str | None = None
    node: str | None = None
    """Only requests whose newest lease is on this node."""
    limit: int = 200


def more_than_now(request: RequestRecord, seconds: int, seen: int | None) -> int:
    """Return the seconds that an extension adds; with ``seen`` a repeated one adds none."""
    return seconds if seen is None else max(0, seen + seconds - request.seconds)
