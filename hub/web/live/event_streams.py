"""Event streams of requests and pages.

* one request: ``status`` (a RequestOut) immediately and after every change, the stored events
  under their own names and ids, ``end`` after the terminal status;
* a page: ``changed`` whenever the content for this user may have changed;
* a waiting page: ``status`` (a piece of HTML), and ``ready`` when the session can be opened.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

import anyio
from starlette.concurrency import run_in_threadpool

from ...errors import CarrelError
from ...records.identity import Identity
from ...requests.queries import EVENTS_AT_ONCE, RequestQueries
from ...runtime.notifier import ChangeNotifier
from ...runtime.spawner_listeners import SpawnerListeners
from .change_feed import Fingerprint
from .dispatcher import ChangeDispatcher, Follower
from .sse import ALIVE, KEEP_ALIVE_SECONDS, StreamPace, message

_VOLATILE = {"device_seconds", "remaining"}
"""They change every second, which alone is not a change; progress is one."""
_REFRESH_SECONDS = 1.0
"""A page that changes all the time is read again so often; after a pause, the first few at once."""
_REFRESHES_PER_SECOND = 20.0
"""How often the open pages, all together, are told that the pool or their positions changed."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStreams:
    """The event streams of requests and pages, over the services that they read."""

    requests: RequestQueries
    dispatcher: ChangeDispatcher
    listeners: SpawnerListeners
    notifier: ChangeNotifier

    async def of_request(
        self, who: Identity | None, request_id: str, after: int
    ) -> AsyncGenerator[bytes, None]:
        """Follow one request. JupyterHub's spawner (``who`` is None) counts as its listener."""
        stream = self._follow(who, request_id, after)
        if who is not None:
            async with aclosing(stream):
                async for part in stream:
                    yield part
            return
        await run_in_threadpool(self.listeners.attach, request_id)
        try:
            async with aclosing(stream):
                async for part in stream:
                    yield part
        finally:
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(self.listeners.detach, request_id)
                self.notifier.notify()

    async def _follow(
        self, who: Identity | None, request_id: str, after: int
    ) -> AsyncGenerator[bytes, None]:
        dispatcher = self.dispatcher
        shown: str | None = None
        try:
            async with dispatcher.following_request(request_id, who) as follower:
                async for changed in dispatcher.rounds(follower):
                    if not changed:
                        yield ALIVE
                        continue
                    # In this order the events are at least as new as the status.
                    now = await self._status(follower, who, request_id)
                    status = now.message if now.signature != shown else b""
                    # A new reader gets the status first and then the earlier events; from then on
                    # everything is in order.
                    if shown is None:
                        yield status
                        status = b""
                    shown = now.signature
                    # Events contain cell outputs: never load all of them at once.
                    batch = _EventBatch(last=after)
                    while batch.more:
                        batch = await self._events(follower, who, request_id, batch.last)
                        if batch.messages:
                            yield batch.messages
                    after = batch.last
                    if now.ended:
                        yield status + message("end")
                        return
                    if status:
                        yield status
        except CarrelError as error:
            # The client reconnects and then gets the error as a response.
            _log.warning("The stream of %s ends early: %s", request_id, error)

    async def _status(
        self, follower: Follower[Fingerprint], who: Identity | None, request_id: str
    ) -> _Status:
        def read() -> _Status:
            now = self.requests.request(who, request_id)
            return _Status(
                signature=now.model_dump_json(exclude=_VOLATILE),
                message=message("status", now.model_dump_json()),
                ended=now.ended,
            )

        return await self.dispatcher.shared(follower, ("status", who, request_id), read)

    async def _events(
        self, follower: Follower[Fingerprint], who: Identity | None, request_id: str, after: int
    ) -> _EventBatch:
        def read() -> _EventBatch:
            events = self.requests.events(who, request_id, after)
            return _EventBatch(
                messages=b"".join(
                    message(e.kind, e.model_dump_json(), event_id=e.id) for e in events
                ),
                last=events[-1].id if events else after,
                more=len(events) == EVENTS_AT_ONCE,
            )

        return await self.dispatcher.shared(follower, ("events", who, request_id, after), read)

    async def of_page(self, who: Identity) -> AsyncGenerator[bytes, None]:
        """Stream ``changed`` for the desk and the other pages of one user."""
        feed, streams = self.dispatcher.feed, self.dispatcher.streams
        pace, clock = StreamPace(seconds=_REFRESH_SECONDS), asyncio.get_running_loop().time
        try:
            async with self.dispatcher.following(
                lambda view: feed.page_fingerprint(view, who)
            ) as follower:
                shown = follower.fingerprint

                async def pause(until: float, *, own_news: bool) -> None:
                    """Wait; end earlier for a shutdown and, with ``own_news``, for such news."""
                    while not streams.closed and (left := until - clock()) > 0:
                        if own_news and follower.fingerprint.own != shown.own:
                            return
                        await follower.news(left)

                while not streams.closed:
                    shown = follower.fingerprint
                    yield message("changed")
                    turn = min(streams.open / _REFRESHES_PER_SECOND, KEEP_ALIVE_SECONDS)
                    due = clock() + turn
                    await pause(clock() + pace.pause(clock()), own_news=False)
                    while follower.fingerprint == shown and not streams.closed:
                        news = await follower.news(streams.keep_alive)
                        if not news and follower.view.has_device(who):
                            break  # the sum that they are charged has grown
                        if not news:
                            yield ALIVE
                    # Every page reads the pool again after such a change: they take turns.
                    await pause(due, own_news=True)
        except CarrelError as error:
            _log.warning("A page's stream ends early: %s", error)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Status:
    """A request as its streams send it; equal signatures: no news."""

    signature: str
    message: bytes
    ended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _EventBatch:
    """The next events of a stream; ``more`` may follow the ``last`` one."""

    last: int
    messages: bytes = b""
    more: bool = True
