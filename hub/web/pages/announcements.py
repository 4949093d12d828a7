"""The banners that a visitor sees, for pages of JupyterHub; closing one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from ...config.base_url import SERVICE_PREFIX
from ...errors import CarrelError
from ..dependencies.callers import Carrel
from ..dependencies.context import web_of
from ..dependencies.redirects import SEE_OTHER
from ..dependencies.visitors import Form, Guest, html

router = APIRouter(include_in_schema=False, prefix="/announcements")


@router.get("")
async def banners(request: Request) -> Response:
    """Render the banners; without a sign-in those that everybody sees, as on the sign-in page."""
    web = web_of(request)
    values: dict[str, object] = {}
    try:
        visitor = await web.caller_access.visitor(request)
    except CarrelError:
        visitor = None  # JupyterHub does not answer
    if visitor is not None:
        csrf = web.caller_access.csrf.issue(visitor.session)
        values = {"who": visitor.identity, "csrf": csrf}
    page = await run_in_threadpool(lambda: web.render("shared/announcements.html", **values))
    return html(page)


@router.post("/{name}/close")
def close(
    web: Carrel, visitor: Guest, name: Annotated[str, Path(max_length=64)], _: Form
) -> Response:
    """Do not show an announcement to this user any more."""
    web.context.store.close_announcement(name, visitor.identity.name)
    return RedirectResponse(SERVICE_PREFIX, SEE_OTHER)
