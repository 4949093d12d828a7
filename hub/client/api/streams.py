"""Event streams and logs as iterators that continue after restarts of service and proxy."""

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
"""Interval at which the service sends a comment on an idle stream."""
PATIENCE_SECONDS = 300.0
"""How long an iterator retries while the service does not respond."""
_LOG_PAUSE_SECONDS = 0.5


class StreamCalls(RequestCalls):
    """The part of ``AsyncClient`` for streams: of a request, its log, and all visible changes."""

    async def follow(
        self, request_id: str, after: int = 0
    ) -> AsyncGenerator[RequestOut | EventOut, None]:
        """Yield the request whenever it changes, and its events, until it has ended.

        Continues after restarts of the service and of the proxy; nothing is yielded twice. Also
        ends when the client is closed, from another thread or task.

        Raises:
            Unavailable: the service did not respond for ``PATIENCE_SECONDS``.
        """
        last: RequestOut | None = None
        retries = RetryPolicy(seconds=PATIENCE_SECONDS)
        while not self._transport.closed:
            try:
                async with aclosing(self._stream(request_id, after)) as messages:
                    async for message in messages:
                        retries.succeeded()
                        if message.event == "end":
                            return
                        if message.event != "status":
                            event = self._parse(message, EventOut)
                            after = max(after, event.id)
                            yield event
                        elif (status := self._parse(message, RequestOut)) != last:
                            last = status
                            yield status
                pause = retries.pause()
            except Unavailable as error:
                pause = retries.failed(error, self._transport.now())
            await self._transport.pause(pause)

    async def changes(self) -> AsyncGenerator[None, None]:
        """Yield once at the start, and at every change of the pool, queue and requests.

        Only changes that the caller may see count. Continues after restarts, as ``follow`` does;
        ends only when the client is closed.

        Raises:
            Unavailable: the service did not respond for ``PATIENCE_SECONDS``.
        """
        retries = RetryPolicy(seconds=PATIENCE_SECONDS)
        while not self._transport.closed:
            try:
                async with aclosing(self._messages("events")) as messages:
                    async for message in messages:
                        retries.succeeded()
                        if message.event == "changed":
                            yield None
                pause = retries.pause()
            except Unavailable as error:
                pause = retries.failed(error, self._transport.now())
            await self._transport.pause(pause)

    async def follow_log(
        self, request_id: str, offset: int = 0, *, member: int = 0
    ) -> AsyncGenerator[bytes, None]:
        """Yield the log as it grows, until the request has ended and its log is complete.

        A new attempt has a new log, which is read from its beginning.

        ``member``: the rank of a member of a job of several members.
        """
        retries = RetryPolicy(seconds=PATIENCE_SECONDS)
        before: RequestOut | None = None
        epoch = 0
        while True:
            try:
                if before is None:
                    before = await self.request(request_id)
                    epoch = _epoch(before)
                part = await self.log(request_id, offset, member=member)
                found = await self.request(request_id)
            except Unavailable as error:
                await self._transport.pause(retries.failed(error, self._transport.now()))
                continue
            retries.succeeded()
            ended, before = before.ended, found
            if _epoch(found) > epoch:
                epoch, offset = _epoch(found), 0
                continue  # the part may be of either log
            offset = part.next_offset
            if part.content:
                yield part.content
            elif ended:
                return
            elif not found.ended:
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


def _epoch(found: RequestOut) -> int:
    return found.lease.epoch if found.lease else 0
