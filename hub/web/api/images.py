"""REST about images: the catalogue, and what groups pin."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from ...records.identity import check
from ...schemas.images import ImagesOut, NeedsOut, PinIn, PinOut
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..openapi.description import ERRORS, body_of

GroupName = Annotated[str, Path(max_length=64, description="Such as `cs101`.")]
ImageName = Annotated[str, Path(max_length=64, description="Such as `torch`.")]

router = APIRouter(responses=ERRORS, tags=["images"])


@router.get("/images", summary="The images to choose from")
def images(web: Carrel, who: Reader) -> ImagesOut:
    """Every build that an engine has, and what the caller's groups have pinned.

    `choice` is false where work runs on the machine itself, not in images.
    """
    return web.images.shown(who, web.membership.names(who))


@router.get("/images/needed", summary="The builds that must stay")
def needed(web: Carrel, who: Reader) -> NeedsOut:
    """For administrators: a course has pinned it, something runs in it, or an output names it."""
    check(who)
    return web.images.needed(web.context.files)


@router.put(
    "/groups/{group}/pins/{image}",
    summary="Keep a group to one build of an image",
    openapi_extra=body_of(PinIn),
)
def pin(
    web: Carrel,
    who: Writer,
    group: GroupName,
    image: ImageName,
    body: Annotated[PinIn, Depends(json_body(PinIn))],
) -> PinOut:
    """For its teachers and for administrators.

    Who asks for the image by its bare name as a member of the group, or of one below it, gets
    this build until the last day is over.
    """
    return web.images.pin(who, group, image, body)


@router.delete("/groups/{group}/pins/{image}", status_code=204, summary="Take a pin away")
def unpin(web: Carrel, who: Writer, group: GroupName, image: ImageName) -> None:
    """The bare name stands for the newest build again."""
    web.images.unpin(who, group, image)
