"""Gives every HTTP call an id, and logs what came of those that changed or failed something."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...config.log import REQUEST_ID, facts, request_id

HEADER = "X-Request-ID"
_log = logging.getLogger("carrel.http")
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_SEVERE = 500
_REFUSED = 400


class Tracing:
    """The outermost of our own layers: what is inside it logs under the call's id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        call = request_id(Headers(scope=scope).get(HEADER, ""))
        # Not taken back afterwards: the server has its own word about an error, later. Every
        # call is a task of its own, with variables of its own.
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
            _tell(scope, status, time.monotonic() - began)


def id_of(scope: Mapping[str, object]) -> str:
    """Of a call that came through ``Tracing``."""
    state = scope.get("state")
    return str(state.get("request_id", "")) if isinstance(state, dict) else ""


def _tell(scope: Scope, status: int, seconds: float) -> None:
    """The path alone: a query may hold what only its sender should know."""
    if status >= _SEVERE:
        level = logging.ERROR
    elif status >= _REFUSED or scope["method"] not in _READS:
        level = logging.INFO
    else:
        level = logging.DEBUG
    # As it was sent, in percent signs: nothing in it can break a line of the log.
    path = scope.get("raw_path", b"").partition(b"?")[0].decode("ascii", "backslashreplace")
    _log.log(
        level,
        "%s %s %d",
        scope["method"],
        path,
        status,
        extra=facts(method=scope["method"], path=path, status=status, seconds=round(seconds, 4)),
    )
