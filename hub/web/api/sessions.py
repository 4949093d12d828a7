"""REST for sessions that are held, for more time, and for what a request would have to expect."""

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
    """Starts the session whose device is held, while there is time (`claim_by`).

    Twice is the same as once. While it still waits in the queue the answer is 409. Only its
    owner can do this.
    """
    return web.held_sessions.claim(who, request_id)


@router.post(
    "/requests/{request_id}/keep-place",
    tags=["sessions"],
    summary="Open a CPU session now, and keep the place in the queue",
)
def keep_place(web: Carrel, who: Writer, request_id: RequestId) -> RequestOut:
    """Of a session that waits for devices: it keeps its place, and its device will be held.

    The default server becomes a CPU session, unless a session runs or waits there already; the
    request moves to a name of its own (`server_name`) if it had that one. Safe to repeat. Only
    its owner can do this.
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
    """Queues it and asks the hub for its server; it starts by itself when its turn comes.

    With `claim` its device is held instead when it comes, until its owner claims it; it then
    has a name of its own: the one in the address, or for `-` one that is free.
    """
    if body.claim:
        return web.held_sessions.start(who, server_of(server), body)
    return web.sessions.start(who, server_of(server), body)


@router.delete("/sessions/{server}", status_code=204, tags=["sessions"], summary="Stop a session")
def stop_session(web: Carrel, who: Writer, server: Server) -> None:
    """Gives the devices back once its processes are gone; a waiting one leaves the queue."""
    web.sessions.stop(who, server_of(server))


@router.post("/requests/{request_id}/keep", tags=["sessions"], summary="Keep an idle session")
def keep(web: Carrel, who: Writer, request_id: RequestId) -> RequestOut:
    """Takes back its `warning`; its idle time is counted anew. Once for each session.

    A second time, and without a warning, the answer is 409. Only its owner can do this.
    """
    return web.activity.keep(who, request_id)


@router.post(
    "/requests/{request_id}/kernels",
    tags=["sessions"],
    summary="Say what a session's kernels do",
    openapi_extra=body_of(KernelsIn),
)
def kernels(
    web: Carrel,
    who: Writer,
    request_id: RequestId,
    body: Annotated[KernelsIn, Depends(json_body(KernelsIn))],
) -> WatchOut:
    """Sent by the server of a running session, with the session's own token, every
    `again_seconds`. A session that does not tell counts as working. Only for its owner.
    """
    return web.activity.report(who, request_id, body)
