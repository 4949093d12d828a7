"""Event streams of requests and pages.

* one request: ``status`` (a RequestOut) immediately and after every change, the stored events
  under their own names and ids, ``end`` after the terminal status;
* a page: ``changed`` whenever the content for this user may have changed;
* a waiting page: ``status`` (a piece of HTML), and ``ready`` when the session can be opened.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import anyio
from starlette.concurrency import run_in_threadpool

from ...errors import CarrelError
from ...records.identity import Identity
from ...requests.queries import RequestQueries
from ...runtime.notifier import ChangeNotifier
from ...runtime.plan_cache import PlanCache
from ...runtime.spawner_listeners import SpawnerListeners
from ...schemas import EventOut, RequestOut
from .change_feed import ChangeFeed, Fingerprint, StreamCursor
from .page_fingerprint import VOLATILE, PageFingerprint
from .sse import ALIVE, Streams, message

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStreams:
    """The event streams of requests and pages, over the services that they read."""

    requests: RequestQueries
    plan_cache: PlanCache
    feed: ChangeFeed
    streams: Streams
    listeners: SpawnerListeners
    notifier: ChangeNotifier

    async def of_request(
        self, who: Identity | None, request_id: str, after: int
    ) -> AsyncGenerator[bytes, None]:
        """Follow one request. JupyterHub's spawner (``who`` is None) counts as its listener."""
        if who is not None:
            async for part in self._follow(who, request_id, after):
                yield part
            return
        await run_in_threadpool(self.listeners.attach, request_id)
        try:
            async for part in self._follow(None, request_id, after):
                yield part
        finally:
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(self.listeners.detach, request_id)
                self.notifier.notify()

    async def _follow(
        self, who: Identity | None, request_id: str, after: int
    ) -> AsyncGenerator[bytes, None]:
        def request() -> RequestOut:
            return self.requests.request(who, request_id)

        def batch() -> list[EventOut]:
            return self.requests.events(who, request_id, after)

        shown: str | None = None
        cursor = StreamCursor()
        try:
            async for changed in self.streams.rounds():
                if not await self.feed.news(cursor, request_id, who) and changed:
                    yield ALIVE
                    continue
                # In this order the events are at least as new as the status.
                now = await run_in_threadpool(request)
                signature = now.model_dump_json(exclude=VOLATILE)
                status = message("status", now.model_dump_json()) if signature != shown else b""
                quiet = not status
                # A new reader gets the status first and then the earlier events; from then on
                # everything is in order.
                if shown is None:
                    yield status
                    status = b""
                shown = signature
                # Events contain cell outputs: never load all of them at once.
                while events := await run_in_threadpool(batch):
                    after, quiet = events[-1].id, False
                    yield b"".join(
                        message(e.kind, e.model_dump_json(), event_id=e.id) for e in events
                    )
                if now.ended:
                    yield status + message("end")
                    return
                if status or quiet:
                    yield status or ALIVE
        except CarrelError as error:
            # The client reconnects and then gets the error as a response.
            _log.warning("The stream of %s ends early: %s", request_id, error)

    async def of_page(self, who: Identity) -> AsyncGenerator[bytes, None]:
        """Stream ``changed`` for the desk and the other pages of one user."""

        page = PageFingerprint(self.requests, self.plan_cache, self.feed, who)
        shown: Fingerprint | None = None
        async for changed in self.streams.rounds():
            try:
                now = await page.read(quiet=not changed)
            except CarrelError as error:
                _log.warning("A page's stream ends early: %s", error)
                return
            # Without changes, users with running work still get the newest usage.
            news = now != shown or (page.charging and not changed)
            shown = now
            yield message("changed") if news else ALIVE
