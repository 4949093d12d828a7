"""Middleware for HEAD: every GET route also answers HEAD, without a body."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadRequests:
    """Pass HEAD on as GET; an endless response, such as an event stream, ends after its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        complete = False

        async def send_headers(message: Message) -> None:
            nonlocal complete
            if message["type"] != "http.response.body":
                await send(message)
            elif not complete:
                complete = True
                await send({"type": "http.response.body", "body": b""})
                if message.get("more_body"):
                    call.cancel()

        call = asyncio.ensure_future(self._app({**scope, "method": "GET"}, receive, send_headers))
        try:
            with suppress(asyncio.CancelledError):
                await call
        finally:
            call.cancel()
        if not complete:
            raise asyncio.CancelledError
