"""All GET routes of the application, of all routers."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount

from carrel.hub.web.pages import form_addresses

from .fakes import API


def pages_and_parts(app: FastAPI) -> set[str]:
    """Return the declared paths, except those of the REST API and redirects to a form."""
    found = {
        str(route.path)
        for route in iter_route_contexts(app.routes)
        if isinstance(route.original_route, Mount)
        or ("GET" in (route.methods or ()) and route.name != form_addresses.NAME)
    }
    return {path for path in found if not path.startswith(f"{API}/")}
