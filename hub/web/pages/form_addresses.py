"""Addresses to which forms are only sent: opened or reloaded, they lead to the page of the form."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ...config.base_url import SERVICE_PREFIX
from ..dependencies.redirects import SEE_OTHER

NAME = "page_of_form"
"""The name of these routes."""


def page_redirects(pages: Iterable[APIRouter]) -> APIRouter:
    """Return a GET route for each address that has only a POST.

    It redirects to the nearest page above the address, such as from ``/requests/{id}/cancel`` to
    ``/requests/{id}``.
    """
    routes = [route for page in pages for route in page.routes if isinstance(route, Route)]
    opened = {route.path for route in routes if "GET" in (route.methods or ())}
    sent = {route.path for route in routes if "POST" in (route.methods or ())}
    router = APIRouter(include_in_schema=False)
    for path in sorted(sent - opened):
        above = path
        while above and (above == path or above not in opened):
            above = above.rpartition("/")[0]
        climbs = path.count("/") - above.count("/")
        router.add_api_route(path, _to_page(climbs, at_desk=not above), methods=["GET"], name=NAME)
    return router


def _to_page(climbs: int, *, at_desk: bool) -> Callable[[Request], Response]:
    def redirect(request: Request) -> Response:
        page = request.url.path.rsplit("/", climbs)[0]
        return RedirectResponse(SERVICE_PREFIX if at_desk else page, SEE_OTHER)

    return redirect
