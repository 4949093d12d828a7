"""The page of images, where teachers pin them."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from ....config.base_url import SERVICE_PREFIX
from ....errors import CarrelError, Unavailable
from ....records.identity import Identity
from ....schemas.images import ImagesOut, PinIn
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.edit_versions import version_for
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.visitors import Form, Guest, html
from ...forms.fields import no_action
from ...security.access import Visitor

IMAGES = f"{SERVICE_PREFIX}images"

router = APIRouter(include_in_schema=False, prefix="/images")


@router.get("")
def catalogue(web: Carrel, visitor: Guest) -> Response:
    return _page(web, visitor)


@router.post("")
def change(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Pin or unpin, depending on the button."""
    try:
        _do(web, visitor.identity, fields)
    except CarrelError as error:
        return _page(web, visitor, error=error, filled=fields)
    return RedirectResponse(IMAGES, SEE_OTHER)


def _do(web: WebContext, who: Identity, fields: Mapping[str, str]) -> None:
    group, image = fields.get("group", "")[:64], fields.get("image", "")[:160]
    name, _, digest = image.partition("@")
    match fields.get("do", ""):
        case "pin":
            body = PinIn(digest=digest[:71], until=fields.get("until", "").strip()[:10])
            web.images.pin(who, group, name, body)
        case "unpin":
            web.images.unpin(who, group, name)
        case _:
            raise no_action()


def _page(
    web: WebContext,
    visitor: Visitor,
    *,
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
) -> Response:
    who, version = visitor.identity, version_for(web, filled, error)
    try:
        found = web.images.shown(who, web.membership.names(who))
    except Unavailable as away:
        found, error = ImagesOut(choice=True, images=[], pins=[]), error or away
    page = web.render_for(
        visitor,
        "admin/images.html",
        version=version,
        found=found,
        error=error,
        filled=filled or {},
    )
    return html(page, error.http_status if error else 200)
