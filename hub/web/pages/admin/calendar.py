"""The page of terms and reservations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import RedirectResponse, Response

from ....config.base_url import SERVICE_PREFIX
from ....errors import CarrelError
from ....groups.calendar import ReservationPreview
from ....records.identity import require_admin
from ....schemas.calendar import TermIn
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.edit_versions import version_for
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.visitors import Form, Guest, html
from ...forms.fields import no_action
from ...forms.reservation import ReservationForm
from ...security.access import Visitor

CALENDAR = f"{SERVICE_PREFIX}admin/calendar"


router = APIRouter(include_in_schema=False, prefix="/admin/calendar")


@router.get("")
def calendar(
    web: Carrel, visitor: Guest, edit: Annotated[str, Query(max_length=64)] = ""
) -> Response:
    """Show all terms and reservations; ``edit`` is the id of a reservation to change."""
    require_admin(visitor.identity)
    try:
        form = _opened(web, edit)
    except CarrelError as error:
        return _page(web, visitor, error=error)
    return _page(web, visitor, form=form)


def _opened(web: WebContext, edit: str) -> ReservationForm:
    if not edit:
        return ReservationForm()
    return ReservationForm.of(web.administration.calendar.reservation(edit))


@router.post("")
def change(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Save, remove or preview a term or a reservation, depending on the button."""
    require_admin(visitor.identity)
    form = ReservationForm()
    if fields.get("do") in ("preview", "reserve"):
        form = ReservationForm.filled(fields)
    try:
        if fields.get("do") == "preview":
            effect = web.administration.preview_reservation(
                visitor.identity, form.body(), replaces=form.id
            )
            return _page(web, visitor, effect=effect, filled=fields, form=form)
        _do(web, visitor, fields, form)
    except CarrelError as error:
        return _page(web, visitor, error=error, filled=fields, form=form)
    return RedirectResponse(CALENDAR, SEE_OTHER)


def _do(
    web: WebContext, visitor: Visitor, fields: Mapping[str, str], form: ReservationForm
) -> None:
    who, name = visitor.identity, fields.get("name", "").strip()[:64]
    match fields.get("do", ""):
        case "term":
            first, last = (fields.get(day, "").strip()[:10] for day in ("first", "last"))
            web.administration.put_term(who, name.lower(), TermIn(first=first, last=last))
        case "remove-term":
            web.administration.remove_term(who, name)
        case "reserve" if form.id:
            web.administration.change_reservation(who, form.id, form.body())
        case "reserve":
            web.administration.reserve(who, form.body())
        case "unreserve":
            web.administration.unreserve(who, name)
        case _:
            raise no_action()


def _page(
    web: WebContext,
    visitor: Visitor,
    *,
    effect: ReservationPreview | None = None,
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
    form: ReservationForm | None = None,
) -> Response:
    page = web.render_for(
        visitor,
        "admin/calendar.html",
        version=version_for(web, filled, error),
        terms=web.administration.calendar.terms(),
        reservations=web.pool.reservations(visitor.identity),
        groups=[(group.name, group.name) for group in web.context.store.groups()],
        form=form or ReservationForm(),
        effect=effect,
        error=error,
        filled=filled or {},
    )
    return html(page, error.http_status if error else 200)
