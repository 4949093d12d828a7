"""The page of terms and reservations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from ....config.base_url import SERVICE_PREFIX
from ....errors import CarrelError, InvalidInput
from ....groups.calendar import ReservationPreview
from ....records.identity import require_admin
from ....schemas import parsers
from ....schemas.calendar import ReservationIn, TermIn
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.edit_versions import version_for
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.visitors import Form, Guest, html
from ...forms.fields import read
from ...security.access import Visitor

CALENDAR = f"{SERVICE_PREFIX}admin/calendar"


class _Entry(Protocol):
    def __call__(self, name: str, most: int = 100) -> str: ...


router = APIRouter(include_in_schema=False, prefix="/admin/calendar")


@router.get("")
def calendar(web: Carrel, visitor: Guest) -> Response:
    require_admin(visitor.identity)
    return _page(web, visitor)


@router.post("")
def change(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Save, remove or preview a term or a reservation, depending on the button."""
    require_admin(visitor.identity)
    try:
        if fields.get("do") == "preview":
            body = _reservation(_entries(fields))
            effect = web.administration.preview_reservation(visitor.identity, body)
            return _page(web, visitor, effect=effect, filled=fields)
        _do(web, visitor, fields)
    except CarrelError as error:
        return _page(web, visitor, error=error, filled=fields)
    return RedirectResponse(CALENDAR, SEE_OTHER)


def _do(web: WebContext, visitor: Visitor, fields: Mapping[str, str]) -> None:
    entry = _entries(fields)
    who, name = visitor.identity, entry("name", 64)
    match fields.get("do", ""):
        case "term":
            body = TermIn(first=entry("first", 10), last=entry("last", 10))
            web.administration.put_term(who, name.lower(), body)
        case "remove-term":
            web.administration.remove_term(who, name)
        case "reserve":
            web.administration.reserve(who, _reservation(entry))
        case "unreserve":
            web.administration.unreserve(who, name)
        case _:
            raise InvalidInput(
                "The form contains no action.", accepted="Use the buttons on the page."
            )


def _entries(fields: Mapping[str, str]) -> _Entry:
    def entry(name: str, most: int = 100) -> str:
        return fields.get(name, "").strip()[:most]

    return entry


def _reservation(entry: _Entry) -> ReservationIn:
    return ReservationIn(
        group=entry("group", 64) or "?",
        devices=read(lambda text: parsers.devices(text, least=1), entry("devices"), "devices"),
        when=entry("when"),
        until=entry("until", 10),
        why=entry("why", 500),
    )


def _page(
    web: WebContext,
    visitor: Visitor,
    *,
    effect: ReservationPreview | None = None,
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
) -> Response:
    page = web.render(
        "admin/calendar.html",
        version=version_for(web, filled, error),
        terms=web.administration.calendar.terms(),
        reservations=web.pool.reservations(visitor.identity),
        groups=[group.name for group in web.context.store.groups()],
        effect=effect,
        error=error,
        filled=filled or {},
        who=visitor.identity,
        csrf=web.caller_access.csrf.issue(visitor.session),
    )
    return html(page, error.http_status if error else 200)
