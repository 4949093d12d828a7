"""The pages of sessions: start, open in JupyterLab, wait, keep the position, claim, extend; and the
quotes."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from ...config.base_url import SERVICE_PREFIX
from ...errors import CarrelError
from ...messages.validation import invalid_body
from ...records.identity import Identity
from ...scheduling.model.snapshot import Kind
from ...scheduling.model.states import LIVE
from ...schemas import ChangeIn, RequestOut
from ...schemas.requests import EXTEND_SECONDS
from ...sessions.held import CPU_DESK
from ..dependencies.callers import Carrel, Next, RequestId, Server, SignedIn
from ..dependencies.context import WebContext
from ..dependencies.redirects import SEE_OTHER
from ..dependencies.visitors import Follower, Form, Guest, html
from ..forms.lab_target import LabTarget, session_for_lab
from ..forms.quote import quote
from ..forms.session import SessionForm
from ..html.urls import page_in_other_session, page_in_session, server_of, wait_url
from ..live.sse import EventStream
from ..security.access import Visitor
from .desk import desk_page
from .wait_stream import wait_events
from .wait_view import WaitView, session_of

_NUMBER = re.compile(r"[0-9]{1,12}")

router = APIRouter(include_in_schema=False)


@router.post("/quote")
def quote_form(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Render the quotes for the choices of a form."""
    who = visitor.identity
    held: dict[str, int] = {}
    for request in web.requests.requests(who, kind=None, states=LIVE, mine=True, limit=200):
        if request.lease is not None:
            held[request.group] = held.get(request.group, 0) + len(request.lease.devices)
    choices = web.group_choices.recent(who)
    names = [each.name for each in choices]
    budgets = partial(web.budgets.budgets, who, groups_of=names)
    view = quote(web.quotes, who, fields, groups=choices, held=held, budgets=budgets)
    return html(web.render("shared/quote.html", quote=view, job=fields.get("for") == "job"))


@router.post("/requests/{request_id}/keep-place")
def keep_place(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    """Keep the queue position, and redirect to the CPU session, which opens the page instead."""
    who = visitor.identity
    server = web.requests.request(who, request_id).server_name
    wanted = page_in_other_session(who.name, server, CPU_DESK, fields.get("next", ""))
    return _redirect_after(
        web,
        visitor,
        lambda: web.held_sessions.keep_place(who, request_id),
        wait_url(CPU_DESK, wanted),
    )


@router.post("/requests/{request_id}/claim")
def claim(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    """Claim the device, and redirect to the waiting page of the session."""
    name = web.requests.request(visitor.identity, request_id).server_name
    return _redirect_after(
        web, visitor, lambda: web.held_sessions.claim(visitor.identity, request_id), wait_url(name)
    )


@router.post("/requests/{request_id}/extend")
def extend(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    """Extend the displayed time limit, and return to the same page."""
    seen = fields.get("seen", "")
    page = f"requests/{request_id}" if fields.get("back") == "request" else ""
    return _redirect_after(
        web,
        visitor,
        lambda: web.time_extensions.extend(
            visitor.identity,
            request_id,
            EXTEND_SECONDS,
            seen=int(seen) if _NUMBER.fullmatch(seen) else None,
        ),
        SERVICE_PREFIX + page,
    )


@router.post("/requests/{request_id}/change")
def change(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    """Apply a suggestion, and return to the page of the request."""
    request = web.requests.request(visitor.identity, request_id)
    session = request.kind == "session"
    return _redirect_after(
        web,
        visitor,
        lambda: web.amendments.change(visitor.identity, request_id, _change_body(fields)),
        wait_url(request.server_name) if session else f"{SERVICE_PREFIX}requests/{request_id}",
    )


def _change_body(fields: Mapping[str, str]) -> ChangeIn:
    given: dict[str, object] = {name: fields[name] for name in ("group",) if fields.get(name)}
    for name in ("devices", "seconds"):
        if _NUMBER.fullmatch(text := fields.get(name, "")):
            given[name] = int(text)
    if "model" in fields:
        given["model"] = fields["model"] or None
    try:
        return ChangeIn.model_validate(given)
    except ValidationError as error:
        raise invalid_body(error, ChangeIn) from None


def _redirect_after(
    web: WebContext, visitor: Visitor, action: Callable[[], RequestOut], target: str
) -> Response:
    """Perform an action and redirect, or show the desk with the error."""
    try:
        action()
    except CarrelError as error:
        return desk_page(web, visitor, SessionForm(), notice=error, status=error.http_status)
    return RedirectResponse(target, SEE_OTHER)


@router.post("/requests/{request_id}/keep")
def keep_form(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    """Keep an idle session (the button beside the countdown)."""
    web.activity.keep(visitor.identity, request_id)
    return RedirectResponse(SERVICE_PREFIX, SEE_OTHER)


SPAWNER_SECONDS = 1.0
"""How long the waiting page waits for JupyterHub's spawner to submit the session."""


@router.post("/sessions")
def start_session(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Start a session and redirect to the waiting page, or show the form with the error."""
    form, who = SessionForm.filled(fields), visitor.identity
    now_on_cpu = fields.get("how") == "cpu"
    try:
        if now_on_cpu:
            made = web.held_sessions.start(who, form.server_name, form.options())
            web.held_sessions.keep_place(who, made.id)
        else:
            web.sessions.start(who, form.server_name, form.options())
    except CarrelError as error:
        return _refused_start(web, visitor, form, error)
    if now_on_cpu:
        wanted = page_in_other_session(who.name, form.server_name, CPU_DESK, form.next)
        return RedirectResponse(wait_url(CPU_DESK, wanted), SEE_OTHER)
    return RedirectResponse(wait_url(form.server_name, form.next), SEE_OTHER)


@router.post("/sessions/lab")
def open_in_lab(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Open an assignment, or the output of a job, in JupyterLab.

    Uses the live session that is best for it, or starts one on CPU. JupyterLab itself copies the
    files into the home.
    """
    who = visitor.identity
    wanted = LabTarget.filled(fields)
    live = web.requests.requests(who, kind=Kind.SESSION, states=LIVE, mine=True, limit=200)
    if (session := session_for_lab(live)) is not None:
        server = session.server_name
        return RedirectResponse(wait_url(server, wanted.url(who.name, server)), SEE_OTHER)
    form = SessionForm(devices="0", group=wanted.group(web.requests, who))
    form = replace(form, next=wanted.url(who.name, form.server_name))
    try:
        web.sessions.start(who, form.server_name, form.options())
    except CarrelError as error:
        return _refused_start(web, visitor, form, error)
    return RedirectResponse(wait_url(form.server_name, form.next), SEE_OTHER)


def _refused_start(
    web: WebContext, visitor: Visitor, form: SessionForm, error: CarrelError
) -> Response:
    refused = form.refused(error, web.membership.choices(visitor.identity))
    return desk_page(web, visitor, refused, status=error.http_status)


@router.post("/sessions/stop")
def stop_session(web: Carrel, visitor: Guest, fields: Form) -> Response:
    web.sessions.stop(visitor.identity, fields.get("server_name", ""))
    return RedirectResponse(SERVICE_PREFIX, SEE_OTHER)


@router.get("/wait/{server}")
async def wait(web: Carrel, visitor: Guest, server: Server, next: Next = "") -> Response:
    """Show the waiting page, which is live until the session can be opened."""
    request = await _await_session(web, visitor.identity, server_of(server))
    return await run_in_threadpool(_wait_page, web, visitor, server, request, next)


async def _await_session(web: WebContext, who: Identity, server_name: str) -> RequestOut | None:
    """Wait a moment for a live request: the browser can be faster than JupyterHub's spawner."""
    found: RequestOut | None = None
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SPAWNER_SECONDS), aclosing(web.streams.rounds()) as rounds:
            async for _ in rounds:
                found = await run_in_threadpool(
                    session_of, web.requests, who, server_name, now=web.clock()
                )
                if found is not None and not found.ended:
                    break
    return found


def _wait_page(
    web: WebContext, visitor: Visitor, server: str, request: RequestOut | None, wanted: str
) -> Response:
    who, name = visitor.identity, server_of(server)
    if request is None:
        return RedirectResponse(SERVICE_PREFIX, SEE_OTHER)
    if request.state == "running" and web.sessions.ready(who.name, name):
        return RedirectResponse(page_in_session(who.name, name, wanted), SEE_OTHER)
    return html(
        web.render_for(
            visitor,
            "sessions/wait.html",
            view=WaitView(request=request),
            server_name=name,
            segment=server,
            wanted=wanted,
        )
    )


@router.get("/wait/{server}/enter")
def enter(web: Carrel, visitor: Guest, server: Server, next: Next = "") -> Response:
    """Redirect to the session when it is ready."""
    url = page_in_session(visitor.identity.name, server_of(server), next)
    return Response(status_code=200, headers={"HX-Redirect": url})


@router.get("/wait/{server}/events")
def wait_stream(
    web: Carrel,
    visitor: Follower,
    *,
    server: Server,
    request_id: str,
    signed_in: SignedIn,
    next: Next = "",
) -> Response:
    web.requests.request(visitor.identity, request_id)
    csrf = web.caller_access.csrf.issue(visitor.session)
    events = wait_events(web, visitor.identity, request_id, csrf, next)
    return EventStream(events, signed_in=signed_in)
