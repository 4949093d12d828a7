"""The pages for people: the desk, the waiting page, and device-seconds."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from ...config.settings import SERVICE_PREFIX
from ...errors import CarrelError
from ...interfaces.files import Identity
from ...schemas import RequestOut
from ..dependencies.callers import Carrel, RequestId, Server
from ..dependencies.context import Web
from ..dependencies.visitors import Follower, Form, Guest, html
from ..forms.session import StartForm, device_choices, offered_models
from ..html.urls import MOST_NEXT, door, server_of, wait_url
from ..live.event_streams import page_events, wait_events
from ..live.sse import EventStream
from ..security.access import Visitor
from .admin.images import image_choices
from .desk_view import gather
from .login import SEE_OTHER, signed_out
from .wait_view import WaitView, session_of

_SOON_SECONDS = 1.0

router = APIRouter(include_in_schema=False)


Next = Annotated[str, Query(max_length=MOST_NEXT)]
"""Where inside a session a link wanted to go; used only if it lies inside it."""


@router.get("/")
def desk(
    web: Carrel,
    visitor: Guest,
    server_name: Annotated[str, Query(max_length=255)] = "",
    next: Next = "",  # JupyterHub's own name for it
) -> Response:
    """A student's home; the hub's own pages lead here with the session that was asked for."""
    return desk_page(web, visitor, StartForm(server_name=server_name.strip(), next=next))


@router.get("/desk/live")
def desk_live(web: Carrel, visitor: Guest) -> Response:
    """The part of the desk that changes by itself."""
    who = visitor.identity
    groups = web.groups.lately(who)
    with web.commands.store.together():
        page = web.render(
            "desk_live.html",
            desk=gather(web.commands, who, groups, now=web.clock()),
            who=who,
            csrf=web.gate.csrf.issue(visitor.session),
        )
    return html(page)


@router.post("/sessions")
def start_session(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """The start form: on to the waiting page, or back to the form with what was wrong."""
    form, who = StartForm.filled(fields), visitor.identity
    now_on_cpu = fields.get("how") == "cpu"
    try:
        if now_on_cpu:
            made = web.claims.start(who, form.server_name, form.options())
            web.claims.keep_place(who, made.id)
        else:
            web.commands.start_session(who, form.server_name, form.options())
    except CarrelError as error:
        refused = form.refused(error, web.commands.groups_for(who))
        return desk_page(web, visitor, refused, status=error.http_status)
    # What opens next: the CPU session, or the session itself.
    return RedirectResponse(wait_url("" if now_on_cpu else form.server_name, form.next), SEE_OTHER)


@router.post("/sessions/stop")
def stop_session(web: Carrel, visitor: Guest, fields: Form) -> Response:
    web.commands.stop_session(visitor.identity, fields.get("server_name", ""))
    return RedirectResponse(SERVICE_PREFIX, SEE_OTHER)


@router.post("/requests/{request_id}/cancel")
def cancel(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    reason = fields.get("reason", "").strip()[:500]
    request = web.commands.cancel(visitor.identity, request_id, reason)
    desk_instead = request.kind == "session" and request.owner == visitor.identity.name
    target = SERVICE_PREFIX if desk_instead else f"{SERVICE_PREFIX}requests/{request_id}"
    return RedirectResponse(target, SEE_OTHER)


@router.get("/wait/{server}")
async def wait(web: Carrel, visitor: Guest, server: Server, next: Next = "") -> Response:
    """Live until the session can be entered."""
    request = await _session_soon(web, visitor.identity, server_of(server))
    return await run_in_threadpool(_wait_page, web, visitor, server, request, next)


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


def _wait_page(
    web: Web, visitor: Visitor, server: str, request: RequestOut | None, wanted: str
) -> Response:
    who, name = visitor.identity, server_of(server)
    if request is None:
        return RedirectResponse(SERVICE_PREFIX, SEE_OTHER)
    if request.state == "running" and web.commands.server_ready(who.name, name):
        return RedirectResponse(door(who.name, name, wanted), SEE_OTHER)
    return html(
        web.render(
            "wait.html",
            view=WaitView(request=request),
            server_name=name,
            segment=server,
            wanted=wanted,
            who=who,
            csrf=web.gate.csrf.issue(visitor.session),
        )
    )


@router.get("/wait/{server}/enter")
def enter(web: Carrel, visitor: Guest, server: Server, next: Next = "") -> Response:
    """The waiting page asks for the way once it heard that the session is ready."""
    url = door(visitor.identity.name, server_of(server), next)
    return Response(status_code=200, headers={"HX-Redirect": url})


@router.get("/wait/{server}/events")
def wait_stream(web: Carrel, visitor: Follower, server: Server, request_id: str) -> Response:
    web.commands.request(visitor.identity, request_id)
    csrf = web.gate.csrf.issue(visitor.session)
    return EventStream(wait_events(web, visitor.identity, request_id, csrf))


@router.get("/events")
def page_stream(web: Carrel, visitor: Follower) -> Response:
    return EventStream(page_events(web, visitor.identity))


@router.post("/logout")
def logout(web: Carrel, visitor: Guest, fields: Form) -> Response:
    return signed_out()


def desk_page(
    web: Web,
    visitor: Visitor,
    form: StartForm,
    *,
    notice: CarrelError | None = None,
    status: int = 200,
) -> Response:
    """The desk, with the start form as it was filled in and with what could not be done."""
    who = visitor.identity
    groups = web.groups.now(who)
    with web.commands.store.together():
        desk = gather(web.commands, who, groups, now=web.clock())
        if not form.problem:
            form = StartForm.beside(desk.sessions, server_name=form.server_name, wanted=form.next)
        page = web.render(
            "desk.html",
            desk=desk,
            who=who,
            groups=groups,
            most_devices=device_choices(groups),
            models=offered_models(groups, desk.pool.devices, form.model),
            images=image_choices(web, who, [g.name for g in groups], form.image),
            form=form,
            notice=notice,
            assignments=web.courses.my_assignments(who),
            csrf=web.gate.csrf.issue(visitor.session),
        )
    return html(page, status)
