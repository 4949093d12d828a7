"""Turns what went wrong into an answer: JSON for programs, a page for people.

Below ``…/api/`` every error is a problem after RFC 9457 with a stable ``code``; everywhere else
it is a page with the same sentences.
"""

from __future__ import annotations

import logging
from http import HTTPStatus

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ...config.settings import SERVICE_PREFIX
from ...errors import CarrelError, NotFound, NotSignedIn, Unavailable
from ...messages.validation import invalid
from ...schemas import ErrorBody, ErrorOut
from ...schemas.errors import PROBLEM_TYPE
from ...schemas.ngshare import FailedOut
from ..monitoring.request_log import HEADER, id_of
from ..security.headers import ALWAYS
from .context import web_of

API_PREFIX = f"{SERVICE_PREFIX}api/"
EXCHANGE_PREFIX = f"{API_PREFIX}v1/exchange/"
_FOR_PROGRAMS = frozenset({"/metrics", f"{SERVICE_PREFIX}metrics"})
_RETRY_SECONDS = 3
_log = logging.getLogger(__name__)


def install(app: FastAPI) -> None:
    """Every way in which a call can fail leads through here."""
    app.add_exception_handler(CarrelError, _on_carrel_error)
    app.add_exception_handler(RequestValidationError, _on_bad_values)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(Exception, _on_surprise)


async def answer(request: Request, error: CarrelError) -> Response:
    """The answer to a caller, in the form that fits the address."""
    if request.url.path.startswith(API_PREFIX) or request.url.path in _FOR_PROGRAMS:
        return _as_json(request, error)
    if isinstance(error, NotSignedIn) and request.headers.get("hx-request"):
        # The page is open, but its sign-in has run out: lead the whole page to a new one.
        return Response(status_code=error.http_status, headers={"HX-Redirect": SERVICE_PREFIX})
    status, around = error.http_status, await _around(request, error)
    page = await run_in_threadpool(
        lambda: web_of(request).render(
            "error.html",
            error=error,
            title=HTTPStatus(status).phrase,
            status=status,
            **around,
        )
    )
    return Response(
        page,
        error.http_status,
        headers=_headers(request, error),
        media_type="text/html; charset=utf-8",
    )


async def _around(request: Request, error: CarrelError) -> dict[str, object]:
    """What a page needs for its navigation, where somebody is signed in.

    Nothing where the service itself is in trouble: its navigation is read from the store.
    """
    if error.http_status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return {}
    gate = web_of(request).gate
    try:
        visitor = await gate.visitor(request)
    except CarrelError:
        return {}
    if visitor is None:
        return {}
    return {"who": visitor.identity, "csrf": gate.csrf.issue(visitor.session)}


def _as_json(request: Request, error: CarrelError) -> Response:
    body = ErrorOut(
        title=HTTPStatus(error.http_status).phrase,
        status=error.http_status,
        detail=error.message,
        code=error.code,
        accepted=error.accepted,
        field=error.field,
        request_id=id_of(request.scope),
        error=ErrorBody(code=error.code, message=error.message, accepted=error.accepted),
    )
    if request.url.path.startswith(EXCHANGE_PREFIX):
        body = FailedOut(**dict(body), message=str(error))
    # Sentences quote what came, and that may be no Unicode at all.
    content = body.model_dump_json().encode("utf-8", "replace")
    return Response(
        content, error.http_status, headers=_headers(request, error), media_type=PROBLEM_TYPE
    )


def _headers(request: Request, error: CarrelError) -> dict[str, str]:
    # Also here: the answer to a surprise leaves outside of everything that adds headers.
    named = {HEADER: id_of(request.scope)}
    if isinstance(error, Unavailable):
        return {**named, "Retry-After": str(_RETRY_SECONDS)}
    if isinstance(error, NotSignedIn):
        return {**named, "WWW-Authenticate": "token"}
    return named


async def _on_carrel_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, CarrelError)
    return await answer(request, error)


async def _on_bad_values(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # The first part of a place says query, path or header, which is of no use to people.
    mistakes = [{**mistake, "loc": mistake["loc"][1:]} for mistake in error.errors()]
    return await answer(request, invalid(mistakes, {}))


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.NOT_FOUND:
        return await answer(request, NotFound("Page not found."))
    other = CarrelError(f"{request.method} is not supported here: {error.detail}.")
    other.code, other.http_status = "http", error.status_code
    return await answer(request, other)


async def _on_surprise(request: Request, error: Exception) -> Response:
    # Starlette raises it again after this answer, so the server's log has the traceback.
    _log.error("%s %s failed: %s", request.method, request.url.path, type(error).__name__)
    said = await answer(
        request,
        CarrelError(
            "Internal error.",
            accepted="See the log of the service for details.",
        ),
    )
    said.headers.update(ALWAYS)  # it leaves outside of what adds them
    return said
