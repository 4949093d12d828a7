"""Dependencies of the routes of pages: the signed-in user and the submitted form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import FormData
from starlette.responses import HTMLResponse, Response

from ...errors import NotSignedIn
from ..security.access import Visitor
from ..security.csrf import FIELD, HEADER
from .bodies import form_fields
from .context import web_of
from .edit_versions import base_on_form
from .redirects import to_sign_in

_MOST_FIELDS = 1200


class SignInRequired(Exception):
    """The visitor of a page is not signed in; redirect to the sign-in."""


async def _visitor(request: Request) -> Visitor:
    visitor = await web_of(request).caller_access.visitor(request)
    if visitor is None:
        if request.headers.get("hx-request") or request.method != "GET":
            raise NotSignedIn("Your sign-in has expired.", accepted="Open the desk again.")
        raise SignInRequired
    return visitor


async def _follower(request: Request) -> Visitor:
    """Return the visitor of a stream or a part of a page, which cannot redirect to the sign-in."""
    visitor = await web_of(request).caller_access.visitor(request)
    if visitor is None:
        raise NotSignedIn("Your sign-in has expired.", accepted="Open the desk again.")
    return visitor


Guest = Annotated[Visitor, Depends(_visitor)]
Follower = Annotated[Visitor, Depends(_follower)]


async def _pairs(request: Request, visitor: Guest) -> list[tuple[str, str]]:
    """Return the fields of a form of our own pages, with all values of repeated fields.

    Raises:
        Forbidden: the form was not sent by a page of Carrel.
    """
    web = web_of(request)
    pairs = form_fields(await request.body(), _MOST_FIELDS)
    token = request.headers.get(HEADER) or dict(pairs).get(FIELD)
    web.caller_access.csrf.check(request, visitor.session, token)
    base_on_form(dict(pairs))
    return pairs


Pairs = Annotated[list[tuple[str, str]], Depends(_pairs)]


def _form(pairs: Pairs) -> Mapping[str, str]:
    """Return the fields of a form by name."""
    return dict(pairs)


Form = Annotated[Mapping[str, str], Depends(_form)]


async def _upload(request: Request, visitor: Guest) -> FormData:
    """Return a form that may contain a file.

    Raises:
        Forbidden: the form was not sent by a page of Carrel.
    """
    fields = await request.form(max_files=1, max_fields=_MOST_FIELDS)
    given = fields.get(FIELD)
    token = request.headers.get(HEADER) or (given if isinstance(given, str) else None)
    web_of(request).caller_access.csrf.check(request, visitor.session, token)
    return fields


Upload = Annotated[FormData, Depends(_upload)]


async def on_sign_in_required(request: Request, _error: Exception) -> Response:
    return to_sign_in(request.url.path + (f"?{request.url.query}" if request.url.query else ""))


def html(page: str, status: int = 200) -> Response:
    return HTMLResponse(page, status)
