"""Bodies of requests, sessions and quotes."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, JsonValue

from .base import LARGEST, LONGEST, MODEL_LENGTH, Devices, FiniteJson, In, Moment, Out
from .pool import DeviceOut
from .sweeps import SweepIn, SweepOut

EXTEND_SECONDS: Final = 1800
"""By how much one press of a button extends a time limit."""
MOST_DEPENDENCIES: Final = 64
MOST_RESULTS: Final = 100
LONGEST_RESULT: Final = 200
"""Jobs that one job may wait for."""
MOST_RETRIES: Final = 10
LONGEST_ARGUMENT: Final = 65_536
"""Characters of one argument of a command, which may be a whole script of a shell."""
SAVED_STATE = r"^([0-9a-f]{32})?$"
"""Names of the states of notebooks that sessions save for jobs."""


class WaitOut(Out):
    """Position in the queue, reason, and expected start.

    ``sentence`` is for display. ``why`` is the same without the position, for views that show the
    position elsewhere.
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


class GangMemberOut(Out):
    """A member of a job of several members, in its newest attempt."""

    rank: int
    """From 0; member 0 is the one that the others connect to."""
    role: str
    number: int
    """From 0, within its role."""
    state: str
    """`granted`, `starting`, `running`, `succeeded`, `failed` or `stopped`."""
    node: str = ""
    devices: list[str] = []
    """Ids of its devices."""
    address: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    cause: CauseOut | None = None


class RoleOut(Out):
    """Equal members of a job; it starts with `minimum` to `maximum` of them."""

    name: str
    command: list[str] = []
    devices: int = 0
    minimum: int = 1
    maximum: int = 1
    image: str = ""


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
    """The image, as ``NAME@sha256:…``; empty on a backend without images."""
    node: str = ""
    """The node, if the pool has several; also for work without devices."""
    members: list[GangMemberOut] = []
    """By rank; empty for work of one member."""


class StepOut(Out):
    """Progress inside a cell or a command: ``done`` of ``of``, in any unit."""

    done: float
    of: float | None = None
    text: str = ""


class ProgressOut(Out):
    """Progress of a job: over its code cells, and inside the running one."""

    cells: int
    done: int
    current: int | None = None
    step: StepOut | None = None


class RemainingOut(Out):
    """The predicted remaining run time of a running job, in seconds; advice only."""

    seconds: float
    """The typical one; what is left of the time limit if nothing is known."""
    low: float
    high: float
    """9 of 10 such jobs have between `low` and `high` left."""
    by_cells: bool = False
    """Whether it is predicted from the times of cells, and not only from whole run times."""
    by_trials: bool = False
    """Whether it is predicted from the trials of a sweep that have ended, which `runs` counts."""
    by_steps: bool = False
    """Whether it is predicted from the progress that the job reports (`carrel.progress`), alone."""
    basis: str | None = None
    """The most alike earlier jobs, as for run times; null if it is predicted from cells, trials or
    steps, or unknown."""
    runs: int = 0
    """The number of earlier jobs that were used; 0: it is unknown, or no cell is left."""
    sentence: str


class FileOut(Out):
    """A file that a job wrote to ``$CARREL_OUTPUT_DIR``; ``name`` may contain folders."""

    name: str
    size: int
    modified_at: float


class FilesOut(Out):
    files: list[FileOut]
    left_out: int = 0
    """Number of omitted entries: links, special files, names that are not UTF-8, too many."""


class UtilizationOut(Out):
    """What an attempt has used; null for what was not measured, as on simulated devices.

    The use of a device is that of the whole device. Memory that processes share counts for each.
    """

    mean_cores: float | None = None
    peak_memory_bytes: int | None = None
    mean_device_percent: float | None = None
    """Mean over its devices and over time."""
    peak_device_bytes: int | None = None
    """On all its devices together."""


class UtilizationSeriesOut(UtilizationOut):
    """What an attempt has used over time: lists with one value for each interval."""

    epoch: int
    begins_at: float
    seconds: float
    """Length of the interval of each value."""
    cores: list[float | None]
    memory_bytes: list[int | None]
    device_percent: list[float | None]
    device_bytes: list[int | None]


class UtilizationsOut(Out):
    attempts: list[UtilizationSeriesOut]


class ResultOut(Out):
    """A parameter whose value an earlier job gives."""

    name: str
    """The parameter."""
    job: str
    value: str
    """`report.NAME`, `best.NAME`, `trial` or `id`."""
    source: str = ""
    """The job that gave the value, which is `job` or one that resumes it; empty until then."""


class JobSignOut(Out):
    """A sign that something may be wrong with a job; it stops nothing."""

    kind: str
    """Such as `loss-not-finite`, `memory-growth` or `devices-idle`."""
    title: str
    message: str
    """What was measured, as a sentence."""
    suggestion: str
    since: float
    ended_at: float | None = None
    """When it was no longer found; null while it lasts."""
    figures: dict[str, JsonValue] = {}


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
    """The end by the time limit; null before the grant."""
    server_name: str = ""
    notebook: str = ""
    output: str = ""
    parameters: dict[str, JsonValue] = {}
    command: list[str] = []
    workdir: str = ""
    memory_bytes: int = 0
    retries: int | None = None
    """Retries after a transient or infrastructure error; null for the defaults."""
    notes: list[str] = []
    """What was repaired in the notebook when it was submitted, one sentence each."""
    priority: str = "normal"
    preemptible: bool = False
    """Whether it may be preempted; it is then queued again."""
    image: str = ""
    """The image, as ``NAME@sha256:…``; empty on a backend without images."""
    internet: bool = True
    """Whether it has access to the internet, and not only to the service of this site."""
    deadline: float | None = None
    expected_seconds: float | None = None
    """Its expected run time, from earlier requests."""
    labels: dict[str, str] = {}
    program: str = ""
    """The program of its owner that submitted it; empty: the owner did."""
    resumes: str = ""
    """The ended job that this one goes on with."""
    rerun_of: str = ""
    """The job that this one repeats by its receipt."""
    after: list[str] = []
    """Jobs that it waits for, or has waited for."""
    results: list[ResultOut] = []
    """Parameters that have values of these jobs, or will have them when it is released."""
    secrets: list[str] = []
    """The secrets that it uses, as `NAME:file` or `NAME:env=VARIABLE`, with `@GROUP` for those of a
    group."""
    roles: list[RoleOut] = []
    """The roles of a job of several members; `command` is then that of the first role that must
    succeed."""
    arrangement: str = ""
    """How the members of a job are placed: `pack`, `spread` or `node`."""
    must_succeed: list[str] = []
    """The roles that must succeed; empty for all."""
    sweep: SweepOut | None = None
    """How it runs its trials, if it is a sweep."""
    wait: WaitOut | None = None
    expedited: bool = False
    """Its node or device failed: it is first in its priority class."""
    not_before: float | None = None
    """End of the back-off before its next attempt."""
    cause: CauseOut | None = None
    lease: LeaseOut | None = None
    progress: ProgressOut | None = None
    remaining: RemainingOut | None = None
    """Of a running job; null while the service loads its history."""
    utilization: UtilizationOut | None = None
    """What its newest attempt has used so far; null in lists, and before it was measured."""
    device_seconds: float = 0.0
    ended: bool = False
    claim: bool = False
    """Whether its device is held for its owner, instead of starting it automatically."""
    claim_by: float | None = None
    """For held devices: the end of the claim window."""
    warning: WarningOut | None = None
    """The reason and time of an announced stop; of several reasons the one that acts first."""
    signs: list[JobSignOut] = []
    """What may be wrong with its newest attempt, with the evidence; empty in lists."""


class PipelineJobOut(Out):
    """A job of a pipeline."""

    id: str
    name: str
    """Its name in the file of the pipeline; its notebook or command for other jobs."""
    state: str
    owner: str


class PipelineLinkOut(Out):
    """An arrow from one job to another."""

    first: str
    then: str
    kind: Literal["ok", "any", "resumes"]
    """`then` waits until `first` has succeeded, or has ended; or `then` resumes `first`."""


class ExpectedEndOut(Out):
    """When all jobs of a pipeline that have not ended are expected to have ended; advice only.

    It is computed on the present queue, with the predicted run time of each job. ``unknown`` is the
    number of jobs without one: they count with their time limits.
    """

    at: float
    earliest: float
    latest: float
    unknown: int = 0


class PipelineOut(Out):
    """The jobs that a job waits for and those that wait for it, over all steps."""

    jobs: list[PipelineJobOut]
    """In the order of their submission."""
    links: list[PipelineLinkOut]
    cut: bool = False
    """Whether there are more jobs than these, which are the nearest ones."""
    expected_end: ExpectedEndOut | None = None
    """Null once all jobs have ended, and if one waits for a job that has failed."""


class EventOut(Out):
    id: int
    request_id: str
    epoch: int
    at: float
    kind: str
    data: dict[str, JsonValue]


class WarningOut(Out):
    """The announced stop of a running request.

    ``seen`` lists the evidence that a session with devices is idle, in sentences.
    """

    kind: Literal["idle", "preemption", "halt", "drain", "time_limit"] = "idle"
    stops_at: float
    message: str
    seen: list[str] = []
    can_keep: bool = True
    """Whether its owner can keep it, which is possible once."""
    final: bool = False
    """Whether it stops regardless of activity: for any reason but that it is idle."""

    @property
    def may_extend(self) -> bool:
        """Whether more time could help."""
        return not self.final or self.kind == "time_limit"


class QuoteOut(Out):
    """The expected start and charge of a request before it is submitted; nothing is reserved.

    ``sentence`` is for display. ``device_seconds`` is the charge for the whole time limit. If the
    request would be refused, ``admitted`` is false, and ``message`` and ``accepted`` are those of
    the refusal.
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


class RequestsOut(Out):
    requests: list[RequestOut]
    next: str = ""
    """Cursor of the next page; empty on the last one."""


MAX_NOTEBOOK_BYTES = 32 * 1024 * 1024
SCRIPT = ".py"
"""Suffix of the scripts that are accepted as notebooks."""


Model = Annotated[str, Field(min_length=1, max_length=MODEL_LENGTH)]
"""The name of a device model in the pool."""


class NotebookIn(In):
    name: Annotated[str, Field(min_length=1, max_length=255)]
    content: Annotated[
        str,
        AfterValidator(lambda text: text.removeprefix("\ufeff")),
        Field(description="The text of the .ipynb file, or of a Python script (.py)."),
    ]


class RoleIn(In):
    """Equal members of a job of several members.

    `count` members, or from `minimum` to `maximum`: it starts with as many as fit.
    """

    name: Annotated[str, Field(max_length=64)]
    command: Annotated[
        list[Annotated[str, Field(max_length=LONGEST_ARGUMENT)]],
        Field(max_length=256, description="Program and arguments of each member."),
    ] = []
    devices: Annotated[Devices, Field(description="Whole devices of each member.")] = 0
    count: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    image: Annotated[str, Field(max_length=160, description="As for a job.")] = ""


class JobIn(In):
    """Body of ``POST /api/v1/requests``."""

    kind: Literal["job"] = "job"
    group: Annotated[str, Field(min_length=1, max_length=64)]
    devices: Annotated[Devices, Field(description="Whole devices, 0 for a job on CPU.")] = 0
    model: Annotated[
        Model | None, Field(description="Only devices of this model, as in `/pool`.")
    ] = None
    seconds: Annotated[int, Field(description="Time limit.")] = 3600
    notebook: NotebookIn | None = None
    command: Annotated[
        list[Annotated[str, Field(max_length=LONGEST_ARGUMENT)]],
        Field(max_length=256, description="Program and arguments, instead of a notebook."),
    ] = []
    archive: Annotated[
        str, Field(description="A .tar.gz of the working folder in base64, at most 32 MiB.")
    ] = ""
    workdir: Annotated[
        str,
        Field(max_length=1024, description="Working folder below the home; by default the home."),
    ] = ""
    memory_bytes: Annotated[
        int, Field(description="Memory limit of all its processes; 0 for the limit of the backend.")
    ] = 0
    retries: Annotated[
        int | None,
        Field(
            description="Retries after a transient or infrastructure error; null for the default "
            "of each class, 0 for a job that must not run twice."
        ),
    ] = None
    priority: Annotated[
        Literal["opportunistic", "normal", "urgent"],
        Field(description="`opportunistic` is served last; `urgent` is for teachers."),
    ] = "normal"
    preemptible: Annotated[
        bool, Field(description="Whether it may be preempted and queued again.")
    ] = True
    deadline: Annotated[
        Moment | None, Field(description="The time at which it should have ended.")
    ] = None
    image: Annotated[
        str,
        Field(
            max_length=160,
            description="Such as `torch` or `torch@sha256:…`; by default the default image.",
        ),
    ] = ""
    internet: Annotated[
        bool, Field(description="Whether it has access to more than the service of this site.")
    ] = True
    parameters: dict[str, FiniteJson] = {}
    kernel: Annotated[str, Field(max_length=128)] = ""
    output: Annotated[
        str, Field(max_length=255, description="File name of the output notebook.")
    ] = ""
    labels: dict[str, str] = {}
    continuation: Annotated[
        str,
        Field(
            pattern=SAVED_STATE,
            description="Name of the state that a session has saved in the home for this job.",
        ),
    ] = ""
    after: Annotated[
        list[Annotated[str, Field(max_length=80)]],
        Field(
            max_length=MOST_DEPENDENCIES,
            description="Jobs that it waits for: `JOB` or `JOB:ok`, which must have succeeded, or "
            "`JOB:any`, which must have ended.",
        ),
    ] = []
    results: Annotated[
        dict[str, Annotated[str, Field(max_length=LONGEST_RESULT)]],
        Field(
            max_length=MOST_RESULTS,
            description="Parameters that get values of jobs in `after` when these have ended: "
            "`JOB.report.NAME`, the last value reported as NAME (of a sweep, by its best trial), "
            "`JOB.best.NAME`, a parameter of the best trial of a sweep, `JOB.trial`, its number, "
            "or `JOB.id`.",
        ),
    ] = {}
    secrets: Annotated[
        list[Annotated[str, Field(max_length=200)]],
        Field(
            max_length=64,
            description="Secrets that it uses: `NAME` or `NAME:file` for a file in "
            "`$CARREL_SECRETS`, `NAME:env` or `NAME:env=VARIABLE` for a variable; with `@GROUP` "
            "that of a group.",
        ),
    ] = []
    roles: Annotated[
        list[RoleIn],
        Field(
            max_length=64,
            description="The members of a job of several members, which start together, instead "
            "of `command`, `devices` and `image`.",
        ),
    ] = []
    arrangement: Annotated[
        Literal["pack", "spread", "node"],
        Field(
            description="Members on as few nodes as possible, each on its own node, or all on one "
            "node."
        ),
    ] = "pack"
    must_succeed: Annotated[
        list[Annotated[str, Field(max_length=64)]],
        Field(max_length=64, description="Roles that must succeed; by default all."),
    ] = []
    sweep: Annotated[
        SweepIn | None,
        Field(description="Run the notebook once for each trial of a sweep, in one job."),
    ] = None
    idempotency_key: Annotated[str, Field(max_length=128)] = ""


class SessionIn(In):
    """The settings of a session, also JupyterHub's ``user_options``."""

    devices: Devices = 0
    model: Model | None = None
    """Only devices of this model; None for any."""
    hours: float = 2.0
    group: Annotated[str, Field(max_length=64)] = ""
    claim: bool = False
    """Hold the device for the claim window, instead of starting automatically."""
    image: Annotated[str, Field(max_length=160)] = ""
    secrets: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=64)] = []
    """Secrets that it uses, as those of a job."""


class ExtendIn(In):
    """Body of ``POST /api/v1/requests/{id}/extend``: the seconds to add to the time limit.

    ``seen_seconds`` is the time limit that the caller saw; with it, the call is idempotent.
    """

    seconds: Annotated[int, Field(ge=60, le=LONGEST)]
    seen_seconds: Annotated[int, Field(ge=1, le=LARGEST)] | None = None


class ChangeIn(In):
    """Body of ``POST /api/v1/requests/{id}/change``; omitted fields keep their values.

    A null ``model`` means devices of any model.
    """

    devices: (
        Annotated[Devices, Field(ge=1, le=LARGEST, description="No more than before.")] | None
    ) = None
    seconds: Annotated[int, Field(ge=60, le=LONGEST, description="No more than before.")] | None = (
        None
    )
    group: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    model: Annotated[Model | None, Field(description="Null for any model.")] = None


class QuoteIn(In):
    """A possible request to quote."""

    kind: Literal["session", "job"] = "session"
    group: Annotated[str, Field(max_length=64)] = ""
    devices: Annotated[Devices, Field(ge=0, le=LARGEST)] = 0
    model: Model | None = None
    seconds: Annotated[int, Field(ge=1, le=LONGEST)] = 3600
    preemptible: Annotated[bool, Field(description="For jobs; sessions are never preemptible.")] = (
        True
    )


class QuotesIn(In):
    """Body of ``POST /api/v1/quotes``: several requests, so that a form can compare choices."""

    quotes: Annotated[list[QuoteIn], Field(min_length=1, max_length=32)]
