"""The user's sessions and jobs, as JupyterLab's panel and status bar show them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from ...hub.client import LIVE_STATES
from ...hub.messages import requests as request_messages
from ...hub.messages import units
from ...hub.schemas import LARGEST, In, Out, RequestOut
from ...hub.schemas.requests import EXTEND_SECONDS
from ..job_text import device_name, status_line, title
from .session_place import NothingIn, SessionPlace

_LIVE = 100
_RECENT_JOBS = 8


class PanelRequestOut(Out):
    """A session, job or check; ``devices`` are its leased devices or the request, in words."""

    id: str
    kind: str
    title: str
    server_name: str
    state: str
    sentence: str
    devices: str
    place: int | None
    seconds: int
    ends_by: float | None
    ended: bool
    has_output: bool
    here: bool


class DeskSummaryOut(Out):
    """The user's sessions, and jobs with checks; live ones first, then the newest ended jobs.

    ``now`` is the time of this server: the clock of a browser may differ. ``extension`` is the time
    by which a session is extended, in words.
    """

    now: float
    extension: str
    sessions: list[PanelRequestOut]
    jobs: list[PanelRequestOut]


class ExtensionOfSessionIn(In):
    """``seen_seconds`` is the time limit that the user saw, so that a repeat extends once."""

    seen_seconds: Annotated[int, Field(ge=1, le=LARGEST)]


def summary(place: SessionPlace, _body: NothingIn) -> DeskSummaryOut:
    """Return the live requests of the user and the newest jobs."""
    live = place.client.requests(states=LIVE_STATES, limit=_LIVE)
    newest = place.client.page(kind="job", limit=_RECENT_JOBS).requests
    ended = [request for request in newest if request.ended]
    return DeskSummaryOut(
        now=time.time(),
        extension=units.duration(EXTEND_SECONDS),
        sessions=_shown(place, [request for request in live if request.kind == "session"]),
        jobs=_shown(place, [*(each for each in live if each.kind != "session"), *ended]),
    )


def extend(place: SessionPlace, body: ExtensionOfSessionIn) -> PanelRequestOut:
    """Extend the time limit of this session that the user saw."""
    extended = place.client.extend(place.request_id, EXTEND_SECONDS, seen=body.seen_seconds)
    return _panel_request(extended, here=True)


def stop(place: SessionPlace, _body: NothingIn) -> None:
    """Stop this session; its files stay."""
    place.client.cancel(place.request_id)


def _shown(place: SessionPlace, requests: Sequence[RequestOut]) -> list[PanelRequestOut]:
    return [_panel_request(request, here=request.id == place.request_id) for request in requests]


def _panel_request(request: RequestOut, *, here: bool) -> PanelRequestOut:
    session = request.kind == "session"
    name = request_messages.session_name(request.server_name)
    return PanelRequestOut(
        id=request.id,
        kind=request.kind,
        title=name if session else title(request) or request.id,
        server_name=request.server_name,
        state=request_messages.state_name(request.state),
        sentence=status_line(request),
        devices=_devices(request),
        place=request.wait.place if request.wait is not None else None,
        seconds=request.seconds,
        ends_by=None if request.state == "queued" else request.ends_by,
        ended=request.ended,
        has_output=bool(request.output and request.lease is not None and not request.command),
        here=here,
    )


def _devices(request: RequestOut) -> str:
    leased = request.lease.devices if request.lease and request.state != "queued" else []
    if leased:
        return ", ".join(map(device_name, leased))
    return units.devices(request.devices, request.model) if request.devices else "CPU"
