"""The pages for people: the desk, the waiting page, and device-seconds."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import aclosing

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from ..config import SERVICE_PREFIX
from ..errors import CarrelError
from ..ports.world import Identity
from ..wire import RequestOut
from .context import Web
from .desk import StartForm, device_choices, gather
from .events import page_events, wait_events
from .gate import Visitor
from .guests import Follower, Form, Guest, html
from .routes import Carrel, RequestId, Server
from .signing_in import SEE_OTHER, signed_out
from .streams import EventStream
from .waiting import server_of, server_url, session_of, wait_url, wait_view

_SOON_SECONDS = 1.0

router = APIRouter(include_in_schema=False)


@router.get("/")
def desk(web: Carrel, visitor: Guest) -> Response:
    """A student's home."""
    return _desk(web, visitor, StartForm())


@router.get("/desk/live")
def desk_live(web: Carrel, visitor: Guest) -> Response:
    """The part of the desk that changes by itself."""
    who = visitor.identity
    return html(
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
    return html(
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


@router.get("/usage")
def usage(web: Carrel, visitor: Guest) -> Response:
    """The sums that people are charged by, down to the ledger's lines."""
    return html(
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
    return html(page, status)
