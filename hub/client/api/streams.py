"""Event streams and logs as iterators that survive restarts of service and proxy."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ...errors import Unavailable
from ...schemas import EventOut, RequestOut
from ..transport.calls import Call
from ..transport.connection import segment
from ..transport.retry import RetryPolicy
from ..transport.sse import Message, Parser
from .requests import RequestCalls

KEEP_ALIVE_SECONDS = 15
"""How often a silent stream sends a comment."""
PATIENCE_SECONDS = 300.0
"""How long a follower waits for a service that is away."""
_LOG_PAUSE_SECONDS = 0.5


class StreamCalls(RequestCalls):
    """Follow one request, its log, or everything that the caller may see."""

    async def follow(
        self, request_id: str, after: int = 0
    ) -> AsyncGenerator[RequestOut | EventOut, None]:
        """Yield the request whenever it changes, and its events, until it has ended.

        Continues after restarts of the service and of the proxy; nothing is yielded twice. Closing
        the client (from another thread or task) ends it too.

        Raises:
            Unavailable: the service was away for ``PATIENCE_SECONDS``.
        """
        last: RequestOut | None = None
        patience = RetryPolicy(seconds=PATIENCE_SECONDS)
        while not self._transport.closed:
            try:
                async with aclosing(self._stream(request_id, after)) as messages:
                    async for message in messages:
                        patience.well()
                        if message.event == "end":
                            return
                        if message.event != "status":
                            event = self._parse(message, EventOut)
                            after = max(after, event.id)
                            yield event
                        elif (now := self._parse(message, RequestOut)) != last:
                            last = now
                            yield now
                pause = patience.pause()
            except Unavailable as error:
                pause = patience.lost(error, self._transport.now())
            await self._transport.pause(pause)

    async def changes(self) -> AsyncGenerator[None, None]:
        """Yield immediately, and whenever what the caller may see of pool, queue and requests
        changed.

        Continues after restarts, as ``follow`` does. Never ends by itself.

        Raises:
            Unavailable: the service was away for ``PATIENCE_SECONDS``.
        """
        patience = RetryPolicy(seconds=PATIENCE_SECONDS)
        while not self._transport.closed:
            try:
                async with aclosing(self._messages("events")) as messages:
                    async for message in messages:
                        patience.well()
                        if message.event == "changed":
                            yield None
                pause = patience.pause()
            except Unavailable as error:
                pause = patience.lost(error, self._transport.now())
            await self._transport.pause(pause)

    async def follow_log(self, request_id: str, offset: int = 0) -> AsyncGenerator[bytes, None]:
        """Yield the log as it grows, until the request has ended and everything was read."""
        patience = RetryPolicy(seconds=PATIENCE_SECONDS)
        while True:
            try:
                ended = (await self.request(request_id)).ended
                part = await self.log(request_id, offset)
            except Unavailable as error:
                await self._transport.pause(patience.lost(error, self._transport.now()))
                continue
            patience.well()
            offset = part.next_offset
            if part.content:
                yield part.content
            elif ended:
                return
            else:
                await self._transport.pause(_LOG_PAUSE_SECONDS)

    def _stream(self, request_id: str, after: int) -> AsyncGenerator[Message, None]:
        return self._messages(f"requests/{segment(request_id)}/events", after)

    async def _messages(self, path: str, after: int = 0) -> AsyncGenerator[Message, None]:
        """Yield the events of one connection."""
        resume = {"Last-Event-ID": str(after)} if after else {}
        call = Call(
            method="GET",
            path=path,
            query={"after": after} if after else {},
            headers={"Accept": "text/event-stream"} | resume,
            silence=3 * KEEP_ALIVE_SECONDS,
        )
        parser = Parser()
        async with aclosing(self._transport.lines(call)) as lines:
            async for line in lines:
                if message := parser.feed(line):
                    yield message
