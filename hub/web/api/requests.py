"""REST for requests: submit, list, show, explain, change and cancel them; their output."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query
from starlette.responses import Response

from ...requests.pagination import RequestQuery
from ...schemas import (
    LARGEST,
    ChangeIn,
    ExtendIn,
    FilesOut,
    JobIn,
    QuotesIn,
    QuotesOut,
    RequestOut,
    RequestsOut,
)
from ...schemas.explanation import WhyOut
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, ReaderOrHub, RequestId, Writer
from ..html.downloads import SAFE_CONTENT, OpenFileResponse, attachment
from ..live.sse import EventStream, _event_number
from ..openapi.description import ERRORS, body_of

MAX_LISTED = 1000


router = APIRouter(responses=ERRORS)


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
    return web.jobs.submit(who, body)


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
    return web.requests.find(
        who,
        RequestQuery(
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
    return web.requests.request(who, request_id)


@router.get("/requests/{request_id}/why", tags=["requests"], summary="Why a request waits")
def why(web: Carrel, who: ReaderOrHub, request_id: RequestId) -> WhyOut:
    """The rule that holds it, behind whom it is and by which rules, and what would help.

    Each of the `suggestions` was tried on a copy of the queue: so changed, it starts now, or
    at `expected_at`, which is sooner.
    """
    return web.explanations.why(who, request_id)


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
    return web.termination.cancel(who, request_id, reason.strip())


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
    web.requests.request(who, request_id)  # what is missing or hidden is answered as an error
    last = _event_number(came_last) or after
    return EventStream(web.event_streams.of_request(who, request_id, last))


@router.get(
    "/requests/{request_id}/output",
    tags=["requests"],
    summary="The executed notebook",
    response_class=Response,
    responses={200: {"content": {"application/x-ipynb+json": {}}, "description": "The notebook."}},
)
def output(web: Carrel, who: Reader, request_id: RequestId) -> Response:
    """As far as it has come: it is saved after each cell, also of a job that failed."""
    name, content = web.requests.output(who, request_id)
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
    return web.requests.files_of(who, request_id)


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
    return OpenFileResponse(
        web.requests.open_file(who, request_id, name),
        headers={"Content-Disposition": attachment(name.rpartition("/")[2]), **SAFE_CONTENT},
    )


@router.post(
    "/quotes",
    tags=["requests"],
    summary="How long would it wait?",
    openapi_extra=body_of(QuotesIn),
)
def quotes(
    web: Carrel, who: Reader, body: Annotated[QuotesIn, Depends(json_body(QuotesIn))]
) -> QuotesOut:
    """One answer for each question, in order, each as if it alone were sent now.

    Nothing is reserved by it. What would be refused is answered with `admitted` false and the
    refusal; `expected_at` is known for those that would be on the first page of the queue.
    """
    return QuotesOut(quotes=web.quotes.quotes(who, body.quotes))


@router.post(
    "/requests/{request_id}/extend",
    tags=["requests"],
    summary="Give it more time",
    openapi_extra=body_of(ExtendIn),
)
def extend(
    web: Carrel,
    who: Writer,
    request_id: RequestId,
    body: Annotated[ExtendIn, Depends(json_body(ExtendIn))],
) -> RequestOut:
    """Adds to the time limit of a session or job that runs.

    With `seen_seconds`, the `seconds` of the request as the caller has seen them, it adds to
    those: a limit that reaches so far already stays as it is, so that the call is safe to repeat.

    Refused with 409 where somebody waits whom its devices would serve, where they are kept for
    others by then (a reservation, what is guaranteed), where its budget is promised already, and
    where it would run for longer than its group allows, counted from now. For its owner, teachers
    of its group and administrators.
    """
    return web.time_extensions.extend(who, request_id, body.seconds, seen=body.seen_seconds)


@router.post(
    "/requests/{request_id}/change",
    tags=["requests"],
    summary="Ask for less while it waits",
    openapi_extra=body_of(ChangeIn),
)
def change(
    web: Carrel,
    who: Writer,
    request_id: RequestId,
    body: Annotated[ChangeIn, Depends(json_body(ChangeIn))],
) -> RequestOut:
    """Fewer devices, a shorter time limit or another group, as `/why` suggests them.

    It keeps its id and its age in the queue, and is safe to repeat. Refused with 409 where it does
    not wait any more, or where more is asked for than before. Only its owner can do this.
    """
    return web.amendments.change(who, request_id, body)


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
    data = web.requests.log(who, request_id, offset)
    return Response(
        data,
        media_type="text/plain; charset=utf-8",
        headers={"X-Carrel-Offset": str(offset + len(data))},
    )
