"""The pages of the gallery: the list, an item, and the form that publishes a job."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import RedirectResponse, Response

from ....config.base_url import SERVICE_PREFIX
from ....errors import CarrelError
from ....schemas import RequestOut
from ....schemas.gallery import (
    GalleryForkIn,
    GalleryItemDetailOut,
    GalleryPublishIn,
    GalleryRunIn,
)
from ....schemas.gallery.items import LONGEST_TITLE
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.visitors import Follower, Form, Guest, html
from ...forms.fields import no_action
from ...html.cell_output import SANDBOXED
from ...html.frame_style import theme_of
from ...html.markdown import markdown_html
from ...html.notebook import notebook_page
from ...security.access import Visitor

GALLERY = f"{SERVICE_PREFIX}gallery"
_ITEM_TITLE_LEVEL = 3
_VERSION = re.compile(r"[0-9]{1,6}")
ItemId = Annotated[str, Path(max_length=64)]
Version = Annotated[int, Query(ge=0, le=1_000_000)]
JobPlace = Annotated[int, Query(ge=0, le=1000)]

router = APIRouter(include_in_schema=False, prefix="/gallery")


@router.get("")
def items(
    web: Carrel,
    visitor: Guest,
    search: Annotated[str, Query(max_length=200)] = "",
    mine: Annotated[str, Query(max_length=8)] = "",
    offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
) -> Response:
    """List the items that the visitor may see."""
    found = web.gallery.items(visitor.identity, search=search, mine=bool(mine), offset=offset)
    page = web.render_for(
        visitor,
        "gallery/items.html",
        opens_links=bool(web.open_links.allowed),
        found=found,
        search=search,
        mine=bool(mine),
        offset=offset,
    )
    return html(page)


@router.get("/publish")
def publish_page(
    web: Carrel,
    visitor: Guest,
    request: Annotated[str, Query(max_length=64)] = "",
    item: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """Show the form that publishes a job; ``item`` preselects the item of a new version."""
    return _form(web, visitor, {"request": request, "item": item})


@router.post("/publish")
def publish(web: Carrel, visitor: Guest, fields: Form) -> Response:
    try:
        made = web.gallery.publish(visitor.identity, _body(fields))
    except CarrelError as error:
        return _form(web, visitor, fields, error)
    return RedirectResponse(f"{GALLERY}/{made.id}", SEE_OTHER)


@router.get("/{item_id}")
def item(web: Carrel, visitor: Guest, item_id: ItemId, version: Version = 0) -> Response:
    return _item(web, visitor, item_id, version)


@router.post("/{item_id}")
def change(web: Carrel, visitor: Guest, item_id: ItemId, fields: Form) -> Response:
    """Run, fork or withdraw an item, depending on the button."""
    who = visitor.identity
    text = fields.get("version", "")
    version = int(text) if _VERSION.fullmatch(text) else 0
    try:
        match fields.get("do", ""):
            case "run":
                body = GalleryRunIn(
                    version=version,
                    group=fields.get("group", "")[:64],
                    idempotency_key=fields.get("key", "")[:64],
                )
                requests = web.gallery_runs.run(who, item_id, body)
                return RedirectResponse(f"{SERVICE_PREFIX}requests/{requests[-1].id}", SEE_OTHER)
            case "fork":
                fork = GalleryForkIn(
                    version=version,
                    title=fields.get("title", "")[:LONGEST_TITLE],
                    audience=fields.get("audience", "")[:64],
                )
                made = web.gallery.fork(who, item_id, fork)
                return RedirectResponse(f"{GALLERY}/{made.id}", SEE_OTHER)
            case "withdraw":
                web.gallery.withdraw(who, item_id)
                return RedirectResponse(GALLERY, SEE_OTHER)
            case _:
                raise no_action()
    except CarrelError as error:
        return _item(web, visitor, item_id, version, error=error, filled=fields)


@router.get("/{item_id}/notebook")
def notebook(
    *,
    web: Carrel,
    visitor: Guest,
    item_id: ItemId,
    version: Version = 0,
    job: JobPlace = 0,
    output: bool = False,
) -> Response:
    """Show a published notebook in a frame, or its published output."""
    found = web.gallery.one(visitor.identity, item_id, version)
    name, _ = _reader(web, output=output)(visitor.identity, item_id, version, job)
    page = web.render_for(
        visitor, "gallery/notebook.html", item=found, name=name, job=job, output=output
    )
    return html(page)


@router.get("/{item_id}/notebook/content")
def notebook_content(
    *,
    web: Carrel,
    visitor: Follower,
    request: Request,
    item_id: ItemId,
    version: Version = 0,
    job: JobPlace = 0,
    output: bool = False,
) -> Response:
    name, content = _reader(web, output=output)(visitor.identity, item_id, version, job)
    page = notebook_page(name, content, theme_of(request))
    return Response(page, media_type="text/html; charset=utf-8", headers=SANDBOXED)


def _reader(web: WebContext, *, output: bool) -> Callable[..., tuple[str, bytes]]:
    return web.gallery.output if output else web.gallery.notebook


def _item(
    web: WebContext,
    visitor: Visitor,
    item_id: str,
    version: int,
    *,
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
) -> Response:
    """Render an item; ``error`` says why ``filled`` was refused."""
    who = visitor.identity
    found = web.gallery.one(who, item_id, version)
    page = web.render_for(
        visitor,
        "gallery/item.html",
        item=found,
        description=markdown_html(found.shown.description, headings_from=_ITEM_TITLE_LEVEL),
        run=_run_of(web, visitor, found),
        groups=web.group_choices.current(who),
        audiences=web.gallery.audiences(who),
        error=error,
        filled=filled or {},
    )
    return html(page, error.http_status if error else 200)


def _run_of(web: WebContext, visitor: Visitor, found: GalleryItemDetailOut) -> RequestOut | None:
    """Return the published run, if the visitor may see it."""
    try:
        return web.requests.request(visitor.identity, found.shown.request)
    except CarrelError:
        return None


def _form(
    web: WebContext, visitor: Visitor, fields: Mapping[str, str], error: CarrelError | None = None
) -> Response:
    """Render the form that publishes a job. Raises NotFound without a job of the visitor."""
    who = visitor.identity
    request = web.requests.request(who, fields.get("request", "")[:64])
    own = web.gallery.items(who, mine=True).items
    old = next((each for each in own if each.id == fields.get("item")), None)
    page = web.render_for(
        visitor,
        "gallery/publish.html",
        request=request,
        pipeline=web.pipelines.of(who, request.id, with_end=False),
        own=own,
        audiences=web.gallery.audiences(who),
        filled=fields,
        title=fields.get("title") or (old.title if old else ""),
        audience=fields.get("audience") or (old.audience if old else request.group),
        error=error,
    )
    return html(page, error.http_status if error else 200)


def _body(fields: Mapping[str, str]) -> GalleryPublishIn:
    description = fields.get("description", "").strip()
    item = fields.get("item", "")[:64]
    return GalleryPublishIn(
        request=fields.get("request", "")[:64],
        pipeline="pipeline" in fields,
        # Longer texts are refused by the service, with a message.
        title=fields.get("title", "").strip()[:LONGEST_TITLE],
        description=(description or None if item else description),
        audience=fields.get("audience", "")[:64],
        outputs="outputs" in fields,
        item=item,
    )
