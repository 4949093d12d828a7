"""What people do with sessions on their pages: keep the place, claim, extend; and the quotes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from ...config.settings import SERVICE_PREFIX
from ...errors import CarrelError
from ...messages.validation import invalid_body
from ...scheduling.model.states import LIVE
from ...schemas import ChangeIn, RequestOut
from ..dependencies.callers import Carrel, RequestId
from ..dependencies.context import Web
from ..dependencies.visitors import Form, Guest, html
from ..forms.quote import quote
from ..forms.session import StartForm
from ..html.urls import wait_url
from ..security.access import Visitor
from .desk import desk_page
from .login import SEE_OTHER

EXTEND_SECONDS = 1800
_NUMBER = re.compile(r"[0-9]{1,12}")

router = APIRouter(include_in_schema=False)


@router.post("/quote")
def quote_form(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """The part of a form that says what its choices would have to expect."""
    who = visitor.identity
    held: dict[str, int] = {}
    for request in web.commands.requests(who, kind=None, states=LIVE, mine=True, limit=200):
        if request.lease is not None:
            held[request.group] = held.get(request.group, 0) + len(request.lease.devices)
    view = quote(web.quotes, who, fields, web.groups.lately(who), held)
    return html(web.render("quote.html", quote=view, job=fields.get("for") == "job"))


@router.post("/requests/{request_id}/keep-place")
def keep_place(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    """On to the CPU session, which opens as soon as it runs."""
    return _acted(
        web,
        visitor,
        lambda: web.claims.keep_place(visitor.identity, request_id),
        wait_url("", fields.get("next", "")),
    )


@router.post("/requests/{request_id}/claim")
def claim(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    """On to the waiting page of the session, whose device is there."""
    name = web.commands.request(visitor.identity, request_id).server_name
    return _acted(
        web, visitor, lambda: web.claims.claim(visitor.identity, request_id), wait_url(name)
    )


@router.post("/requests/{request_id}/extend")
def extend(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    """Half an hour more than the page showed; back to the page it was asked from."""
    seen = fields.get("seen", "")
    page = f"requests/{request_id}" if fields.get("back") == "request" else ""
    return _acted(
        web,
        visitor,
        lambda: web.extending.extend(
            visitor.identity,
            request_id,
            EXTEND_SECONDS,
            seen=int(seen) if _NUMBER.fullmatch(seen) else None,
        ),
        SERVICE_PREFIX + page,
    )


@router.post("/requests/{request_id}/change")
def change(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    """What a page said would help, done; back to where it waits."""
    request = web.commands.request(visitor.identity, request_id)
    session = request.kind == "session"
    return _acted(
        web,
        visitor,
        lambda: web.changing.change(visitor.identity, request_id, _wanted(fields)),
        wait_url(request.server_name) if session else f"{SERVICE_PREFIX}requests/{request_id}",
    )


def _wanted(fields: Mapping[str, str]) -> ChangeIn:
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


def _acted(web: Web, visitor: Visitor, act: Callable[[], RequestOut], target: str) -> Response:
    """Where it leads, or the desk with what was wrong: everything else on it still stands."""
    try:
        act()
    except CarrelError as error:
        return desk_page(web, visitor, StartForm(), notice=error, status=error.http_status)
    return RedirectResponse(target, SEE_OTHER)
