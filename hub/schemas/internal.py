"""Bodies that JupyterHub's spawners and attempts send."""

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
    """Body of ``POST /api/v1/requests/{id}/kernels``: the activity of the kernels of a session.

    ``cell_seconds_ago`` is the time since a cell was last running; null for never.
    """

    count: Annotated[int, Field(ge=0, le=LARGEST)]
    running: Annotated[int, Field(ge=0, le=LARGEST, description="How many run a cell now.")]
    cell_seconds_ago: Annotated[float, Field(ge=0, le=LONGEST)] | None = None


class StartedIn(In):
    """Body of ``POST /api/v1/leases/{id}/started``: the process of the lease."""

    pid: Annotated[int, Field(ge=1, le=LARGEST)]
    started_at: Moment


class EventIn(In):
    seq: Annotated[int, Field(ge=1, le=LARGEST)]
    at: Moment
    kind: Annotated[str, Field(max_length=32)]
    data: dict[str, FiniteJson] = {}


class EventsIn(In):
    """Body of ``POST /api/v1/leases/{id}/events``."""

    events: Annotated[list[EventIn], Field(max_length=1000)]


class StopIn(In):
    """Body of ``POST /api/v1/requests/{id}/stop`` (service token of JupyterHub): the end of a
    session.
    """

    cause: Literal["stopped", "cancelled", "start_failed", "server_died"]
    message: Annotated[str, Field(max_length=2000)] = ""
    details: Annotated[str, Field(max_length=20000)] = ""


class WatchOut(Out):
    """The state of a session: ``warning`` before it is stopped for being idle.

    ``again_seconds`` is when to report its kernels again.
    """

    state: str
    warning: WarningOut | None = None
    again_seconds: float
