"""The REST API for people and programs: ``…/api/v1``."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from ..errors import InvalidInput
from ..ports.world import Identity
from ..wire import (
    ErrorOut,
    JobIn,
    MeOut,
    PoolOut,
    RequestOut,
    RequestsOut,
    SessionIn,
    UsageReport,
)
from .bodies import json_body
from .context import Web, web_of
from .events import request_events
from .schema import body_of
from .streams import EventStream
from .waiting import server_of

MAX_LISTED = 1000
_EVENT_ID = re.compile(r"[0-9]{1,18}")

Carrel = Annotated[Web, Depends(web_of)]


async def _reader(request: Request) -> Identity:
    return await web_of(request).gate.reader(request)


async def _reader_or_hub(request: Request) -> Identity | None:
    return await web_of(request).gate.reader_or_hub(request)


async def _writer(request: Request) -> Identity:
    return await web_of(request).gate.writer(request)


Reader = Annotated[Identity, Depends(_reader)]
ReaderOrHub = Annotated[Identity | None, Depends(_reader_or_hub)]
Writer = Annotated[Identity, Depends(_writer)]
RequestId = Annotated[str, Path(description="Such as `j-7f3k2m9p` or `s-4c8x5w2n`.", max_length=64)]
Server = Annotated[str, Path(description="Name of the session; `-` is the default one.")]

ERRORS: dict[int | str, dict[str, object]] = {
    400: {"model": ErrorOut, "description": "A value is malformed: says which, and what is."},
    401: {"model": ErrorOut, "description": "Nobody the hub knows."},
    403: {"model": ErrorOut, "description": "Known, but not entitled; or a cross-site call."},
    404: {"model": ErrorOut, "description": "It does not exist, or is not yours to see."},
    409: {"model": ErrorOut, "description": "Refused, or the state of things does not allow it."},
    413: {"model": ErrorOut, "description": "The body is larger than accepted."},
    503: {"model": ErrorOut, "description": "A part that is needed does not answer; try again."},
}

router = APIRouter(responses=ERRORS)


@router.get("/health", tags=["service"], summary="Is the service up?", responses={})
def health() -> dict[str, str]:
    """Needs no sign-in, and says nothing but that the service answers."""
    return {"status": "ok"}


@router.get("/me", tags=["service"], summary="Who am I?")
def me(web: Carrel, who: Reader) -> MeOut:
    """The caller's name, groups as JupyterHub has them now, and the groups they teach."""
    return web.commands.me(who)


@router.get("/pool", tags=["pool"], summary="The devices and their states")
def pool(web: Carrel, who: ReaderOrHub) -> PoolOut:
    """Every device with its state as the caller may see it.

    Students see *that* a device is taken, teachers also by whom in their groups,
    administrators always. `simulated` marks devices that exist only in name.
    """
    return web.commands.pool(who)


@router.get("/usage", tags=["usage"], summary="My device-seconds")
def usage(web: Carrel, who: Reader) -> UsageReport:
    """The sum, by group, and the ledger lines that make it up.

    `charged` stands in the ledger, `open` has been used since its last line.
    """
    return web.commands.usage(who)


@router.post(
    "/requests",
    status_code=201,
    tags=["requests"],
    summary="Submit a notebook as a job",
    openapi_extra=body_of(JobIn),
)
def submit(
    web: Carrel, who: Writer, body: Annotated[JobIn, Depends(json_body(JobIn))]
) -> RequestOut:
    """Queues the notebook, which travels in the body.

    Everything is checked before anything is stored: the notebook's format, its parameters,
    its kernel, the group, the quota. The same `idempotency_key` of the same owner returns
    the first request, so that a lost answer may safely be asked for again.
    """
    return web.commands.submit_job(who, body)


@router.get("/requests", tags=["requests"], summary="List requests")
def list_requests(
    *,
    web: Carrel,
    who: Reader,
    kind: Annotated[str | None, Query(description="session or job", max_length=32)] = None,
    state: Annotated[
        list[str] | None, Query(description="Only in these states; may be repeated.")
    ] = None,
    mine: Annotated[
        bool, Query(description="false adds what one teaches, for administrators everything.")
    ] = True,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 200,
) -> RequestsOut:
    """Newest first."""
    found = web.commands.requests(
        who, kind=kind, states=frozenset(state) if state else None, mine=mine, limit=limit
    )
    return RequestsOut(requests=found)


@router.get("/requests/{request_id}", tags=["requests"], summary="One request")
def show(web: Carrel, who: ReaderOrHub, request_id: RequestId) -> RequestOut:
    """Place and reason while it waits, devices and progress while it runs, then its cause."""
    return web.commands.request(who, request_id)


@router.delete("/requests/{request_id}", tags=["requests"], summary="Cancel a request")
def cancel(web: Carrel, who: Writer, request_id: RequestId) -> RequestOut:
    """A waiting request ends at once; a running one is `stopping` until its processes are gone.

    One that has ended stays as it is.
    """
    return web.commands.cancel(who, request_id)


@router.get(
    "/requests/{request_id}/events",
    tags=["requests"],
    summary="Follow a request",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Server-sent events."}},
)
def events(
    web: Carrel,
    request: Request,
    who: ReaderOrHub,
    request_id: RequestId,
    after: Annotated[int, Query(ge=0, description="Only events with a larger id.")] = 0,
) -> Response:
    """`status` with a RequestOut at once and on every change; each stored event under its kind
    with its `id` (from the beginning, or after `Last-Event-ID`); `end` after the terminal
    status, and then the stream closes. A comment line every 15 s keeps it open.
    """
    web.commands.request(who, request_id)  # what is missing or hidden is answered as an error
    last = _last_event_id(request) or after
    return EventStream(request_events(web, who, request_id, last))


@router.get(
    "/requests/{request_id}/log",
    tags=["requests"],
    summary="What a request printed",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}, "description": "Bytes of the log."}},
)
def log(
    web: Carrel,
    who: Reader,
    request_id: RequestId,
    offset: Annotated[int, Query(ge=0, description="First byte wanted.")] = 0,
) -> Response:
    """From a byte on, at most 1 MiB; `X-Carrel-Offset` is where to go on."""
    data = web.commands.log(who, request_id, offset)
    return Response(
        data,
        media_type="text/plain; charset=utf-8",
        headers={"X-Carrel-Offset": str(offset + len(data))},
    )


@router.get(
    "/requests/{request_id}/output",
    tags=["requests"],
    summary="The executed notebook",
    response_class=Response,
    responses={200: {"content": {"application/x-ipynb+json": {}}, "description": "The notebook."}},
)
def output(web: Carrel, who: Reader, request_id: RequestId) -> Response:
    """As far as it has come: it is saved after each cell, also of a job that failed."""
    name, content = web.commands.output(who, request_id)
    return Response(
        content,
        media_type="application/x-ipynb+json",
        headers={
            "Content-Disposition": attachment(name),
            # A notebook can hold any HTML: nothing of it may run here.
            "Content-Security-Policy": "sandbox; default-src 'none'",
        },
    )


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
    """Queues it and asks the hub for its server; it starts by itself when its turn comes."""
    return web.commands.start_session(who, server_of(server), body)


@router.delete("/sessions/{server}", status_code=204, tags=["sessions"], summary="Stop a session")
def stop_session(web: Carrel, who: Writer, server: Server) -> None:
    """Gives the devices back once its processes are gone; a waiting one leaves the queue."""
    web.commands.stop_session(who, server_of(server))


def attachment(name: str) -> str:
    """A Content-Disposition that survives any file name."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._- ") else "_" for c in name)
    encoded = "".join(
        chr(b) if chr(b).isascii() and (chr(b).isalnum() or chr(b) in "._-") else f"%{b:02X}"
        for b in name.encode("utf-8", "replace")
    )
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}"


def _last_event_id(request: Request) -> int:
    given = request.headers.get("last-event-id", "")
    if not given:
        return 0
    if not _EVENT_ID.fullmatch(given):
        raise InvalidInput(
            f"Last-Event-ID is {given[:40]!r}.", accepted="The id of an event: a whole number."
        )
    return int(given)
