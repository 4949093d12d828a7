"""The content of a receipt: what the service has recorded of a job, and what the job reported."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from ..schemas import Out

MOST_SHOWN_INPUTS = 200
_Text = Annotated[str, Field(max_length=1000)]


class InputFileOut(Out):
    """A file that was read while the job ran."""

    path: Annotated[str, Field(max_length=4200)]
    """Below ``home``, ``course`` (the course data) or ``work`` (the files uploaded with it)."""
    size: int = 0
    sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    """Empty if it was not hashed; then ``note`` says why."""
    note: _Text = ""


class InputsOut(Out):
    how: _Text = ""
    """How inputs were observed, and what cannot be seen."""
    files: Annotated[list[InputFileOut], Field(max_length=MOST_SHOWN_INPUTS)] = []
    left_out: int = 0
    """Number of further files that were read."""
    incomplete: bool = False
    """Whether some folders were not watched, or some files were missed."""


class GitOut(Out):
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]
    differs: bool | None = None
    """Whether tracked files differed from the commit; null if git did not say."""


class ReportedOut(Out):
    """What the runner reported, which runs beside the job under the same account.

    The service has not checked it: a job can change it.
    """

    python: _Text = ""
    system: _Text = ""
    packages: Annotated[list[_Text], Field(max_length=2000)] = []
    """``NAME==VERSION`` of the packages that the runner's interpreter finds."""
    drivers: Annotated[list[_Text], Field(max_length=8)] = []
    hash_seed: _Text = ""
    """The variable PYTHONHASHSEED."""
    git: GitOut | None = None
    """Of the working folder, when the job started."""
    inputs: InputsOut = InputsOut()


class HashedFileOut(Out):
    """A file that the service has hashed; without a hash, ``note`` says why."""

    name: str
    size: int = 0
    sha256: str = ""
    note: str = ""


class HashedNotebookOut(HashedFileOut):
    """A notebook: ``sha256`` is of the file as it was stored.

    ``content_sha256`` is of its content in the canonical form without a receipt, ``source_sha256``
    of types and sources of its cells without added parameters.
    """

    content_sha256: str = ""
    source_sha256: str = ""


class SeedOut(Out):
    """A call in the submitted notebook that sets a seed, as it is written there."""

    cell: int
    """Number of the code cell, from 1."""
    call: str


class UsedDeviceOut(Out):
    """A device that the job had.

    ``id`` is recorded with the attempt. The rest is what the pool says of this id when the receipt
    is written (``written_at``), which may be later.
    """

    id: str
    model: str = ""
    memory_bytes: int = 0
    node: str = ""
    simulated: bool = False


class AttemptOut(Out):
    """An attempt. Its states come from the service's record."""

    number: int
    started_at: float | None = None
    ended_at: float | None = None
    state: str = ""
    code: str = ""
    message: str = ""


class MemberReceiptOut(Out):
    rank: int
    role: str
    state: str
    node: str = ""
    devices: list[str] = []


class TrialReceiptOut(Out):
    """A trial of a sweep, as the job has reported it."""

    number: int
    state: str
    parameters: dict[str, JsonValue] = {}
    reported: dict[str, JsonValue] = {}


class JobReceiptOut(Out):
    """A receipt of a job. Times are seconds since the epoch (UTC)."""

    version: Literal[1] = 1
    site: str
    key: str
    """The id of the key that signs it."""
    job: str
    what: Literal["notebook", "command", "sweep", "members"]
    owner: str
    program: str = ""
    """The program of the owner that submitted it; empty: the owner did."""
    group: str
    state: str
    code: str = ""
    message: str = ""
    submitted_at: float
    started_at: float | None = None
    ended_at: float | None = None
    written_at: float | None = None
    """When the receipt was written: at the end of the job, or later at the first request for it.

    Null in older receipts.
    """
    attempts: list[AttemptOut] = []
    devices: list[UsedDeviceOut] = []
    """Of the newest attempt."""
    device_seconds: float = 0.0
    image: str = ""
    """``NAME@sha256:…``; empty on an engine without images."""
    requested: dict[str, JsonValue] = {}
    """What was requested: devices, model, seconds, memory_bytes, internet."""
    notebook: HashedNotebookOut | None = None
    """As submitted."""
    output: HashedNotebookOut | None = None
    """As executed; written by the job, and hashed by the service."""
    files: list[HashedFileOut] = []
    """In ``$CARREL_OUTPUT_DIR``; written by the job, and hashed by the service."""
    files_left_out: int = 0
    command: list[str] = []
    workdir: str = ""
    archive_sha256: str = ""
    """Of the files uploaded with the job (.tar.gz)."""
    kernel: str = ""
    parameters: dict[str, JsonValue] = {}
    seeds: list[SeedOut] = []
    secrets: list[str] = []
    """Names of the secrets that it could read; a receipt has no values of them."""
    resumes: str = ""
    rerun_of: str = ""
    """The job that this one repeats."""
    accepted_changes: list[str] = []
    """How its image or inputs differed from those of that job when it was submitted."""
    members: list[MemberReceiptOut] = []
    trials: list[TrialReceiptOut] = []
    trials_left_out: int = 0
    reported: ReportedOut | None = None
    """Null if the runner wrote nothing, or nothing that can be read."""
