"""Turn exceptions into responses: JSON for programs, a page for browsers.

Below ``…/api/`` every error is a problem as in RFC 9457 with a stable ``code``; elsewhere it is a
page with the same sentences, or in a frame the sentences alone.
"""

from __future__ import annotations

import errno
import logging
from html import escape
from http import HTTPStatus

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ...config.base_url import SERVICE_PREFIX
from ...errors import CarrelError, NotFound, NotSignedIn, TooManyCalls, Unavailable
from ...messages.validation import invalid
from ...schemas import ErrorBody, ErrorOut
from ...schemas.errors import PROBLEM_TYPE
from ...schemas.ngshare import FailedOut
from ..html.cell_output import SANDBOXED, html_page
from ..html.documentation import problem_type
from ..html.frame_style import theme_of
from ..monitoring.request_log import HEADER, id_of
from ..security.headers import ALWAYS
from .context import web_of

API_PREFIX = f"{SERVICE_PREFIX}api/"
EXCHANGE_PREFIX = f"{API_PREFIX}v1/exchange/"
_FOR_PROGRAMS = frozenset({"/metrics", f"{SERVICE_PREFIX}metrics"})
_RETRY_SECONDS = 3
_DISK_PROBLEMS = {
    errno.ENOSPC: "is full",
    errno.EDQUOT: "is full",
    errno.EROFS: "is read-only",
    errno.EIO: "has failed",
}
_log = logging.getLogger(__name__)


def install(app: FastAPI) -> None:
    """Register the handlers of all errors."""
    app.add_exception_handler(CarrelError, _on_carrel_error)
    app.add_exception_handler(RequestValidationError, _on_bad_values)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(OSError, _on_os_error)
    app.add_exception_handler(Exception, _on_unexpected_error)


async def answer(request: Request, error: CarrelError) -> Response:
    """Return the error response: JSON for the API, a page for other addresses."""
    if request.url.path.startswith(API_PREFIX) or request.url.path in _FOR_PROGRAMS:
        return _as_json(request, error)
    if isinstance(error, NotSignedIn) and request.headers.get("hx-request"):
        # The sign-in of an open page expired: redirect the whole page.
        return Response(status_code=error.http_status, headers={"HX-Redirect": SERVICE_PREFIX})
    if request.headers.get("sec-fetch-dest") == "iframe":
        return _in_frame(request, error)
    status, navigation = error.http_status, await _navigation(request, error)
    page = await run_in_threadpool(
        lambda: web_of(request).render(
            "shared/error.html",
            error=error,
            title=HTTPStatus(status).phrase,
            status=status,
            **navigation,
        )
    )
    return Response(
        page,
        error.http_status,
        headers=_headers(request, error),
        media_type="text/html; charset=utf-8",
    )


def _in_frame(request: Request, error: CarrelError) -> Response:
    """Return the sentences for a frame of our pages, which may not show one of our pages."""
    sentences = escape(f"{error.message} {error.accepted}".strip())
    return Response(
        html_page(f"<p>{sentences}</p>", theme_of(request)),
        error.http_status,
        headers={**SANDBOXED, **_headers(request, error)},
        media_type="text/html; charset=utf-8",
    )


async def _navigation(request: Request, error: CarrelError) -> dict[str, object]:
    """Return the values of the navigation of an error page for a signed-in user.

    Empty if the service itself has failed, since the navigation is read from the store.
    """
    if error.http_status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return {}
    access = web_of(request).caller_access
    try:
        visitor = await access.visitor(request)
    except CarrelError:
        return {}
    if visitor is None:
        return {}
    return {"who": visitor.identity, "csrf": access.csrf.issue(visitor.session)}


def _as_json(request: Request, error: CarrelError) -> Response:
    body = ErrorOut(
        type=problem_type(error),
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
    # Sentences quote input, which may not be valid Unicode.
    content = body.model_dump_json().encode("utf-8", "replace")
    return Response(
        content, error.http_status, headers=_headers(request, error), media_type=PROBLEM_TYPE
    )


def _headers(request: Request, error: CarrelError) -> dict[str, str]:
    # Needed here too: the response to an unexpected error bypasses the middleware for headers.
    named = {HEADER: id_of(request.scope)}
    if isinstance(error, TooManyCalls):
        return {**named, "Retry-After": str(error.seconds)}
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
    # The first part of a location (query, path or header) does not help users.
    details = [{**detail, "loc": detail["loc"][1:]} for detail in error.errors()]
    return await answer(request, invalid(details, {}))


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.NOT_FOUND:
        return await answer(request, NotFound("Page not found."))
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        sentence = f"{request.method} is not supported here: {error.detail}."
    else:  # such as a form that Starlette cannot parse
        sentence = f"The request cannot be read: {error.detail.rstrip('.')}."
    other = CarrelError(sentence)
    other.code, other.http_status = "http", error.status_code
    return await answer(request, other)


async def _on_os_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)
    reason = _DISK_PROBLEMS.get(error.errno or 0)
    if reason is None:
        raise error
    _log.error("%s %s: %s", request.method, request.url.path, error)
    return await answer(
        request,
        Unavailable(
            f"The server's disk {reason}, so nothing new can be accepted. Running work continues.",
            accepted="An administrator must free space or repair the disk; then try again.",
        ),
    )


async def _on_unexpected_error(request: Request, error: Exception) -> Response:
    # Starlette raises it again after this response, so that the server logs the traceback.
    _log.error("%s %s failed: %s", request.method, request.url.path, type(error).__name__)
    response = await answer(
        request,
        CarrelError(
            "Internal error.",
            accepted="See the log of the service for details.",
        ),
    )
    for name, value in ALWAYS.items():  # it bypasses the middleware that adds them
        response.headers.setdefault(name, value)
    # The server closes the connection after the traceback: a proxy must not use it again.
    response.headers["Connection"] = "close"
    return response
