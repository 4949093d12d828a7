"""The OpenAPI description: bodies are read by hand, and described here all the same."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ..wire import EventsIn, JobIn, OpenSessionIn, SessionIn, StartedIn, StopIn

_BODIES: tuple[type[BaseModel], ...] = (
    EventsIn,
    JobIn,
    OpenSessionIn,
    SessionIn,
    StartedIn,
    StopIn,
)
_REF = "#/components/schemas/{model}"

ABOUT = """
Notebook sessions and batch notebook jobs on one shared pool of devices.

**Callers.** People are signed in through JupyterHub. Programs send a JupyterHub token,
`Authorization: token …`, with the scopes `access:services!service=carrel` and
`custom:carrel:read` (to look) or `custom:carrel:submit` (to change things).
A change that a browser asks for with its cookie needs the page's form token in
`X-Carrel-CSRF`.

**Times** are seconds since the epoch (UTC), spans are seconds.

**Errors** have one form: `{"error": {"code", "message", "accepted"}}`. The message is a
sentence for people; `accepted` says what would have been accepted, where that helps.

**Words.** A *request* asks for something to run (a session or a job). It waits in one queue
until it is granted a *lease* on named *devices*, and ends with a *cause*.
"""


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """What an operation says about its body."""
    schema = {"$ref": _REF.format(model=model.__name__)}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def describe(app: FastAPI) -> None:
    """Let the app's description contain the bodies' models too."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(
                title=app.title, version=app.version, description=ABOUT, routes=app.routes
            )
            _, found = models_json_schema(
                [(model, "validation") for model in _BODIES], ref_template=_REF
            )
            made.setdefault("components", {}).setdefault("schemas", {}).update(found["$defs"])
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way
