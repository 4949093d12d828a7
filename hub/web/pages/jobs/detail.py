"""The page of one request: state, cells, outputs, files and log, live."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from io import BytesIO
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import RedirectResponse, Response

from ....attempts.trials import notebook_name
from ....config.base_url import SERVICE_PREFIX
from ....errors import CarrelError, NotFound, TooLarge, Unavailable
from ....files import trial_table
from ....files.home_outputs import HomeOutputs, SavedOutput, folder_of
from ....provenance.rerun import RerunIn
from ....records.identity import Identity
from ....requests.queries import EVENTS_AT_ONCE
from ....results.list_part import ShownParts
from ....schemas import MAX_NOTEBOOK_BYTES, EventOut, RequestOut
from ....schemas.resume import ResumeIn
from ...dependencies.callers import Carrel, RequestId, SignedIn
from ...dependencies.context import WebContext
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.visitors import Follower, Form, Guest, html
from ...html.cell_output import (
    FIGURE,
    SANDBOXED,
    content,
    drawn_figure_headers,
    figure_html,
    figure_in,
    html_page,
    specification_of,
)
from ...html.downloads import SAFE_CONTENT, attachment
from ...html.drawn_figure import figure_in_notebook, figure_page, figure_script, new_nonce
from ...html.frame_style import theme_of
from ...html.notebook import notebook_page
from ...live.sse import EventStream, last_event_id
from .feed import JobFeed, job_feed, page_values, sources_of
from .timeline import JobTimeline

TrialNumber = Annotated[int, Query(ge=0, le=10**6)]
EventId = Annotated[int, Path(ge=1, le=2**62)]
PartNumber = Annotated[int, Query(ge=1, le=10**6)]

router = APIRouter(include_in_schema=False)


def shown_parts(trials: PartNumber = 1, files: PartNumber = 1) -> ShownParts:
    """Return which parts of its lists the page shows, as its address says."""
    return ShownParts(trials=trials, files=files)


Parts = Annotated[ShownParts, Depends(shown_parts)]


@router.get("/requests/{request_id}")
def show(
    *,
    web: Carrel,
    visitor: Guest,
    request_id: RequestId,
    shown: Parts,
    saved: Annotated[int | None, Query(ge=0, le=10**6)] = None,
    member: Annotated[int, Query(ge=0, le=10**6)] = 0,
) -> Response:
    """Render all stored events; the feed appends later ones.

    ``saved``: the number of files that have just been saved in the home; ``member``: the rank of
    the member whose log is shown.
    """
    who = visitor.identity
    # The request is read first: the feed continues after the events, and sends a newer state.
    request = web.requests.request(who, request_id)
    csrf = web.caller_access.csrf.issue(visitor.session)
    with web.context.store.together():
        events = _events(web, who, request_id) if request.kind != "session" else []
        values = page_values(web, visitor, request, csrf, shown)
    history, sources = JobTimeline.of(events), sources_of(web, visitor, request)
    page = web.render(
        "jobs/request.html",
        history=history,
        sources=sources,
        saved=saved,
        member=member,
        folder=folder_of(request_id),
        **values,
    )
    return html(page)


@router.get("/requests/{request_id}/ledger")
def ledger(web: Carrel, visitor: Follower, request_id: RequestId) -> Response:
    """Render the attempts of a request with their ledger entries, for the usage page."""
    entries = web.requests.ledger(visitor.identity, request_id)
    return html(web.render("shared/ledger.html", ledger=entries))


@router.get("/requests/{request_id}/receipt")
def receipt(web: Carrel, visitor: Follower, request_id: RequestId) -> Response:
    """Render the receipt of an ended job, for the panel of its page."""
    try:
        found = web.receipts.receipt(visitor.identity, request_id)
    except (TooLarge, Unavailable) as error:
        return _panel_problem(web, error)
    return html(web.render("jobs/receipt.html", receipt=found))


@router.get("/requests/{request_id}/sharing")
def sharing(web: Carrel, visitor: Follower, request_id: RequestId) -> Response:
    """Render what the trials of a sweep share, for the panel of its page."""
    try:
        found = web.trials.sharing(visitor.identity, request_id)
    except (TooLarge, Unavailable) as error:
        return _panel_problem(web, error)
    return html(web.render("jobs/sharing.html", sharing=found))


def _panel_problem(web: WebContext, error: CarrelError) -> Response:
    """Render an error in the place of a panel's content: the script shows no other status."""
    return html(web.render("shared/problem.html", error=error))


@router.get("/requests/{request_id}/why")
def why(web: Carrel, visitor: Follower, request_id: RequestId) -> Response:
    """Explain why a request is queued; waiting pages fetch it regularly.

    They show the expected start themselves, if the plan has one.
    """
    request = web.requests.request(visitor.identity, request_id)
    return html(
        web.render(
            "shared/why.html",
            why=web.explanations.why(visitor.identity, request_id),
            yours=request.owner == visitor.identity.name,
            start_shown=request.wait is not None and request.wait.expected_at is not None,
            csrf=web.caller_access.csrf.issue(visitor.session),
        )
    )


@router.get("/requests/{request_id}/feed")
def feed(
    *,
    web: Carrel,
    visitor: Follower,
    signed_in: SignedIn,
    request: Request,
    request_id: RequestId,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    epoch: Annotated[int, Query(ge=0, le=2**31)] = 0,
    shown: Parts,
) -> Response:
    web.requests.request(visitor.identity, request_id)
    last = max(after, last_event_id(request))
    page = JobFeed(
        web=web,
        visitor=visitor,
        request_id=request_id,
        after=last,
        epoch=epoch,
        parts=shown,
    )
    return EventStream(job_feed(page), signed_in=signed_in)


@router.get("/requests/{request_id}/outputs/{event_id}")
def output(
    web: Carrel, visitor: Follower, request: Request, request_id: RequestId, event_id: EventId
) -> Response:
    """Return an image or HTML output of a cell; scripts run only in the frame of a figure."""
    event = _event(web, visitor.identity, request_id, event_id)
    # Opened by itself, a page of an output could imitate one of ours.
    if event is not None and request.headers.get("sec-fetch-dest") == "iframe":
        html, reference = figure_html(event.data.get("output"))
        if reference:
            html = figure_in(web.requests.output(visitor.identity, request_id)[1], reference)
        if html:
            page = html_page(html, theme_of(request))
            return Response(page, media_type="text/html; charset=utf-8", headers=FIGURE)
        library, drawn, wanted = specification_of(event.data.get("output"))
        if wanted:
            whole = web.requests.output(visitor.identity, request_id)[1]
            library, drawn = figure_in_notebook(whole, wanted)
        if library:
            nonce = new_nonce()
            return Response(
                figure_page(library, drawn, nonce),
                media_type="text/html; charset=utf-8",
                headers=drawn_figure_headers(nonce),
            )
    found = content(event.data.get("output"), theme_of(request)) if event is not None else None
    if found is None:
        raise NotFound(f"{request_id} has no image or HTML output {event_id}.")
    # An image never changes: the browser may cache it, for this user only.
    picture = found.mime.startswith("image/")
    keep = {"Cache-Control": "private, max-age=3600" if picture else "no-store"}
    return Response(found.data, media_type=found.mime, headers={**SANDBOXED, **keep})


@router.get("/requests/{request_id}/notebook")
def notebook(
    web: Carrel, visitor: Guest, request_id: RequestId, trial: TrialNumber = 0
) -> Response:
    """Show the output notebook so far in a frame, or that of a trial."""
    request = web.requests.request(visitor.identity, request_id)
    name = _trial_name(request, trial) if trial else request.output or request.id
    return html(
        web.render_for(visitor, "jobs/notebook.html", request=request, trial=trial, name=name)
    )


@router.post("/requests/{request_id}/trials/{number}/stop")
def stop_trial(
    *,
    web: Carrel,
    visitor: Guest,
    request_id: RequestId,
    number: Annotated[int, Path(ge=1, le=10**6)],
    shown: Parts,
    fields: Form,  # checks the token of the form
) -> Response:
    """Stop a trial, and return to the same part of the trials."""
    web.trials.stop(visitor.identity, request_id, number)
    part = f"?trials={shown.trials}&files={shown.files}#trials-title"
    return RedirectResponse(f"{SERVICE_PREFIX}requests/{request_id}{part}", SEE_OTHER)


@router.get("/requests/{request_id}/trials.csv")
def trials_csv(web: Carrel, visitor: Follower, request_id: RequestId) -> Response:
    """Return the trials of a sweep as a table."""
    found = web.trials.trials(visitor.identity, request_id)
    headers = {"Content-Disposition": attachment(f"{request_id}-trials.csv"), **SAFE_CONTENT}
    return Response(trial_table.trials_csv(found), media_type="text/csv", headers=headers)


@router.get("/requests/{request_id}/notebook/content")
def notebook_content(
    web: Carrel,
    visitor: Follower,
    request: Request,
    request_id: RequestId,
    trial: TrialNumber = 0,
) -> Response:
    if trial:
        name = _trial_name(web.requests.request(visitor.identity, request_id), trial)
        with web.requests.open_file(visitor.identity, request_id, name) as file:
            written = file.read(MAX_NOTEBOOK_BYTES)
    else:
        name, written = web.requests.output(visitor.identity, request_id)
    # Opened by itself, the notebook runs no script at all.
    framed = request.headers.get("sec-fetch-dest") == "iframe"
    nonce = new_nonce() if framed else ""
    page = notebook_page(name, written, theme_of(request), nonce)
    headers = drawn_figure_headers(nonce) if nonce and figure_script(nonce) in page else SANDBOXED
    return Response(page, media_type="text/html; charset=utf-8", headers=headers)


@router.post("/requests/{request_id}/save")
def save(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    """Copy the output into the visitor's home, without overwriting anything there."""
    who = visitor.identity
    found = list(_output_contents(web, who, request_id))
    if not found:
        raise NotFound(f"{request_id} has no output that could be saved yet.")
    new = HomeOutputs(web.context.files).save(who.name, request_id, found)
    return RedirectResponse(f"{SERVICE_PREFIX}requests/{request_id}?saved={new}", SEE_OTHER)


def _trial_name(request: RequestOut, trial: int) -> str:
    if request.sweep is None or trial > request.sweep.trials:
        raise NotFound(f"{request.id} has no trial {trial}.")
    return notebook_name(trial)


def _output_contents(web: WebContext, who: Identity, request_id: str) -> Iterator[SavedOutput]:
    request = web.requests.request(who, request_id)
    if request.notebook:
        with suppress(NotFound):  # not written yet
            name, written = web.requests.output(who, request_id)
            notebook = web.receipts.signed_notebook(who, request_id, written)
            yield SavedOutput(name=name, size=len(notebook), open=lambda: BytesIO(notebook))
    for file in web.requests.files_of(who, request_id).files:
        yield SavedOutput(
            name=f"files/{file.name}",
            size=file.size,
            open=partial(web.requests.open_file, who, request_id, file.name),
        )


@router.post("/requests/{request_id}/again")
def again(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    """Submit the same job with the same settings, for the current user."""
    made = web.jobs.submit(visitor.identity, web.jobs.same_job(visitor.identity, request_id))
    return RedirectResponse(f"{SERVICE_PREFIX}requests/{made.id}", SEE_OTHER)


@router.post("/requests/{request_id}/rerun")
def rerun(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    """Submit the same job on the image and inputs of its receipt."""
    wanted = RerunIn(job=request_id, accept_changes="accept" in fields)
    found = web.reruns.rerun(visitor.identity, wanted)
    assert found.request is not None, "it is no dry run"
    return RedirectResponse(f"{SERVICE_PREFIX}requests/{found.request.id}", SEE_OTHER)


@router.post("/requests/{request_id}/resume")
def resume(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    """Submit a job that goes on with this one."""
    found = web.resumption.resume(visitor.identity, request_id, ResumeIn())
    assert found.request is not None
    return RedirectResponse(f"{SERVICE_PREFIX}requests/{found.request.id}", SEE_OTHER)


def _events(web: WebContext, who: Identity, request_id: str) -> list[EventOut]:
    found: list[EventOut] = []
    while True:
        batch = web.requests.events(who, request_id, found[-1].id if found else 0)
        found += batch
        if len(batch) < EVENTS_AT_ONCE:
            return found


def _event(web: WebContext, who: Identity, request_id: str, event_id: int) -> EventOut | None:
    found = web.requests.events(who, request_id, event_id - 1, limit=1)
    return found[0] if found and found[0].id == event_id else None


@router.post("/requests/{request_id}/halt")
def halt(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    """Let the job save its work, and stop it."""
    web.termination.halt(visitor.identity, request_id)
    return RedirectResponse(f"{SERVICE_PREFIX}requests/{request_id}", SEE_OTHER)


@router.post("/requests/{request_id}/cancel")
def cancel(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    reason = fields.get("reason", "").strip()[:500]
    request = web.termination.cancel(visitor.identity, request_id, reason)
    desk_instead = request.kind == "session" and request.owner == visitor.identity.name
    target = SERVICE_PREFIX if desk_instead else f"{SERVICE_PREFIX}requests/{request_id}"
    return RedirectResponse(target, SEE_OTHER)
