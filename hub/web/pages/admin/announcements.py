"""The page of announcements for administrators."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from ....config.base_url import SERVICE_PREFIX
from ....errors import CarrelError, InvalidInput
from ....records.identity import require_admin
from ....schemas.announcements import (
    LONGEST_TEXT,
    AnnouncementIn,
    AnnouncementLevel,
    announcement_text,
)
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.edit_versions import version_for
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.visitors import Form, Guest, html
from ...forms import fields
from ...forms.fields import no_action
from ...security.access import Visitor

ANNOUNCEMENTS = f"{SERVICE_PREFIX}admin/announcements"

router = APIRouter(include_in_schema=False, prefix="/admin/announcements")


@router.get("")
def announcements(web: Carrel, visitor: Guest) -> Response:
    require_admin(visitor.identity)
    return _page(web, visitor)


@router.post("")
def change(web: Carrel, visitor: Guest, filled: Form) -> Response:
    """Add or remove an announcement, depending on the button."""
    require_admin(visitor.identity)
    try:
        match filled.get("do", ""):
            case "announce":
                web.administration.announce(visitor.identity, _body(filled, web.clock()))
            case "remove":
                web.administration.remove_announcement(visitor.identity, filled.get("name", ""))
            case _:
                raise no_action()
    except CarrelError as error:
        return _page(web, visitor, error=error, filled=filled)
    return RedirectResponse(ANNOUNCEMENTS, SEE_OTHER)


def _body(filled: Mapping[str, str], now: float) -> AnnouncementIn:
    """Parse the form. Raises InvalidInput, with the field."""
    text = announcement_text(filled.get("text", ""))

    def moment(name: str) -> float:
        return fields.moment(filled.get(name, ""), filled.get("zone", ""), now, name)

    starts_at = moment("starts_at") if filled.get("starts_at", "").strip() else None
    return AnnouncementIn(
        text=text,
        level=_level(filled.get("level", "")),
        starts_at=starts_at,
        ends_at=moment("ends_at"),
    )


def _level(given: str) -> AnnouncementLevel:
    try:
        return AnnouncementLevel(given)
    except ValueError:
        raise InvalidInput(
            f"There is no level {given[:40]!r}.",
            accepted=f"One of: {', '.join(AnnouncementLevel)}.",
            field="level",
        ) from None


def _page(
    web: WebContext,
    visitor: Visitor,
    *,
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
) -> Response:
    page = web.render_for(
        visitor,
        "admin/announcements.html",
        version=version_for(web, filled, error),
        found=web.administration.announcements(visitor.identity),
        levels=[(level, level) for level in AnnouncementLevel],
        longest=LONGEST_TEXT,
        error=error,
        filled=filled or {},
    )
    return html(page, error.http_status if error else 200)
