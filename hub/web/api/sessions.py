"""REST routes for sessions: start, stop, keep, claim, and the activity of their kernels."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from ...schemas import (
    KernelsIn,
    RequestOut,
    SessionIn,
    WatchOut,
)
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, RequestId, Server, Writer
from ..html.urls import server_of
from ..openapi.description import ERRORS, body_of

router = APIRouter(responses=ERRORS)


@router.post("/requests/{request_id}/claim", tags=["sessions"], summary="Claim a held device")
def claim(web: Carrel, who: Writer, request_id: RequestId) -> RequestOut:
    """Starts the session whose device is held, before `claim_by`.

    Safe to repeat. 409 while it is still queued. For its owner only.
    """
    return web.held_sessions.claim(who, request_id)


@router.post(
    "/requests/{request_id}/keep-place",
    tags=["sessions"],
    summary="Open a CPU session and keep the queue position",
)
def keep_place(web: Carrel, who: Writer, request_id: RequestId) -> RequestOut:
    """For a queued session: it keeps its position, and its device will be held.

    The default server becomes a CPU session, unless a session is queued or running there; the
    request moves to a name of its own (`server_name`) if it had that one. Safe to repeat. For its
    owner only.
    """
    return web.held_sessions.keep_place(who, request_id)


@router.post(
    "/sessions/{server}",
    status_code=202,
    tags=["sessions"],
    summary="Start a session",
    openapi_extra=body_of(SessionIn),
)
def start_session(
    web: Carrel,
    who: Writer,
    server: Server,
    body: Annotated[SessionIn, Depends(json_body(SessionIn))],
) -> RequestOut | None:
    """Queues it and asks JupyterHub for its server; it starts automatically.

    With `claim` its device is held until its owner claims it; it then has a name of its own: the
    one in the address, or for `-` an unused one.
    """
    if body.claim:
        return web.held_sessions.start(who, server_of(server), body)
    return web.sessions.start(who, server_of(server), body)


@router.delete("/sessions/{server}", status_code=204, tags=["sessions"], summary="Stop a session")
def stop_session(web: Carrel, who: Writer, server: Server) -> None:
    """Releases the devices when its processes have ended; a queued session leaves the queue."""
    web.sessions.stop(who, server_of(server))


@router.post("/requests/{request_id}/keep", tags=["sessions"], summary="Keep an idle session")
def keep(web: Carrel, who: Writer, request_id: RequestId) -> RequestOut:
    """Withdraws its `warning` and restarts its idle time, once for each session.

    409 the second time, and without a warning. For its owner only.
    """
    return web.activity.keep(who, request_id)


@router.post(
    "/requests/{request_id}/kernels",
    tags=["sessions"],
    summary="Report the kernels of a session",
    openapi_extra=body_of(KernelsIn),
)
def kernels(
    web: Carrel,
    who: Writer,
    request_id: RequestId,
    body: Annotated[KernelsIn, Depends(json_body(KernelsIn))],
) -> WatchOut:
    """Sent by the server of a running session with the session's own token, every `again_seconds`.

    The answer holds the notices for its user. A session that does not report counts as active. For
    its owner only.
    """
    return web.activity.report(who, request_id, body)
