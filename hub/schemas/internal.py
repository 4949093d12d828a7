"""What people, spawners and attempts send."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from .base import LARGEST, In, Out
from .requests import WarningOut


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


class WatchOut(Out):
    """How a session stands: ``warning`` while it is about to be stopped for being idle.

    ``again_seconds`` is when it should tell of its kernels again.
    """

    state: str
    warning: WarningOut | None = None
    again_seconds: float
