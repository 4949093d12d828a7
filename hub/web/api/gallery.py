"""REST routes for the gallery of published jobs, notebooks and pipelines."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from ...schemas import RequestsOut
from ...schemas.gallery import (
    GalleryForkIn,
    GalleryItemDetailOut,
    GalleryItemsOut,
    GalleryPublishIn,
    GalleryRunIn,
)
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..html.downloads import SAFE_CONTENT, attachment
from ..openapi.description import ERRORS, body_of

ItemId = Annotated[str, Path(description="Such as `g-7f3k2m9p`.", max_length=64)]
Version = Annotated[int, Query(ge=0, le=1_000_000, description="0 for the newest version.")]
JobPlace = Annotated[int, Query(ge=0, le=1000, description="Place of the job, from 0.")]

router = APIRouter(prefix="/gallery", responses=ERRORS, tags=["gallery"])


@router.get("", summary="Published items that you may see")
def items(
    web: Carrel,
    who: Reader,
    search: Annotated[
        str, Query(max_length=200, description="Words in titles, owners and descriptions.")
    ] = "",
    mine: Annotated[bool, Query(description="Only your own.")] = False,
    offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
) -> GalleryItemsOut:
    """Items of all users and of your groups, the last changed first."""
    return web.gallery.items(who, search=search, mine=mine, offset=offset)


@router.post("", status_code=201, summary="Publish a job", openapi_extra=body_of(GalleryPublishIn))
def publish(
    web: Carrel,
    who: Writer,
    body: Annotated[GalleryPublishIn, Depends(json_body(GalleryPublishIn))],
) -> GalleryItemDetailOut:
    """Copy the source of the notebook and the parameters; outputs only with `outputs`.

    With `item`, it becomes a new version; the old ones can still be run.
    """
    return web.gallery.publish(who, body)


@router.get("/{item_id}", summary="A published item")
def item(web: Carrel, who: Reader, item_id: ItemId, version: Version = 0) -> GalleryItemDetailOut:
    """With one of its versions."""
    return web.gallery.one(who, item_id, version)


@router.get("/{item_id}/notebook", summary="The notebook of an item")
def notebook(
    web: Carrel, who: Reader, item_id: ItemId, version: Version = 0, job: JobPlace = 0
) -> Response:
    """Without outputs."""
    return _file(*web.gallery.notebook(who, item_id, version, job))


@router.get("/{item_id}/output", summary="The published output of an item")
def output(
    web: Carrel, who: Reader, item_id: ItemId, version: Version = 0, job: JobPlace = 0
) -> Response:
    """The executed notebook, or the log of a command, if its owner has published it."""
    return _file(*web.gallery.output(who, item_id, version, job))


@router.post(
    "/{item_id}/run",
    status_code=201,
    summary="Submit the jobs of an item",
    openapi_extra=body_of(GalleryRunIn),
)
def run(
    web: Carrel,
    who: Writer,
    item_id: ItemId,
    body: Annotated[GalleryRunIn, Depends(json_body(GalleryRunIn))],
) -> RequestsOut:
    """All of them, in their order; if one is refused, none is queued."""
    return RequestsOut(requests=web.gallery_runs.run(who, item_id, body))


@router.post(
    "/{item_id}/fork",
    status_code=201,
    summary="Publish your own copy of an item",
    openapi_extra=body_of(GalleryForkIn),
)
def fork(
    web: Carrel,
    who: Writer,
    item_id: ItemId,
    body: Annotated[GalleryForkIn, Depends(json_body(GalleryForkIn))],
) -> GalleryItemDetailOut:
    """It names the item and the owner that it comes from; outputs are not copied."""
    return web.gallery.fork(who, item_id, body)


@router.post("/{item_id}/withdraw", status_code=204, summary="Withdraw an item")
def withdraw(web: Carrel, who: Writer, item_id: ItemId) -> None:
    """For its owner, teachers of its group and administrators; jobs that it started stay."""
    web.gallery.withdraw(who, item_id)


def _file(name: str, content: bytes) -> Response:
    headers = {"Content-Disposition": attachment(name), **SAFE_CONTENT}
    return Response(content, media_type="application/octet-stream", headers=headers)
