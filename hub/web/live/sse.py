"""Server-sent events: format, rate limit and prompt shutdown.

A stream sends immediately, then after every change, and a comment after 15 quiet seconds so that
proxies keep the connection open.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import anyio
from fastapi import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ...errors import InvalidInput
from ...runtime.notifier import ChangeNotifier

KEEP_ALIVE_SECONDS = 15.0
_PACE_SECONDS = 0.1
_LINE_END = re.compile(r"\r\n|\r|\n")
"""The line ends of server-sent events: ``splitlines`` knows more."""
_AT_ONCE = 3
ALIVE = b": alive\n\n"
SIGN_IN_CHECK_SECONDS = 30.0
"""How long a stream can outlive the sign-in or token of its reader."""


class StreamPace:
    """Rate limit: a few rounds immediately, then one every ``seconds``; a pause restores the
    burst."""

    def __init__(self, *, at_once: int = _AT_ONCE, seconds: float = _PACE_SECONDS) -> None:
        self._seconds = seconds
        self._ahead = (at_once - 1) * seconds
        self._due = 0.0
        """End of all rounds so far at one every ``seconds``."""

    def pause(self, now: float) -> float:
        """Record a round, and return the seconds to wait before the next one."""
        self._due = max(self._due, now) + self._seconds
        return max(0.0, self._due - self._ahead - now)


class Streams:
    """All open streams of the service; ``close`` ends them for a shutdown."""

    def __init__(self, notifier: ChangeNotifier, *, keep_alive: float = KEEP_ALIVE_SECONDS) -> None:
        self.notifier = notifier
        self.keep_alive = keep_alive
        self.closed = False
        self.open = 0
        """The number of followers."""

    def close(self) -> None:
        self.closed = True
        self.notifier.notify()

    async def rounds(self) -> AsyncGenerator[bool, None]:
        """Yield immediately, then once per change (True) or after a quiet period (False).

        Data that a consumer reads within a round is at least as new as the notification that
        started it, and a notification during a round starts the next one.
        """
        seen, changed = self.notifier.version, True
        pace, clock = StreamPace(), asyncio.get_running_loop().time
        self.open += 1
        try:
            while not self.closed:
                yield changed
                await asyncio.sleep(pace.pause(clock()))  # the rate limit
                if self.closed:
                    return
                now = await self.notifier.wait(seen, self.keep_alive)
                seen, changed = now, now != seen
        finally:
            self.open -= 1


def message(event: str, data: str = "{}", *, event_id: int | None = None) -> bytes:
    """Format one event; data may contain line breaks."""
    lines = [f"event: {event}"]
    if event_id is not None:
        lines.append(f"id: {event_id}")
    lines += [f"data: {line}" for line in _LINE_END.split(data)]
    return ("\n".join(lines) + "\n\n").encode()


class EventStream(StreamingResponse):
    """Send until the source or the sign-in of the reader ends, or the reader disconnects.

    The source is always closed.
    """

    def __init__(
        self, source: AsyncGenerator[bytes, None], *, signed_in: Callable[[], Awaitable[bool]]
    ) -> None:
        super().__init__(
            source,
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
        self._source = source
        self._signed_in = signed_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        signed_out = False
        async with aclosing(self._source), anyio.create_task_group() as group:

            async def until_gone() -> None:
                await self.listen_for_disconnect(receive)
                group.cancel_scope.cancel()

            async def until_signed_out() -> None:
                nonlocal signed_out
                # JupyterHub is asked each time: streams that opened together take turns.
                pause = SIGN_IN_CHECK_SECONDS * random.random()  # noqa: S311  # no secret
                while not signed_out:
                    await asyncio.sleep(pause)
                    signed_out = not await self._signed_in()
                    pause = SIGN_IN_CHECK_SECONDS
                group.cancel_scope.cancel()

            group.start_soon(until_gone)
            group.start_soon(until_signed_out)
            await self.stream_response(send)
            group.cancel_scope.cancel()
        if signed_out:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


_EVENT_ID = re.compile(r"[0-9]{1,18}")


def last_event_id(request: Request) -> int:
    """Return the Last-Event-ID of a request; 0 if there is none. Raises InvalidInput."""
    return _event_number(request.headers.get("last-event-id", ""))


def _event_number(given: str) -> int:
    if not given:
        return 0
    if not _EVENT_ID.fullmatch(given):
        raise InvalidInput(
            f"Invalid Last-Event-ID: {given[:40]!r}.",
            accepted="Send the id of an event, a whole number.",
        )
    return int(given)
