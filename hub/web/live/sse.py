"""Server-sent events: their form, their rhythm, and their prompt end.

A stream follows the notifier: it speaks at once, then after each beat, and says a word after 15
silent seconds so that nobody in between hangs up. Where beats come in a row it speaks ten times
a second at most; a few close together are each told at once, because a device that changes
hands makes several, and the last of them starts somebody's session.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio
from fastapi import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ...errors import InvalidInput
from ...runtime.notifier import ChangeNotifier

KEEP_ALIVE_SECONDS = 15.0
_PACE_SECONDS = 0.1
_AT_ONCE = 3
ALIVE = b": alive\n\n"


class StreamPace:
    """A few rounds at once, then one each ``seconds``; silence brings the few back."""

    def __init__(self, *, at_once: int = _AT_ONCE, seconds: float = _PACE_SECONDS) -> None:
        self._seconds = seconds
        self._ahead = (at_once - 1) * seconds
        self._due = 0.0
        """When all rounds so far would be over, had each of them taken its ``seconds``."""

    def pause(self, now: float) -> float:
        """Note a round; return how long to wait before the next one."""
        self._due = max(self._due, now) + self._seconds
        return max(0.0, self._due - self._ahead - now)


class Streams:
    """All open streams of the service; ``close`` ends them, as a shutdown needs."""

    def __init__(self, notifier: ChangeNotifier, *, keep_alive: float = KEEP_ALIVE_SECONDS) -> None:
        self._notifier = notifier
        self._keep_alive = keep_alive
        self.closed = False
        self.open = 0
        """How many are being followed."""

    def close(self) -> None:
        self.closed = True
        self._notifier.notify()

    async def rounds(self) -> AsyncGenerator[bool, None]:
        """A round at once, then one per change (True) or after long silence (False).

        What a consumer reads within a round is at least as new as the beat that opened it,
        and a beat that falls into a round opens the next one.
        """
        seen, changed = self._notifier.version, True
        pace, clock = StreamPace(), asyncio.get_running_loop().time
        self.open += 1
        try:
            while not self.closed:
                yield changed
                await asyncio.sleep(pace.pause(clock()))  # the pace itself
                if self.closed:
                    return
                now = await self._notifier.wait(seen, self._keep_alive)
                seen, changed = now, now != seen
        finally:
            self.open -= 1


def message(event: str, data: str = "{}", *, event_id: int | None = None) -> bytes:
    """One event; line breaks in the data are kept by the format."""
    lines = [f"event: {event}"]
    if event_id is not None:
        lines.append(f"id: {event_id}")
    lines += [f"data: {line}" for line in data.splitlines() or [""]]
    return ("\n".join(lines) + "\n\n").encode()


class EventStream(StreamingResponse):
    """Sends until the source ends or the reader goes; the source is closed in either case."""

    def __init__(self, source: AsyncGenerator[bytes, None]) -> None:
        super().__init__(
            source,
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._source), anyio.create_task_group() as group:

            async def until_gone() -> None:
                await self.listen_for_disconnect(receive)
                group.cancel_scope.cancel()

            group.start_soon(until_gone)
            await self.stream_response(send)
            group.cancel_scope.cancel()


_EVENT_ID = re.compile(r"[0-9]{1,18}")


def last_event_id(request: Request) -> int:
    """0 where there is none. Raises InvalidInput."""
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
