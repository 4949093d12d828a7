"""Request log: give every HTTP call an id, and log calls that are changes or fail."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...config.log import REQUEST_ID, fields, request_id

HEADER = "X-Request-ID"
_log = logging.getLogger("carrel.http")
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_SEVERE = 500
_REFUSED = 400
_TOO_MANY = 429


class Tracing:
    """The outermost middleware: everything inside logs under the id of the call."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        call = request_id(Headers(scope=scope).get(HEADER, ""))
        # Not reset afterwards: the server logs an error later. Every call is a task with its own
        # context variables.
        REQUEST_ID.set(call)
        scope.setdefault("state", {})["request_id"] = call
        began, status = time.monotonic(), _SEVERE

        async def send_named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = call
            await send(message)

        try:
            await self._app(scope, receive, send_named)
        finally:
            _log_call(scope, status, time.monotonic() - began)


def id_of(scope: Mapping[str, object]) -> str:
    """Return the id of a call that came through ``Tracing``."""
    state = scope.get("state")
    return str(state.get("request_id", "")) if isinstance(state, dict) else ""


def _log_call(scope: Scope, status: int, seconds: float) -> None:
    """Log a call with its path only, since the query may contain secrets."""
    if status >= _SEVERE:
        level = logging.ERROR
    elif status == _TOO_MANY:
        level = logging.DEBUG  # the limit itself logs them, but not all
    elif status >= _REFUSED or scope["method"] not in _READS:
        level = logging.INFO
    else:
        level = logging.DEBUG
    # As sent, percent-encoded: it cannot break a line of the log.
    path = scope.get("raw_path", b"").partition(b"?")[0].decode("ascii", "backslashreplace")
    _log.log(
        level,
        "%s %s %d",
        scope["method"],
        path,
        status,
        extra=fields(method=scope["method"], path=path, status=status, seconds=round(seconds, 4)),
    )
