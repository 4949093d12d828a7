"""What people, spawners and attempts send."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from .base import LARGEST, MODEL_LENGTH, Devices, In

MAX_NOTEBOOK_BYTES = 32 * 1024 * 1024

Model = Annotated[str, Field(min_length=1, max_length=MODEL_LENGTH)]
"""A device model, as the pool names it."""


class NotebookIn(In):
    name: Annotated[str, Field(min_length=1, max_length=255)]
    content: Annotated[str, Field(description="The .ipynb file's text.")]


class JobIn(In):
    """Body of ``POST /api/v1/requests``."""

    kind: Literal["job"] = "job"
    group: Annotated[str, Field(min_length=1, max_length=64)]
    devices: Annotated[Devices, Field(description="Whole devices, 0 for a job on CPU.")] = 0
    model: Annotated[
        Model | None, Field(description="Only devices of this model, as `/pool` names it.")
    ] = None
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
    priority: Annotated[
        Literal["opportunistic", "normal", "urgent"],
        Field(description="Opportunistic work comes last; urgent is for teachers."),
    ] = "normal"
    preemptible: Annotated[
        bool, Field(description="It may be stopped for a guarantee, and queued again.")
    ] = True
    deadline: Annotated[
        float | None, Field(allow_inf_nan=False, description="When it should have ended.")
    ] = None
    image: Annotated[
        str,
        Field(max_length=160, description="Such as `torch` or `torch@sha256:…`; the default."),
    ] = ""
    internet: Annotated[
        bool, Field(description="Without it, it reaches this site's service and nothing else.")
    ] = True
    parameters: dict[str, JsonValue] = {}
    kernel: Annotated[str, Field(max_length=128)] = ""
    output: Annotated[str, Field(max_length=255, description="File name of the result.")] = ""
    labels: dict[str, str] = {}
    idempotency_key: Annotated[str, Field(max_length=128)] = ""


class SessionIn(In):
    """What a person chooses for a session, also JupyterHub's ``user_options``."""

    devices: Devices = 0
    model: Model | None = None
    """Only devices of this model; None for any."""
    hours: float = 2.0
    group: Annotated[str, Field(max_length=64)] = ""
    claim: bool = False
    """Hold the device when it comes, for a claim window, instead of starting by itself."""
    image: Annotated[str, Field(max_length=160)] = ""


class ExtendIn(In):
    """Body of ``POST /api/v1/requests/{id}/extend``: how much longer it may run.

    ``seen_seconds`` is the time limit to add to, as the caller has seen it; the call is then safe
    to repeat.
    """

    seconds: Annotated[int, Field(ge=60, le=LARGEST)]
    seen_seconds: Annotated[int, Field(ge=1, le=LARGEST)] | None = None


class ChangeIn(In):
    """Body of ``POST /api/v1/requests/{id}/change``: what is left out stays as it is.

    Of ``model`` null is a value of its own: devices of any model will do.
    """

    devices: (
        Annotated[Devices, Field(ge=1, le=LARGEST, description="No more than before.")] | None
    ) = None
    seconds: Annotated[int, Field(ge=60, le=LARGEST, description="No more than before.")] | None = (
        None
    )
    group: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    model: Annotated[Model | None, Field(description="Null: of any model.")] = None


class QuoteIn(In):
    """What somebody thinks of asking for."""

    kind: Literal["session", "job"] = "session"
    group: Annotated[str, Field(max_length=64)] = ""
    devices: Annotated[Devices, Field(ge=0, le=LARGEST)] = 0
    model: Model | None = None
    seconds: Annotated[int, Field(ge=1, le=LARGEST)] = 3600
    preemptible: Annotated[bool, Field(description="Of a job; a session never is.")] = True


class QuotesIn(In):
    """Body of ``POST /api/v1/quotes``: several, so that a form can show each choice's wait."""

    quotes: Annotated[list[QuoteIn], Field(min_length=1, max_length=32)]


class OpenSessionIn(In):
    """Body of ``PUT /api/v1/sessions`` (the hub's own token only)."""

    owner: str
    server_name: str
    options: dict[str, JsonValue] = {}


class KernelsIn(In):
    """Body of ``POST /api/v1/requests/{id}/kernels``: what a session's kernels do.

    ``cell_seconds_ago`` is how long ago a cell was last seen to run; null for never.
    """

    count: Annotated[int, Field(ge=0, le=LARGEST)]
    running: Annotated[int, Field(ge=0, le=LARGEST, description="How many run a cell now.")]
    cell_seconds_ago: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


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
