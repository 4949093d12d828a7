"""The desk: a user's sessions, jobs, assignments and usage."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from ...errors import CarrelError
from ..dependencies.callers import Carrel, Next, SignedIn
from ..dependencies.context import WebContext
from ..dependencies.visitors import Follower, Form, Guest, html
from ..forms.image_choice import image_choices
from ..forms.session import SessionForm, device_choices, offered_models
from ..live.sse import EventStream
from ..security.access import Visitor
from .desk_view import gather
from .login import signed_out

router = APIRouter(include_in_schema=False)


@router.get("/")
def desk(
    web: Carrel,
    visitor: Guest,
    server_name: Annotated[str, Query(max_length=255)] = "",
    next: Next = "",  # the name that JupyterHub uses
) -> Response:
    """Show the desk; pages of JupyterHub link here with the requested session."""
    return desk_page(web, visitor, SessionForm(server_name=server_name.strip(), next=next))


@router.get("/desk/live")
def desk_live(web: Carrel, visitor: Guest) -> Response:
    """Render the live part of the desk."""
    who = visitor.identity
    groups = web.group_choices.recent(who)
    with web.context.store.together():
        page = web.render_for(
            visitor,
            "desk/live.html",
            desk=gather(web, who, groups, now=web.clock()),
        )
    return html(page)


@router.get("/events")
def page_stream(web: Carrel, visitor: Follower, signed_in: SignedIn) -> Response:
    return EventStream(web.event_streams.of_page(visitor.identity), signed_in=signed_in)


@router.post("/logout")
def logout(web: Carrel, visitor: Guest, fields: Form) -> Response:
    return signed_out()


def desk_page(
    web: WebContext,
    visitor: Visitor,
    form: SessionForm,
    *,
    notice: CarrelError | None = None,
    status: int = 200,
) -> Response:
    """Render the desk, with the form as entered and the error."""
    who = visitor.identity
    groups = web.group_choices.current(who)
    with web.context.store.together():
        desk = gather(web, who, groups, now=web.clock())
        if not form.problem:
            form = SessionForm.beside(desk.sessions, server_name=form.server_name, wanted=form.next)
        page = web.render(
            "desk/desk.html",
            desk=desk,
            who=who,
            groups=groups,
            most_devices=device_choices(groups),
            models=offered_models(groups, desk.pool.devices, form.model),
            images=image_choices(web, who, [g.name for g in groups], form.image),
            form=form,
            notice=notice,
            assignments=web.courses.overview.own_assignments(who),
            csrf=web.caller_access.csrf.issue(visitor.session),
        )
    return html(page, status)
