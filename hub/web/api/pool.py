"""The API's stream of changes: what the live views of pool and queue wait for."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from ...schemas import PoolOut, QueueOut
from ..dependencies.callers import Carrel, Reader, ReaderOrHub
from ..live.sse import EventStream
from ..openapi.description import ERRORS
from .requests import MAX_LISTED

router = APIRouter(responses=ERRORS)


@router.get(
    "/events",
    tags=["pool"],
    summary="Follow pool, queue and requests",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Server-sent events."}},
)
def changes(web: Carrel, who: Reader) -> Response:
    """`changed` at once, and whenever what the caller may see of the pool, the queue and the
    requests has changed; what it is now say `/pool`, `/queue` and `/requests`. A comment line
    every 15 s keeps it open.
    """
    return EventStream(web.event_streams.of_page(who))


@router.get("/pool", tags=["pool"], summary="The devices and their states")
def pool(web: Carrel, who: ReaderOrHub) -> PoolOut:
    """Every device with its state as the caller may see it.

    Students see *that* a device is taken, teachers also by whom in their groups,
    administrators always. `simulated` marks devices that exist only in name. `reservations` are
    the next ones of everybody; what one is for only its group is told.
    """
    return web.pool.pool(who, groups_of=() if who is None else web.groups.names(who))


@router.get("/queue", tags=["pool"], summary="Who waits, in order, and why")
def queue(
    web: Carrel, who: ReaderOrHub, limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 200
) -> QueueOut:
    """The head of the one queue. Whose a place is, only those see who are entitled to."""
    return web.requests.queue(who, limit)
