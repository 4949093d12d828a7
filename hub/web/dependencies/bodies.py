"""Read request bodies: size-limited, with an error message for invalid JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...config.base_url import SERVICE_PREFIX
from ...errors import InvalidInput, TooLarge
from ...messages.validation import invalid_body
from .errors import API_PREFIX, answer

MAX_API_BYTES = 48 * 1024 * 1024
"""A notebook of the max size (32 MiB), encoded as JSON in JSON."""
MAX_FORM_BYTES = 256 * 1024
SUBMIT_PREFIX = f"{SERVICE_PREFIX}submit"
"""Its form contains a notebook."""
COURSE_PREFIX = f"{SERVICE_PREFIX}course"
"""Pages of courses: their forms contain rosters and folders of files."""
_DRAIN_BYTES = 1024 * 1024 * 1024
_DRAIN_SECONDS = 30.0

_Model = TypeVar("_Model", bound=BaseModel)


def json_body(model: type[_Model]) -> Callable[[Request], Awaitable[_Model]]:
    """Return a dependency that parses one model strictly, without type conversion."""

    async def read(request: Request) -> _Model:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise InvalidInput(
                f"The body is of the type {kind[:60] or 'nothing'!r}.",
                accepted="Send JSON with 'Content-Type: application/json'.",
            )
        data = await request.body()
        # Large bodies take a while: parse them outside the event loop.
        return await run_in_threadpool(parse, model, data)

    return read


def parse(model: type[_Model], data: bytes) -> _Model:
    """Parse a JSON body.

    Raises:
        InvalidInput: the body is invalid; the message describes the first error.
    """
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"The body is not UTF-8: byte {error.start} is invalid.",
            accepted="Send JSON in UTF-8.",
        ) from None
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise invalid_body(error, model) from None


def form_fields(data: bytes, most: int) -> list[tuple[str, str]]:
    """Parse a URL-encoded form.

    Raises:
        InvalidInput: it has more than ``most`` fields, or is not UTF-8.
    """
    if data.count(b"&") >= most:
        raise InvalidInput(
            f"The form has more than {most:,} fields.",
            accepted=f"At most {most:,}: send a part of them at a time.",
        )
    try:
        return parse_qsl(data.decode(), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInput("The form is not UTF-8.", accepted="Use the form on the page.") from None


class BodyLimit:
    """Refuse bodies that are too large, by their declared or their actual size."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        large = scope["path"].startswith((API_PREFIX, SUBMIT_PREFIX, COURSE_PREFIX))
        limit = MAX_API_BYTES if large else MAX_FORM_BYTES
        guard = _Guard(receive, send, limit)
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > limit:
            guard.exceeded = True
            refused = await answer(Request(scope), too_large(limit))
            await refused(scope, receive, guard.send)
        else:
            await self._app(scope, guard.receive, guard.send)


class _Guard:
    """Count the received bytes; after a refusal, discard the rest before closing.

    A client that is still sending would otherwise see a broken connection and no answer.
    """

    def __init__(self, receive: Receive, send: Send, limit: int) -> None:
        self._receive = receive
        self._send = send
        self._limit = limit
        self._received = 0
        self._all_read = False
        self.exceeded = False

    async def receive(self) -> Message:
        message = await self._next()
        if self._received > self._limit:
            self.exceeded = True
            raise too_large(self._limit)
        return message

    async def send(self, message: Message) -> None:
        if not self.exceeded:
            await self._send(message)
        elif message["type"] == "http.response.body" and not message.get("more_body"):
            await self._send({**message, "more_body": True})
            await self._drain()
            await self._send({"type": "http.response.body", "body": b""})
        else:
            await self._send(message)

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while not self._all_read and self._received < _DRAIN_BYTES:
                    await self._next()
        except TimeoutError:
            return

    async def _next(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body", b""))
        self._all_read = message["type"] != "http.request" or not message.get("more_body")
        return message


def too_large(limit: int) -> TooLarge:
    return TooLarge(
        "The upload is too large.",
        accepted=f"At most {limit // 1024:,} KiB together; clear large outputs from the notebook.",
    )
