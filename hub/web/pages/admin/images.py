"""The catalogue of images as a page, on which teachers pin; and the choice in forms."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from ....config.settings import SERVICE_PREFIX
from ....errors import CarrelError, InvalidInput, Unavailable
from ....interfaces.files import Identity
from ....messages import requests as wording
from ....schemas.images import ImageOut, ImagesOut, PinIn
from ...dependencies.callers import Carrel
from ...dependencies.context import Web
from ...dependencies.visitors import Form, Guest, html
from ...security.access import Visitor
from ..login import SEE_OTHER

IMAGES = f"{SERVICE_PREFIX}images"

router = APIRouter(include_in_schema=False, prefix="/images")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageChoice:
    """One line of a form's list: what it sends and what it says."""

    value: str
    text: str


def image_choices(
    web: Web, who: Identity, groups: Collection[str], chosen: str
) -> list[ImageChoice]:
    """What a form offers; nothing on an engine without images, or while it does not answer.

    Args:
        chosen: what stands in the form: a build that its list would not show is added.
    """
    try:
        # A name stands for what their own groups have pinned, for administrators too.
        found = web.commands.images(replace(who, admin=False), groups_of=groups)
    except Unavailable:
        return []  # Admission says so in its own words, if that is still true then.
    newest = [image for image in found.images if image.newest]
    newest.sort(key=lambda image: (not image.default, image.name))
    choices = [ImageChoice(value=image.name, text=_line(image, found)) for image in newest]
    if chosen and choices and all(choice.value != chosen for choice in choices):
        text = f"{wording.short_reference(chosen)}, this build"
        choices.append(ImageChoice(value=chosen, text=text))
    return choices


def _line(image: ImageOut, found: ImagesOut) -> str:
    held = [pin for pin in found.pins if pin.holds and pin.image == image.name]
    said = [f"{image.name}: {image.title}", wording.size(image.size_bytes)]
    return ", ".join([*said, *(pin.sentence for pin in held)])


@router.get("")
def catalogue(web: Carrel, visitor: Guest) -> Response:
    return _page(web, visitor)


@router.post("")
def change(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Pin or unpin, by the button that was pressed."""
    try:
        _do(web, visitor.identity, fields)
    except CarrelError as error:
        return _page(web, visitor, error=error, filled=fields)
    return RedirectResponse(IMAGES, SEE_OTHER)


def _do(web: Web, who: Identity, fields: Mapping[str, str]) -> None:
    group, image = fields.get("group", "")[:64], fields.get("image", "")[:160]
    name, _, digest = image.partition("@")
    match fields.get("do", ""):
        case "pin":
            body = PinIn(digest=digest[:71], until=fields.get("until", "").strip()[:10])
            web.commands.catalogue.pin(who, group, name, body)
        case "unpin":
            web.commands.catalogue.unpin(who, group, name)
        case _:
            raise InvalidInput("The form says nothing to do.", accepted="Use its buttons.")


def _page(
    web: Web,
    visitor: Visitor,
    *,
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
) -> Response:
    who = visitor.identity
    try:
        found = web.commands.images(who)
    except Unavailable as away:
        found, error = ImagesOut(choice=True, images=[], pins=[]), error or away
    page = web.render(
        "images.html",
        found=found,
        error=error,
        filled=filled or {},
        who=who,
        csrf=web.gate.csrf.issue(visitor.session),
    )
    return html(page, error.http_status if error else 200)
