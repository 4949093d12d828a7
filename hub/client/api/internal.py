"""The client of JupyterHub's spawners: the same API, async, with the service token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar
from urllib.parse import quote
from weakref import WeakKeyDictionary

import httpx
from pydantic import BaseModel, JsonValue, ValidationError

from ...errors import Unavailable
from ...schemas import OpenSessionIn, RequestOut, StartedIn, StopIn
from ...schemas.grading import GradedOut
from ..transport.error_map import failure
from ..transport.sse import Parser

SILENCE_SECONDS = 45.0
"""A stream that is silent for longer is dead: it sends something every 15 s."""
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 1.0

M = TypeVar("M", bound=BaseModel)

_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()


def pool() -> httpx.AsyncClient:
    """One connection pool for all spawners; every waiting spawn holds a stream."""
    loop = asyncio.get_running_loop()
    if loop not in _pools:
        _pools[loop] = httpx.AsyncClient(
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=16),
            timeout=httpx.Timeout(15.0),
            trust_env=False,
        )
    return _pools[loop]


class InternalClient:
    """The calls that only JupyterHub may make. They raise the classes of ``hub.errors``."""

    def __init__(self, service_url: str, hub_token: str) -> None:
        """``service_url``: without a trailing slash, as in ``Settings.service_url``."""
        self._base = f"{service_url.rstrip('/')}/api/v1"
        self._headers = {"Authorization": f"token {hub_token}"}

    async def open_session(
        self, owner: str, server_name: str, options: dict[str, JsonValue]
    ) -> RequestOut:
        """Return the live request of this server, or create one. Safe to repeat."""
        body = OpenSessionIn(owner=owner, server_name=server_name, options=options)
        return await self._call("PUT", "sessions", body)

    async def request(self, request_id: str) -> RequestOut:
        return await self._call("GET", f"requests/{quote(request_id, safe='')}")

    async def stop(self, request_id: str, body: StopIn) -> RequestOut:
        return await self._call("POST", f"requests/{quote(request_id, safe='')}/stop", body)

    async def launch(self, lease_id: str) -> RequestOut:
        """Record the intent to start; Conflict if the lease has ended meanwhile."""
        return await self._call("POST", f"leases/{quote(lease_id, safe='')}/launch")

    async def started(self, lease_id: str, body: StartedIn) -> RequestOut:
        return await self._call("POST", f"leases/{quote(lease_id, safe='')}/started", body)

    async def graded(self, person: str) -> tuple[str, ...]:
        """Return the courses that a user teaches or grades; their folders exist then."""
        found = await self._answer("GET", f"people/{quote(person, safe='')}/graded", GradedOut)
        return tuple(found.courses)

    async def statuses(self, request_id: str) -> AsyncGenerator[RequestOut | None, None]:
        """Yield the request whenever it changes, until it has ended.

        Reconnects for as long as the caller listens; None says that the service is away. Close it
        (``aclosing``) when you stop listening: the service takes an open stream as a sign that a
        spawner waits for this request.
        """
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                async with aclosing(self._stream(request_id)) as stream:
                    async for found in stream:
                        pause = FIRST_PAUSE_SECONDS
                        yield found
                        if found.ended:
                            return
            except Unavailable:
                yield None
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _stream(self, request_id: str) -> AsyncGenerator[RequestOut, None]:
        url = f"{self._base}/requests/{quote(request_id, safe='')}/events"
        timeout = httpx.Timeout(15.0, read=SILENCE_SECONDS)
        parser = Parser()
        try:
            async with pool().stream("GET", url, headers=self._headers, timeout=timeout) as answer:
                if not answer.is_success:
                    raise failure(self._base, answer.status_code, await answer.aread())
                async for line in answer.aiter_lines():
                    message = parser.feed(line)
                    if message and message.event == "status":
                        yield RequestOut.model_validate_json(message.data)
        except httpx.TransportError as error:
            raise self._away(error) from error

    async def _call(self, method: str, path: str, body: BaseModel | None = None) -> RequestOut:
        return await self._answer(method, path, RequestOut, body)

    async def _answer(
        self, method: str, path: str, kind: type[M], body: BaseModel | None = None
    ) -> M:
        try:
            answer = await pool().request(
                method,
                f"{self._base}/{path}",
                headers=self._headers,
                json=None if body is None else body.model_dump(mode="json"),
            )
        except httpx.TransportError as error:
            raise self._away(error) from error
        if not answer.is_success:
            raise failure(self._base, answer.status_code, answer.content)
        try:
            return kind.model_validate_json(answer.content)
        except ValidationError as error:
            raise Unavailable(f"The server at {self._base} is not Carrel.") from error

    def _away(self, error: httpx.TransportError) -> Unavailable:
        return Unavailable(
            "The Carrel service is not responding.",
            accepted=f"({str(error) or type(error).__name__})",
        )
