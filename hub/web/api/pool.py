"""REST routes for devices and queue, and the stream of their changes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from ...schemas import PoolOut, QueueOut
from ..dependencies.callers import Carrel, JobReaderOrHub, Reader, ReaderOrHub, SignedIn
from ..dependencies.edit_versions import etag
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
def changes(web: Carrel, who: Reader, signed_in: SignedIn) -> Response:
    """`changed` immediately, and after each change of the pool, queue or requests that the caller
    may see; read `/pool`, `/queue` and `/requests` then. A comment line every 15 s keeps the
    connection open.
    """
    return EventStream(web.event_streams.of_page(who), signed_in=signed_in)


@router.get(
    "/pool",
    tags=["pool"],
    summary="The devices and their states",
    dependencies=[Depends(etag)],
)
def pool(web: Carrel, who: JobReaderOrHub) -> PoolOut:
    """All devices with their states as the caller may see them.

    Students see *that* a device is in use, teachers also by whom in their groups, administrators
    always. `simulated` marks devices without hardware. `reservations` are the next ones of all
    groups; the purpose is shown to the group only.
    """
    return web.pool.pool(who, groups_of=() if who is None else web.group_choices.names(who))


@router.get("/queue", tags=["pool"], summary="The queue, with reasons")
def queue(
    web: Carrel, who: ReaderOrHub, limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 200
) -> QueueOut:
    """The first part of the queue. Owners are shown only to callers who may see them."""
    return web.requests.queue(who, limit)
