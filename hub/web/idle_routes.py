"""Idle sessions: kept by their owners, and told of by the sessions themselves."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import RedirectResponse, Response

from ..config.settings import SERVICE_PREFIX
from ..schemas import KernelsIn, RequestOut, WatchOut
from .dependencies.bodies import json_body
from .dependencies.callers import ERRORS, Carrel, RequestId, Writer
from .dependencies.visitors import Form, Guest
from .openapi.description import body_of
from .pages.login import SEE_OTHER

router = APIRouter(responses=ERRORS)
pages = APIRouter(include_in_schema=False)


@router.post("/requests/{request_id}/keep", tags=["sessions"], summary="Keep an idle session")
def keep(web: Carrel, who: Writer, request_id: RequestId) -> RequestOut:
    """Takes back its `warning`; its idle time is counted anew. Once for each session.

    A second time, and without a warning, the answer is 409. Only its owner can do this.
    """
    return web.idling.keep(who, request_id)


@router.post(
    "/requests/{request_id}/kernels",
    tags=["sessions"],
    summary="Say what a session's kernels do",
    openapi_extra=body_of(KernelsIn),
)
def kernels(
    web: Carrel,
    who: Writer,
    request_id: RequestId,
    body: Annotated[KernelsIn, Depends(json_body(KernelsIn))],
) -> WatchOut:
    """Sent by the server of a running session, with the session's own token, every
    `again_seconds`. A session that does not tell counts as working. Only for its owner.
    """
    return web.idling.tell(who, request_id, body)


@pages.post("/requests/{request_id}/keep")
def keep_form(web: Carrel, visitor: Guest, request_id: RequestId, fields: Form) -> Response:
    """The button beside the countdown."""
    web.idling.keep(visitor.identity, request_id)
    return RedirectResponse(SERVICE_PREFIX, SEE_OTHER)
