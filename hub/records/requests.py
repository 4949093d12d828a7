"""Requests as frozen values. Times are seconds since the epoch (UTC)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from ..scheduling.model.idleness import IdleWarning
from ..scheduling.model.snapshot import Kind, PriorityClass
from ..scheduling.model.states import State
from .dependencies import ResultParameter
from .gangs import JobGang
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
    """The service could not start it."""
    INVALID_JOB = "invalid_job"
    """It cannot run as submitted: its kernel, program, folder or notebook is missing."""
    MISSING_RESULT = "missing_result"
    """A parameter is to have a value of an earlier job, which has not given it."""
    MISSING_SECRET = "missing_secret"  # noqa: S105  # the name of a cause
    """A secret that it uses was removed, or its owner may not use it any more."""
    KERNEL_NOT_STARTED = "kernel_not_started"
    CONNECTION_FAILED = "connection_failed"
    """A cell that lost the connection to a host, or did not reach it in time."""
    DISK_FULL = "disk_full"
    TEMPORARY_FAILURE = "temporary_failure"
    """A command that exited with status 75 (``EX_TEMPFAIL`` of sysexits.h)."""
    SERVER_DIED = "server_died"
    STOPPED = "stopped"
    """A session that its owner closed."""
    CANCELLED = "cancelled"
    HALTED = "halted"
    """A job that saved its work and was stopped by a user, to be resumed."""
    TIME_LIMIT = "time_limit"
    IDLE = "idle"
    """A session that stayed idle with devices after a warning."""
    UNCLAIMED = "unclaimed"
    """A held device that its owner did not claim in time."""
    LOST = "lost"
    DEVICE_FAULT = "device_fault"
    """A device of its lease failed; that attempt is not charged."""
    PREEMPTED = "preempted"
    """It was preempted; it is queued again."""
    BUDGET = "budget"
    """Its group has used its budget of this period."""
    DRAINED = "drained"
    """The drain of its device or node reached its end date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The cause of an end: one sentence, with details (traceback, log tail)."""

    code: CauseCode
    message: str
    details: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepStages:
    """The stages of a sweep: cells that run once for some of its trials.

    Attributes:
        stages: of each the index of the stage before it (-1: none), the index of its first cell,
            and of the one after its last, and how often it runs with all below it for each run of
            the stage before it; a stage follows the one before it.
        hashes: of the sources of all cells, as attempts report them.
        recorded: seconds of all cells, as the notebook records them from an earlier run; empty if
            it does not.
    """

    stages: tuple[tuple[int, int, int, int], ...]
    hashes: tuple[str, ...]
    recorded: tuple[float, ...] = ()

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> SweepStages:
        """Load the form of ``asdict``."""
        return cls(
            stages=tuple(_stage(*each) for each in values["stages"]),
            hashes=tuple(values["hashes"]),
            recorded=tuple(values["recorded"]),
        )


def _stage(before: int, first: int, after: int, times: int = 1) -> tuple[int, int, int, int]:
    """Return a stored stage; those of earlier versions have no number of times."""
    return before, first, after, times


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOrder:
    """How a job runs its notebook once for each trial.

    Attributes:
        space: the trials, as ``space_from_json`` of ``hub.sweeps`` reads them.
        trials: how many these are.
        parallel: how many trials run at a time; the devices of the job are divided among them.
        share: whether cells that are the same for several trials run once.
        trial_seconds: time limit of one trial, its shared cells included; 0 for none.
        objective: name of the reported value by which trials are compared; empty for none.
        maximize: whether the best trial has the largest value.
        together: whether the notebook runs once, with the values of all trials as lists.
        stages: what trials share, by the analysis of the notebook; None if it is not known.
        without_stages: why it is not known, as a clause; empty if it is.
    """

    space: Mapping[str, Json]
    trials: int
    parallel: int = 1
    share: bool = True
    trial_seconds: int = 0
    objective: str = ""
    maximize: bool = False
    together: bool = False
    stages: SweepStages | None = field(default=None, compare=False)
    without_stages: str = field(default="", compare=False)

    def as_json(self) -> dict[str, Json]:
        return asdict(self) | {"space": dict(self.space)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> SweepOrder:
        """Load that form; unknown keys are ignored."""
        names = {field.name for field in fields(cls)} - {"stages"}
        found = values.get("stages")
        return cls(
            **{name: value for name, value in values.items() if name in names},
            stages=SweepStages.from_json(found) if found else None,
        )


_LISTS = ("command", "notes", "after", "secrets", "accepted_changes")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """The program of a job: a notebook (in ``Files``, as the request's input) or a command.

    Attributes:
        notebook_name: empty for a command.
        kernel: name of the kernel spec; empty for that of the notebook.
        command: program and arguments; empty for a notebook.
        workdir: working folder below the owner's home, "" for the home itself; with an uploaded
            archive, the working folder is a folder of the attempt with the unpacked files.
        archive: whether files were uploaded with the job.
        memory_bytes: limit of the resident memory of all its processes; 0 for no limit.
        retries: how often it is retried after a transient or infrastructure error; None for the
            default of the class of the error, 0 for a job that must not run twice.
        internet: whether it may reach more than Carrel's service; needs an engine that can
            restrict this.
        notes: what was repaired in the notebook when it was submitted, one sentence each.
        resumes: id of the ended job that this one goes on with; empty otherwise.
        continuation: name of the state that a session has saved for this job in its owner's home;
            empty otherwise.
        from_cell: number of the first code cell that it executes; 0: the one after the last cell
            whose variables were saved.
        after: the jobs that it waits for, as ``Dependency`` reads them.
        results: parameters that get values of these jobs; the values are added to ``parameters``
            when the job is released, once.
        secrets: the secrets that it uses, as ``SecretUse`` reads them.
        gang: its members, if it has several; ``command`` is then that of the first role that must
            succeed.
        sweep: its trials, if the notebook runs once for each set of parameters.
        computes_prefix: whether it saves its variables for jobs that begin with the same cells: a
            job of a course, of the given cells of an assignment.
        rerun_of: id of the job that this one repeats by its receipt; empty otherwise.
        accepted_changes: how image or inputs differed from those of that job, one sentence each.
        program: name of the program of its owner that submitted it; empty: the owner did.
        source_hash: hash of the cells of its notebook, by which runs of the same code are found;
            empty for a command, and for jobs of earlier versions.
    """

    notebook_name: str
    parameters: Mapping[str, Json] = field(default_factory=dict)
    kernel: str = ""
    output_name: str = ""
    command: tuple[str, ...] = ()
    workdir: str = ""
    archive: bool = False
    memory_bytes: int = 0
    retries: int | None = None
    internet: bool = True
    notes: tuple[str, ...] = ()
    resumes: str = ""
    from_cell: int = 0
    continuation: str = ""
    after: tuple[str, ...] = ()
    results: tuple[ResultParameter, ...] = ()
    secrets: tuple[str, ...] = ()
    gang: JobGang | None = None
    sweep: SweepOrder | None = None
    computes_prefix: bool = False
    rerun_of: str = ""
    accepted_changes: tuple[str, ...] = ()
    program: str = ""
    source_hash: str = ""

    def as_json(self) -> dict[str, Json]:
        """Return every field by its name, as JSON: the form in the database and in files."""
        values: dict[str, Json] = {field.name: getattr(self, field.name) for field in fields(self)}
        lists = {name: list(getattr(self, name)) for name in _LISTS}
        gang = None if self.gang is None else self.gang.as_json()
        sweep = None if self.sweep is None else self.sweep.as_json()
        nested: dict[str, Json] = {
            "parameters": dict(self.parameters),
            "results": [dict(each.as_json()) for each in self.results],
            "gang": gang,
            "sweep": sweep,
        }
        return values | nested | lists

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> JobSpec:
        """Load that form; fields missing in older rows and files get their default."""
        lists = {name: tuple(values.get(name, ())) for name in _LISTS}
        gang, sweep = values.get("gang"), values.get("sweep")
        nested = {
            "results": tuple(ResultParameter(**each) for each in values.get("results", ())),
            "gang": JobGang.from_json(gang) if gang else None,
            "sweep": SweepOrder.from_json(sweep) if sweep else None,
        }
        return cls(**{**values, **lists, **nested})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest:
    """A request that passed admission.

    Attributes:
        server_name: of a session: the JupyterHub server name, "" for the default server.
        idempotency_key: unique for its owner; the same key returns the first request.
        claim: of a session: once granted, it is held until its owner claims it.
        preemptible: whether it may be preempted for the guaranteed quota of another group.
        deadline: when it should have ended.
        expected: predicted run time in seconds, from earlier jobs; None: unknown.
        image: ``NAME@sha256:…``, empty on an engine without images.
        not_before: ``UNTIL_RELEASED`` for one that waits for other jobs.
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
    not_before: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """A request with its state.

    Attributes:
        target: while stopping, the state after all its processes have ended.
        cause: set as soon as it is known, final in a terminal state.
        lease: of the newest attempt, released or not; None before the first one.
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
    """The idle warning of a running session."""
    kept_at: float | None = None
    """When its owner kept it after an idle warning."""
    preemptible: bool = False
    deadline: float | None = None
    expected: float | None = None
    image: str = ""
    notice: StopNotice | None = None
    """The preemption notice of an attempt that holds devices."""
    changes: int = 0
    """How often its owner amended it while it was queued."""
    moved_for: str = ""
    """The request that it was relocated for, until it is granted devices again."""
    stopped_for: str = ""
    """The request that it was preempted for, until it is granted devices again."""
    expedited: bool = False
    """Its node or device failed: it is first in its priority class until it is granted devices."""
    not_before: float | None = None
    """End of the back-off before its next attempt, until it is granted devices; ``UNTIL_RELEASED``
    while it waits for other jobs."""

    @property
    def unclaimed(self) -> bool:
        """Whether it is not started until its owner claims it."""
        return self.claim and self.claimed_at is None

    @property
    def gang(self) -> JobGang | None:
        """Its members, if it has several."""
        return None if self.job is None else self.job.gang

    @property
    def program(self) -> str:
        """Name of the program of its owner that submitted it; empty: the owner did."""
        return "" if self.job is None else self.job.program

    @property
    def trusted(self) -> bool:
        """Whether this is a task of the service itself, which runs as the service's account."""
        return self.kind is Kind.GRADING


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestChange:
    """An amendment of a queued request; None keeps the present value.

    Attributes:
        model: "" for devices of any model.
    """

    devices: int | None = None
    seconds: int | None = None
    group: str | None = None
    model: str | None = None


class RequestOrder(StrEnum):
    """The order of a list of requests; the newest first among equals."""

    NEWEST = "newest"
    OLDEST = "oldest"
    LONGEST = "longest"
    """By run time so far; requests that never started are last."""
    SHORTEST = "shortest"
    MOST_DEVICES = "most-devices"
    FEWEST_DEVICES = "fewest-devices"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilter:
    """A filter on requests: all given fields must match, None matches all.

    Attributes:
        reader: only requests of this user, or of the groups in ``reader_groups``.
        labels: only requests with all of these labels.
        before: only requests that come after this one in the order; none if it does not exist.
        resumes: only jobs that resume one of these.
        after: only jobs that wait, or have waited, for one of these; ``since`` makes it faster.
        since: only requests submitted at this time or later.
        held: only queued requests that wait for other jobs.
        now: the time up to which running requests have run, for an order by run time.
        text: only requests with this text in the id, session name, notebook name or command,
            ignoring case.
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
    program: str | None = None
    """Only jobs that a program of this name submitted; for the programs of one owner."""
    before: str | None = None
    text: str | None = None
    node: str | None = None
    """Only requests whose newest lease is on this node."""
    resumes: frozenset[str] | None = None
    after: frozenset[str] | None = None
    since: float | None = None
    held: bool = False
    order: RequestOrder = RequestOrder.NEWEST
    now: float = 0.0
    limit: int = 200


def more_than_now(request: RequestRecord, seconds: int, seen: int | None) -> int:
    """Return the seconds that an extension adds; with ``seen`` a repeated one adds none."""
    return seconds if seen is None else max(0, seen + seconds - request.seconds)
