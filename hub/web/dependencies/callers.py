"""The REST API for people and programs: ``…/api/v1``."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from starlette.responses import Response

from ...errors import InvalidInput
from ...interfaces.files import Identity
from ...requests.pagination import Wanted
from ...schemas import (
    LARGEST,
    FilesOut,
    GroupsOut,
    JobIn,
    MeOut,
    PoolOut,
    QueueOut,
    RequestOut,
    RequestsOut,
    SessionIn,
)
from ...schemas.explanation import WhyOut
from ..html.urls import server_of
from ..live.event_streams import request_events
from ..live.sse import EventStream, FileContent
from ..openapi.description import body_of, problems
from .bodies import json_body
from .context import Web, web_of

MAX_LISTED = 1000
_EVENT_ID = re.compile(r"[0-9]{1,18}")


async def _web(request: Request) -> Web:
    return web_of(request)  # not in a thread of its own, as a plain function would be


Carrel = Annotated[Web, Depends(_web)]


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

ERRORS = problems(400, 401, 403, 404, 409, 413, 503)
SAFE_CONTENT = {
    # What a job wrote can be any HTML: nothing of it may run here.
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
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
    administrators always. `simulated` marks devices that exist only in name. `reservations` are
    the next ones of everybody; what one is for only its group is told.
    """
    return web.commands.pool(who, groups_of=() if who is None else web.groups.names(who))


@router.get("/queue", tags=["pool"], summary="Who waits, in order, and why")
def queue(
    web: Carrel, who: ReaderOrHub, limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 200
) -> QueueOut:
    """The head of the one queue. Whose a place is, only those see who are entitled to."""
    return web.commands.queue(who, limit)


@router.get("/groups", tags=["service"], summary="The groups I may use")
def groups(web: Carrel, who: Reader) -> GroupsOut:
    """With the limits that hold for the caller now."""
    return web.commands.groups(who)


@router.post(
    "/requests",
    status_code=201,
    tags=["requests"],
    summary="Submit a job",
    openapi_extra=body_of(JobIn),
)
def submit(
    web: Carrel, who: Writer, body: Annotated[JobIn, Depends(json_body(JobIn))]
) -> RequestOut:
    """Queues a notebook, which travels in the body, or a command.

    Everything is checked before anything is stored: the notebook's format, its parameters,
    its kernel, an uploaded archive, the group, the quota. The same `idempotency_key` of the
    same owner returns the first request, so that a lost answer may safely be asked for again.
    """
    return web.commands.submit_job(who, body)


@router.get("/requests", tags=["requests"], summary="List requests")
def list_requests(
    *,
    web: Carrel,
    who: Reader,
    kind: Annotated[str | None, Query(description="session, job or grading", max_length=32)] = None,
    state: Annotated[
        list[str] | None, Query(description="Only in these states; may be repeated.")
    ] = None,
    label: Annotated[
        list[Annotated[str, Query(max_length=256)]] | None,
        Query(description="Only with this label, as `name=value`; all of several must hold."),
    ] = None,
    text: Annotated[
        str,
        Query(
            max_length=200, description="In the id, the session's or notebook's name, or command."
        ),
    ] = "",
    owner: Annotated[
        str | None,
        Query(max_length=255, description="Only of this person, as far as you may see them."),
    ] = None,
    group: Annotated[str, Query(max_length=64, description="Only of this group.")] = "",
    node: Annotated[
        str, Query(max_length=255, description="Only those whose newest lease is on this node.")
    ] = "",
    mine: Annotated[
        bool, Query(description="false adds what one teaches, for administrators everything.")
    ] = True,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 200,
    cursor: Annotated[str, Query(max_length=64, description="`next` of the page before.")] = "",
) -> RequestsOut:
    """Newest first, a page at a time: `next` is empty on the last one.

    What is submitted while you page comes before the first page and shifts none of the others.
    """
    return web.commands.find_requests(
        who,
        Wanted(
            kind=kind,
            states=frozenset(state) if state else None,
            labels=tuple(label or ()),
            text=text,
            owner=owner,
            group=group or None,
            node=node or None,
            mine=mine,
            limit=limit,
            cursor=cursor,
        ),
    )


@router.get("/requests/{request_id}", tags=["requests"], summary="One request")
def show(web: Carrel, who: ReaderOrHub, request_id: RequestId) -> RequestOut:
    """Place and reason while it waits, devices and progress while it runs, then its cause."""
    return web.commands.request(who, request_id)


@router.get("/requests/{request_id}/why", tags=["requests"], summary="Why a request waits")
def why(web: Carrel, who: ReaderOrHub, request_id: RequestId) -> WhyOut:
    """The rule that holds it, behind whom it is and by which rules, and what would help.

    Each of the `suggestions` was tried on a copy of the queue: so changed, it starts now, or
    at `expected_at`, which is sooner.
    """
    return web.commands.why(who, request_id)


@router.delete("/requests/{request_id}", tags=["requests"], summary="Cancel a request")
def cancel(
    web: Carrel,
    who: Writer,
    request_id: RequestId,
    reason: Annotated[
        str, Query(max_length=500, description="Stands in the cause, where its owner reads it.")
    ] = "",
) -> RequestOut:
    """A waiting request ends at once; a running one is `stopping` until its processes are gone.

    One that has ended stays as it is.
    """
    return web.commands.cancel(who, request_id, reason.strip())


@router.get(
    "/requests/{request_id}/events",
    tags=["requests"],
    summary="Follow a request",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Server-sent events."}},
)
def events(
    web: Carrel,
    who: ReaderOrHub,
    request_id: RequestId,
    after: Annotated[int, Query(ge=0, le=LARGEST, description="Only events with a larger id.")] = 0,
    came_last: Annotated[
        str,
        Header(
            alias="Last-Event-ID", description="The same, as browsers say it when they come back."
        ),
    ] = "",
) -> Response:
    """`status` with a RequestOut at once and on every change; each stored event under its kind
    with its `id` (from the beginning, or after `Last-Event-ID`); `end` after the terminal
    status, and then the stream closes. A comment line every 15 s keeps it open.
    """
    web.commands.request(who, request_id)  # what is missing or hidden is answered as an error
    last = _event_number(came_last) or after
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
    offset: Annotated[int, Query(ge=0, le=LARGEST, description="First byte wanted.")] = 0,
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
            **SAFE_CONTENT,
        },
    )


@router.get("/requests/{request_id}/files", tags=["requests"], summary="The files that a job left")
def list_files(web: Carrel, who: Reader, request_id: RequestId) -> FilesOut:
    """What it has put into `$CARREL_OUTPUT_DIR` so far, of the newest attempt with any.

    Links, special files and names that are no UTF-8 are not offered; `left_out` counts them.
    """
    return web.commands.files_of(who, request_id)


@router.get(
    "/requests/{request_id}/files/{name:path}",
    tags=["requests"],
    summary="One of these files",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "Its content."}},
)
def read_file(
    web: Carrel,
    who: Reader,
    request_id: RequestId,
    name: Annotated[str, Path(description="Such as `plots/loss.png`.", max_length=4096)],
) -> Response:
    """As it is at this moment; a job that still runs may be writing to it."""
    return FileContent(
        web.commands.open_file(who, request_id, name),
        headers={"Content-Disposition": attachment(name.rpartition("/")[2]), **SAFE_CONTENT},
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
    """Queues it and asks the hub for its server; it starts by itself when its turn comes.

    With `claim` its device is held instead when it comes, until its owner claims it; it then
    has a name of its own: the one in the address, or for `-` one that is free.
    """
    if body.claim:
        return web.claims.start(who, server_of(server), body)
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


def last_event_id(request: Request) -> int:
    """0 where there is none. Raises InvalidInput."""
    return _event_number(request.headers.get("last-event-id", ""))


def _event_number(given: str) -> int:
    if not given:
        return 0
    if not _EVENT_ID.fullmatch(given):
        raise InvalidInput(
            f"Last-Event-ID is {given[:40]!r}.", accepted="The id of an event: a whole number."
        )
    return int(given)
