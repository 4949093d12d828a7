"""REST routes for requests: submit, list, show, explain, change and cancel them; their output."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query
from starlette.responses import Response

from ...provenance.crate import FILE_NAME
from ...provenance.rerun import RerunIn, RerunOut
from ...requests.pagination import RequestQuery
from ...schemas import (
    LARGEST,
    ChangeIn,
    ExtendIn,
    FilesOut,
    JobIn,
    PipelineOut,
    QuotesIn,
    QuotesOut,
    RequestOut,
    RequestsOut,
    UtilizationsOut,
)
from ...schemas.explanation import WhyOut
from ...schemas.programs.bodies import DryRunOut
from ...schemas.resume import HaltIn, ResumeIn, ResumeOut
from ...schemas.sweeps import ReportsOut, SharingOut, TrialsOut
from ..dependencies import file_paths  # noqa: F401  # registers the convertor "file"
from ..dependencies.bodies import json_body
from ..dependencies.callers import (
    Carrel,
    JobReader,
    JobReaderOrHub,
    JobWriter,
    Reader,
    ReaderOrHub,
    RequestId,
    SignedIn,
    Writer,
)
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
    web: Carrel, who: JobWriter, body: Annotated[JobIn, Depends(json_body(JobIn))]
) -> RequestOut:
    """Queues a notebook, which is part of the body, or a command.

    Everything is validated before anything is stored: the format of the notebook, its parameters
    and kernel, an uploaded archive, the group, the quota. The same `idempotency_key` of the same
    owner returns the first request, so that the call is safe to repeat.
    """
    return web.jobs.submit(who, body)


@router.post(
    "/requests/dry-run",
    tags=["requests"],
    summary="What a job would cost",
    openapi_extra=body_of(JobIn),
)
def dry_run(
    web: Carrel, who: JobWriter, body: Annotated[JobIn, Depends(json_body(JobIn))]
) -> DryRunOut:
    """Every check of a submission, its cost, and when it would start; nothing is stored.

    For a program also whether its owner has to approve the job, and what is left of its budget.
    """
    return web.jobs.dry_run(who, body)


@router.post(
    "/requests/{request_id}/resume",
    status_code=201,
    tags=["requests"],
    summary="Resume an ended job",
    openapi_extra=body_of(ResumeIn),
)
def resume(
    web: Carrel,
    who: Writer,
    request_id: RequestId,
    body: Annotated[ResumeIn, Depends(json_body(ResumeIn))],
) -> ResumeOut:
    """Queues a new job that goes on after the last cell whose variables were saved.

    Cells before it keep their outputs. If one of them was changed, all cells are executed, unless
    `from_cell` says where to start. A command starts again, with the checkpoint of the earlier one.
    """
    return web.resumption.resume(who, request_id, body)


@router.get("/requests", tags=["requests"], summary="List requests")
def list_requests(
    *,
    web: Carrel,
    who: JobReader,
    kind: Annotated[str | None, Query(description="session, job or grading", max_length=32)] = None,
    state: Annotated[
        list[str] | None, Query(description="Only in these states; may be repeated.")
    ] = None,
    label: Annotated[
        list[Annotated[str, Query(max_length=256)]] | None,
        Query(description="Only with this label, as `name=value`; several must all match."),
    ] = None,
    text: Annotated[
        str,
        Query(
            max_length=200,
            description="Text in the ID, the name of the session or notebook, or the command.",
        ),
    ] = "",
    owner: Annotated[
        str | None,
        Query(
            max_length=255, description="Only requests of this user, as far as you may see them."
        ),
    ] = None,
    group: Annotated[str, Query(max_length=64, description="Only of this group.")] = "",
    node: Annotated[
        str, Query(max_length=255, description="Only requests whose newest lease is on this node.")
    ] = "",
    mine: Annotated[
        bool,
        Query(
            description="false includes requests of groups that you teach; for administrators all."
        ),
    ] = True,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 200,
    cursor: Annotated[str, Query(max_length=64, description="`next` of the previous page.")] = "",
) -> RequestsOut:
    """Newest first, by page: `next` is empty on the last one.

    Requests that are submitted meanwhile do not shift later pages.
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
def show(web: Carrel, who: JobReaderOrHub, request_id: RequestId) -> RequestOut:
    """Position and reason while it is queued, devices and progress while it runs, then its end."""
    return web.requests.request(who, request_id)


@router.get("/requests/{request_id}/why", tags=["requests"], summary="Why a request waits")
def why(web: Carrel, who: JobReaderOrHub, request_id: RequestId) -> WhyOut:
    """The rule that holds it, the requests ahead of it by rule, and changes that would help.

    Each of the `suggestions` was tried on a copy of the queue: with the change it starts now, or at
    `expected_at`, which is sooner.
    """
    return web.explanations.why(who, request_id)


@router.get(
    "/requests/{request_id}/utilization", tags=["requests"], summary="What a request has used"
)
def utilization(web: Carrel, who: ReaderOrHub, request_id: RequestId) -> UtilizationsOut:
    """CPU, memory and devices over time, for each attempt: at most 240 values.

    The interval between two values grows with the attempt. Simulated devices are not measured.
    """
    return web.requests.utilization(who, request_id)


@router.delete("/requests/{request_id}", tags=["requests"], summary="Cancel a request")
def cancel(
    web: Carrel,
    who: JobWriter,
    request_id: RequestId,
    reason: Annotated[
        str, Query(max_length=500, description="Recorded in the cause, for the owner.")
    ] = "",
) -> RequestOut:
    """A queued request ends immediately; a running one is `stopping` until its processes have
    ended.

    An ended request does not change.
    """
    return web.termination.cancel(who, request_id, reason.strip())


@router.post(
    "/requests/{request_id}/halt",
    tags=["requests"],
    summary="Halt a running job",
    openapi_extra=body_of(HaltIn),
)
def halt(
    web: Carrel,
    who: Writer,
    request_id: RequestId,
    body: Annotated[HaltIn, Depends(json_body(HaltIn))],
) -> RequestOut:
    """The job gets a notice and the save signal, and ends when it has saved its work.

    A notebook ends after the current cell; what is still running at the end of the grace period is
    stopped. The job is then `cancelled` with the cause `halted`, and can be resumed.
    """
    return web.termination.halt(who, request_id, body.reason.strip())


@router.get(
    "/requests/{request_id}/events",
    tags=["requests"],
    summary="Follow a request",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Server-sent events."}},
)
def events(
    *,
    web: Carrel,
    who: ReaderOrHub,
    signed_in: SignedIn,
    request_id: RequestId,
    after: Annotated[int, Query(ge=0, le=LARGEST, description="Only events with a larger id.")] = 0,
    came_last: Annotated[
        str,
        Header(
            alias="Last-Event-ID", description="The same, as browsers send it when they reconnect."
        ),
    ] = "",
) -> Response:
    """`status` with a RequestOut immediately and after every change; each stored event under its
    kind with its `id` (from the beginning, or after `Last-Event-ID`); `end` after the terminal
    status, which closes the stream. A comment line every 15 s keeps the connection open.
    """
    web.requests.request(who, request_id)  # an error if missing or hidden
    last = _event_number(came_last) or after
    return EventStream(web.event_streams.of_request(who, request_id, last), signed_in=signed_in)


@router.get(
    "/requests/{request_id}/output",
    tags=["requests"],
    summary="The executed notebook",
    response_class=Response,
    responses={200: {"content": {"application/x-ipynb+json": {}}, "description": "The notebook."}},
)
def output(web: Carrel, who: JobReader, request_id: RequestId) -> Response:
    """The notebook as saved after the last completed cell, also of a failed job.

    That of an ended job has its receipt in its metadata, as `carrel.receipt`.
    """
    name, content = web.requests.output(who, request_id)
    return Response(
        web.receipts.signed_notebook(who, request_id, content),
        media_type="application/x-ipynb+json",
        headers={
            "Content-Disposition": attachment(name),
            **SAFE_CONTENT,
        },
    )


@router.get(
    "/requests/{request_id}/receipt",
    tags=["requests"],
    summary="The receipt of an ended job",
    response_class=Response,
    responses={
        200: {"content": {"application/ld+json": {}}, "description": "An RO-Crate 1.1, signed."}
    },
)
def receipt(web: Carrel, who: JobReader, request_id: RequestId) -> Response:
    """What the site has recorded of the job, what its runner reported, and the site's signature.

    The entity `#receipt` has the receipt as JSON; `carrel verify` checks the signature offline.
    """
    crate = web.receipts.crate(who, request_id)
    return Response(
        json.dumps(crate, ensure_ascii=False, indent=1) + "\n",
        media_type="application/ld+json",
        headers={"Content-Disposition": attachment(FILE_NAME), **SAFE_CONTENT},
    )


@router.post(
    "/reruns",
    status_code=201,
    tags=["requests"],
    summary="Run a job again by its receipt",
    openapi_extra=body_of(RerunIn),
)
def rerun(
    web: Carrel, who: Writer, body: Annotated[RerunIn, Depends(json_body(RerunIn))]
) -> RerunOut:
    """Queues a job with the same notebook or command, parameters, image and inputs.

    Refused with 409 (`changed_since`) if the image, or an input that the receipt has a hash of, is
    gone or has changed, unless `accept_changes` is set: the receipt of the new job then names what.
    """
    return web.reruns.rerun(who, body)


@router.get("/requests/{request_id}/files", tags=["requests"], summary="The output files of a job")
def list_files(web: Carrel, who: JobReader, request_id: RequestId) -> FilesOut:
    """The files in `$CARREL_OUTPUT_DIR`, of the newest attempt that has any.

    Links, special files and names that are not UTF-8 are not listed; `left_out` counts them.
    """
    return web.requests.files_of(who, request_id)


@router.get(
    "/requests/{request_id}/files/{name:file}",
    tags=["requests"],
    summary="One of these files",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "Its content."}},
)
def read_file(
    web: Carrel,
    who: JobReader,
    request_id: RequestId,
    name: Annotated[str, Path(description="Such as `plots/loss.png`.", max_length=4096)],
) -> Response:
    """The current content; a running job may still write to it."""
    return OpenFileResponse(
        web.requests.open_file(who, request_id, name),
        headers={"Content-Disposition": attachment(name.rpartition("/")[2]), **SAFE_CONTENT},
    )


@router.get(
    "/requests/{request_id}/pipeline", tags=["requests"], summary="The jobs before and after a job"
)
def pipeline(web: Carrel, who: Reader, request_id: RequestId) -> PipelineOut:
    """The jobs that it waits for and those that wait for it, over all steps: at most 50."""
    return web.pipelines.of(who, request_id)


@router.get("/requests/{request_id}/trials", tags=["requests"], summary="The trials of a sweep")
def trials(web: Carrel, who: Reader, request_id: RequestId) -> TrialsOut:
    """Every trial with its parameters, its state and the last values that it has reported."""
    return web.trials.trials(who, request_id)


@router.get(
    "/requests/{request_id}/sharing", tags=["requests"], summary="What the trials of a sweep share"
)
def sharing(web: Carrel, who: Reader, request_id: RequestId) -> SharingOut:
    """The stages, drawn as a tree, and for each cell why trials share it or not.

    It is the analysis of the notebook; where a kernel cannot be forked, each trial runs all cells.
    """
    return web.trials.sharing(who, request_id)


@router.post(
    "/requests/{request_id}/trials/{number}/stop", tags=["requests"], summary="Stop a trial"
)
def stop_trial(
    web: Carrel, who: Writer, request_id: RequestId, number: Annotated[int, Path(ge=1, le=10**6)]
) -> TrialsOut:
    """Stops one trial of a running sweep; the others go on. Safe to repeat."""
    return web.trials.stop(who, request_id, number)


@router.get(
    "/requests/{request_id}/reports", tags=["requests"], summary="The reported values of a job"
)
def reports(
    web: Carrel,
    who: Reader,
    request_id: RequestId,
    trial: Annotated[int, Query(ge=0, le=10**6, description="Of a trial of a sweep.")] = 0,
    points: Annotated[int, Query(ge=4, le=10_000, description="The most for each name.")] = 500,
) -> ReportsOut:
    """What the job has reported by `carrel.report`, thinned out: ends and extremes are kept.

    A retried attempt replaces the values from its own first step on.
    """
    return web.trials.reports(who, request_id, trial, points=points)


@router.post(
    "/quotes",
    tags=["requests"],
    summary="Quote the wait of requests",
    openapi_extra=body_of(QuotesIn),
)
def quotes(
    web: Carrel, who: JobReader, body: Annotated[QuotesIn, Depends(json_body(QuotesIn))]
) -> QuotesOut:
    """One quote for each request, in order, as if that request alone were submitted now.

    Nothing is reserved. For a request that would be refused, `admitted` is false and the quote
    contains the refusal; `expected_at` is known for requests on the first page of the queue.
    """
    return QuotesOut(quotes=web.quotes.quotes(who, body.quotes))


@router.post(
    "/requests/{request_id}/extend",
    tags=["requests"],
    summary="Extend a running request",
    openapi_extra=body_of(ExtendIn),
)
def extend(
    web: Carrel,
    who: Writer,
    request_id: RequestId,
    body: Annotated[ExtendIn, Depends(json_body(ExtendIn))],
) -> RequestOut:
    """Extends the time limit of a running session or job.

    With `seen_seconds`, the `seconds` of the request as the caller read them, it extends that
    value: a limit that is already as long does not change, so that the call is safe to repeat.

    Refused with 409 if another request waits for its devices, if they are kept by then (for a
    reservation or a guaranteed quota), if its budget is committed, or if it would exceed the max
    time limit of its group, counted from now. For its owner, teachers of its group and
    administrators.
    """
    return web.time_extensions.extend(who, request_id, body.seconds, seen=body.seen_seconds)


@router.post(
    "/requests/{request_id}/change",
    tags=["requests"],
    summary="Change a queued request",
    openapi_extra=body_of(ChangeIn),
)
def change(
    web: Carrel,
    who: Writer,
    request_id: RequestId,
    body: Annotated[ChangeIn, Depends(json_body(ChangeIn))],
) -> RequestOut:
    """Requests fewer devices, a shorter time limit or another group, as `/why` suggests.

    It keeps its id and its age in the queue, and the call is safe to repeat. Refused with 409 if it
    is not queued any more, or if it would request more than before. For its owner only.
    """
    return web.amendments.change(who, request_id, body)


@router.get(
    "/requests/{request_id}/log",
    tags=["requests"],
    summary="The log of a request",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}, "description": "Bytes of the log."}},
)
def log(
    web: Carrel,
    who: JobReader,
    request_id: RequestId,
    offset: Annotated[int, Query(ge=0, le=LARGEST, description="Offset of the first byte.")] = 0,
    member: Annotated[
        int, Query(ge=0, le=LARGEST, description="Rank of a member of a job of several members.")
    ] = 0,
) -> Response:
    """At most 1 MiB from the offset; `X-Carrel-Offset` is the offset of the rest."""
    data = web.requests.log(who, request_id, offset, member=member)
    return Response(
        data,
        media_type="text/plain; charset=utf-8",
        headers={"X-Carrel-Offset": str(offset + len(data))},
    )
