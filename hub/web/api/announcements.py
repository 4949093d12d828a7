"""REST routes for announcements."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from ...schemas.announcements import AnnouncementIn, AnnouncementOut, AnnouncementsOut
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..dependencies.edit_versions import etag
from ..openapi.description import ERRORS, body_of

Name = Annotated[str, Path(max_length=64, description="Id of an announcement.")]

router = APIRouter(
    prefix="/announcements",
    responses=ERRORS,
    tags=["administration"],
    dependencies=[Depends(etag)],
)


@router.get("", summary="The announcements of administrators")
def announcements(
    web: Carrel,
    who: Reader,
    all_: Annotated[
        bool,
        Query(alias="all", description="Also those of the last 30 days and later ones."),
    ] = False,
) -> AnnouncementsOut:
    """Those that are shown to the caller now: current ones that the caller has not closed.

    `all` is for administrators.
    """
    found = web.administration.announcements(who) if all_ else web.announcements(who)
    return AnnouncementsOut(announcements=found)


@router.post(
    "",
    status_code=201,
    summary="Show an announcement to all users",
    openapi_extra=body_of(AnnouncementIn),
)
def announce(
    web: Carrel, who: Writer, body: Annotated[AnnouncementIn, Depends(json_body(AnnouncementIn))]
) -> AnnouncementOut:
    """It is shown on all pages, the sign-in page included, from `starts_at` until `ends_at`."""
    return web.administration.announce(who, body)


@router.delete("/{name}", status_code=204, summary="Remove an announcement")
def remove_announcement(web: Carrel, who: Writer, name: Name) -> None:
    """It is no longer shown; the audit log keeps it."""
    web.administration.remove_announcement(who, name)


@router.post("/{name}/close", status_code=204, summary="Close an announcement for yourself")
def close_announcement(web: Carrel, who: Writer, name: Name) -> None:
    """It is not shown to the caller any more."""
    web.context.store.close_announcement(name, who.name)
