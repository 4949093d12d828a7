"""REST routes for images: the catalogue and the pins of groups."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from ...records.identity import require_admin
from ...schemas.images import ImagesOut, NeedsOut, PinIn, PinOut
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..dependencies.edit_versions import etag
from ..openapi.description import ERRORS, body_of

GroupName = Annotated[str, Path(max_length=64, description="Such as `cs101`.")]
ImageName = Annotated[str, Path(max_length=64, description="Such as `torch`.")]

router = APIRouter(responses=ERRORS, tags=["images"], dependencies=[Depends(etag)])


@router.get("/images", summary="The available images")
def images(web: Carrel, who: Reader) -> ImagesOut:
    """All builds that an engine has, and the pins of the caller's groups.

    `choice` is false where work runs directly on the machine.
    """
    return web.images.shown(who, web.membership.names(who))


@router.get("/images/needed", summary="The pinned builds")
def needed(web: Carrel, who: Reader) -> NeedsOut:
    """For administrators: builds that a course has pinned, that are in use, or that an output
    names.
    """
    require_admin(who)
    return web.images.needed(web.context.files)


@router.put(
    "/groups/{group}/pins/{image}",
    summary="Pin an image for a group",
    openapi_extra=body_of(PinIn),
)
def pin(
    web: Carrel,
    who: Writer,
    group: GroupName,
    image: ImageName,
    body: Annotated[PinIn, Depends(json_body(PinIn))],
) -> PinOut:
    """For teachers of the group and administrators.

    Members of the group and its subgroups who request the image by its bare name get this build
    until the end of the last day.
    """
    return web.images.pin(who, group, image, body)


@router.delete("/groups/{group}/pins/{image}", status_code=204, summary="Unpin an image")
def unpin(web: Carrel, who: Writer, group: GroupName, image: ImageName) -> None:
    """The bare name means the newest build again."""
    web.images.unpin(who, group, image)
