"""Middleware of the MCP server over HTTP: the token of the program, and a bound on open calls."""

from __future__ import annotations

import hmac
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

AT_ONCE: Final = 64
"""Open calls and streams of all clients."""


class BearerOnly:
    """Refuses calls without the token, and calls while too many are open."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token
        self.open_calls = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(Headers(scope=scope).get("authorization", ""))
        if refused is not None:
            await refused(scope, receive, send)
            return
        self.open_calls += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self.open_calls -= 1

    def _refusal(self, header: str) -> Response | None:
        kind, _, given = header.partition(" ")
        same = hmac.compare_digest(
            given.strip().encode("utf-8", "surrogatepass"), self._token.encode()
        )
        if kind.lower() != "bearer" or not same:
            return JSONResponse(
                {"error": "Send the token of the program as 'Authorization: Bearer …'."},
                401,
                {"WWW-Authenticate": "Bearer"},
            )
        if self.open_calls >= AT_ONCE:
            return JSONResponse(
                {"error": f"{AT_ONCE} calls are open, and no more are accepted. Try again in 1 s."},
                429,
                {"Retry-After": "1"},
            )
        return None
