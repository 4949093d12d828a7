"""The pages for people: the desk, the waiting page, one request, and device-seconds."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from contextlib import aclosing
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ..config import SERVICE_PREFIX
from ..errors import CarrelError, InvalidInput, NotSignedIn
from ..ports.world import Identity
from ..wire import LedgerOut, RequestOut
from .context import Web, web_of
from .csrf import FIELD, HEADER
from .desk import StartForm, device_choices, gather
from .events import page_events, wait_events
from .gate import Visitor
from .routes import Carrel, RequestId, Server
from .signing_in import SEE_OTHER, signed_out, to_sign_in
from .streams import EventStream
from .waiting import server_of, server_url, session_of, wait_url, wait_view

_SOON_SECONDS = 1.0

router = APIRouter(include_in_schema=False)


class SignInFirst(Exception):
    """A page was asked for by somebody unknown: they are led to the sign-in."""


async def _visitor(request: Request) -> Visitor:
    visitor = await web_of(request).gate.visitor(request)
    if visitor is None:
        if request.headers.get("hx-request") or request.method != "GET":
            raise NotSignedIn("You are not signed in any more.", accepted="Open the desk again.")
        raise SignInFirst
    return visitor


async def _follower(request: Request) -> Visitor:
    """A stream cannot be led to the sign-in."""
    visitor = await web_of(request).gate.visitor(request)
    if visitor is None:
        raise NotSignedIn("You are not signed in any more.", accepted="Open the desk again.")
    return visitor


Guest = Annotated[Visitor, Depends(_visitor)]
Follower = Annotated[Visitor, Depends(_follower)]


async def _form(request: Request, visitor: Guest) -> Mapping[str, str]:
    """The fields of a form that was sent from one of our own pages. Raises Forbidden."""
    web = web_of(request)
    try:
        sent = (await request.body()).decode()
    except UnicodeDecodeError:
        raise InvalidInput("The form is not UTF-8.", accepted="Use the form on the desk.") from None
    fields = dict(parse_qsl(sent, keep_blank_values=True, max_num_fields=50))
    token = request.headers.get(HEADER) or fields.get(FIELD)
    web.gate.csrf.check(request, visitor.session, token)
    return fields


async def on_sign_in_first(request: Request, _error: Exception) -> Response:
    return to_sign_in(request.url.path)


Form = Annotated[Mapping[str, str], Depends(_form)]


@router.get("/")
def desk(web: Carrel, visitor: Guest) -> Response:
    """A student's home."""
    return _desk(web, visitor, StartForm())


@router.get("/desk/live")
def desk_live(web: Carrel, visitor: Guest) -> Response:
    """The part of the desk that changes by itself."""
    who = visitor.identity
    return _html(
        web.render(
            "desk_live.html",
            desk=gather(web.commands, who, now=web.clock()),
            who=who,
            csrf=web.gate.csrf.issue(visitor.session),
        )
    )


@router.post("/sessions")
def start_session(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """The start form: on to the waiting page, or back to the form with what was wrong."""
    form = StartForm.filled(fields)
    try:
        web.commands.start_session(visitor.identity, form.server_name, form.options())
    except CarrelError as error:
        refused = form.refused(error, web.commands.groups_for(visitor.identity))
        return _desk(web, visitor, refused, status=error.http_status)
    return RedirectResponse(wait_url(form.server_name), SEE_OTHER)


@router.post("/sessions/stop")
def stop_session(web: Carrel, visitor: Guest, fields: Form) -> Response:
    web.commands.stop_session(visitor.identity, fields.get("server_name", ""))
    return RedirectResponse(SERVICE_PREFIX, SEE_OTHER)


@router.post("/requests/{request_id}/cancel")
def cancel(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    request = web.commands.cancel(visitor.identity, request_id)
    desk_instead = request.kind == "session" and request.owner == visitor.identity.name
    target = SERVICE_PREFIX if desk_instead else f"{SERVICE_PREFIX}requests/{request_id}"
    return RedirectResponse(target, SEE_OTHER)


@router.get("/wait/{server}")
async def wait(web: Carrel, visitor: Guest, server: Server) -> Response:
    """Live until the session can be entered."""
    request = await _session_soon(web, visitor.identity, server_of(server))
    return await run_in_threadpool(_wait_page, web, visitor, server, request)


async def _session_soon(web: Web, who: Identity, server_name: str) -> RequestOut | None:
    """The browser can be quicker than the hub's spawner: give a live request a moment."""
    found: RequestOut | None = None
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_SOON_SECONDS), aclosing(web.streams.rounds()) as rounds:
            async for _ in rounds:
                found = await run_in_threadpool(
                    session_of, web.commands, who, server_name, now=web.clock()
                )
                if found is not None and not found.ended:
                    break
    return found


def _wait_page(web: Web, visitor: Visitor, server: str, request: RequestOut | None) -> Response:
    who, name = visitor.identity, server_of(server)
    if request is None:
        return RedirectResponse(SERVICE_PREFIX, SEE_OTHER)
    if request.state == "running" and web.commands.server_ready(who.name, name):
        return RedirectResponse(server_url(who.name, name), SEE_OTHER)
    return _html(
        web.render(
            "wait.html",
            view=wait_view(request, web.clock()),
            server_name=name,
            segment=server,
            who=who,
            csrf=web.gate.csrf.issue(visitor.session),
        )
    )


@router.get("/wait/{server}/enter")
def enter(web: Carrel, visitor: Guest, server: Server) -> Response:
    """The waiting page asks for the way once it heard that the session is ready."""
    url = server_url(visitor.identity.name, server_of(server))
    return Response(status_code=200, headers={"HX-Redirect": url})


@router.get("/wait/{server}/events")
def wait_stream(web: Carrel, visitor: Follower, server: Server, request_id: str) -> Response:
    web.commands.request(visitor.identity, request_id)
    return EventStream(wait_events(web, visitor.identity, request_id))


@router.get("/requests/{request_id}")
def show(web: Carrel, visitor: Guest, request_id: RequestId) -> Response:
    return _html(_request_page(web, visitor, request_id, "request.html"))


@router.get("/requests/{request_id}/live")
def show_live(web: Carrel, visitor: Guest, request_id: RequestId) -> Response:
    return _html(_request_page(web, visitor, request_id, "request_live.html"))


@router.get("/usage")
def usage(web: Carrel, visitor: Guest) -> Response:
    """The sums that people are charged by, down to the ledger's lines."""
    return _html(
        web.render(
            "usage.html",
            usage=web.commands.usage(visitor.identity),
            who=visitor.identity,
            csrf=web.gate.csrf.issue(visitor.session),
        )
    )


@router.get("/events")
def page_stream(web: Carrel, visitor: Follower) -> Response:
    return EventStream(page_events(web, visitor.identity))


@router.post("/logout")
def logout(web: Carrel, visitor: Guest, fields: Form) -> Response:
    return signed_out()


def _desk(web: Web, visitor: Visitor, form: StartForm, *, status: int = 200) -> Response:
    who = visitor.identity
    groups = web.commands.groups_for(who)
    page = web.render(
        "desk.html",
        desk=gather(web.commands, who, now=web.clock()),
        who=who,
        groups=groups,
        most_devices=device_choices(groups),
        form=form,
        csrf=web.gate.csrf.issue(visitor.session),
    )
    return _html(page, status)


def _request_page(web: Web, visitor: Visitor, request_id: str, template: str) -> str:
    who = visitor.identity
    request: RequestOut = web.commands.request(who, request_id)
    ledger: list[LedgerOut] = web.commands.ledger(who, request_id)
    return web.render(
        template,
        request=request,
        ledger=ledger,
        who=who,
        csrf=web.gate.csrf.issue(visitor.session),
    )


def _html(page: str, status: int = 200) -> Response:
    return HTMLResponse(page, status)
