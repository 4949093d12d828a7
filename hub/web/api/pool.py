"""The API's stream of changes: what the live views of pool and queue wait for."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from ..dependencies.callers import ERRORS, Carrel, Reader
from ..live.event_streams import page_events
from ..live.sse import EventStream

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
    return EventStream(page_events(web, who))
