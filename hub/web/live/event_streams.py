"""What the event streams say.

* one request: ``status`` (a RequestOut) at once and whenever it changes, the stored events
  under their own names and ids, ``end`` after the terminal status;
* a page: ``changed`` whenever what this person sees may have changed;
* a waiting page: ``status`` (a piece of HTML), and ``ready`` once the session can be entered.
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
from .change_feed import ChangeFeed, Clues, StreamCursor
from .page_fingerprint import VOLATILE, PageFingerprint
from .sse import ALIVE, Streams, message

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStreams:
    """What the event streams of requests and pages read, and when they look again."""

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
        told = StreamCursor()
        try:
            async for changed in self.streams.rounds():
                if not await self.feed.news(told, request_id, who) and changed:
                    yield ALIVE
                    continue
                # In this order: the events are then at least as new as the status.
                now = await run_in_threadpool(request)
                signature = now.model_dump_json(exclude=VOLATILE)
                status = message("status", now.model_dump_json()) if signature != shown else b""
                quiet = not status
                # Whoever connects learns first how things stand, then how they came about; from
                # then on in the order in which it happens.
                if shown is None:
                    yield status
                    status = b""
                shown = signature
                # They hold what cells printed: never all of them at once.
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
            # The reader comes back and then gets this as a proper answer.
            _log.warning("The stream of %s ends early: %s", request_id, error)

    async def of_page(self, who: Identity) -> AsyncGenerator[bytes, None]:
        """``changed`` for the desk and the other pages of one person."""

        page = PageFingerprint(self.requests, self.plan_cache, self.feed, who)
        shown: Clues | None = None
        async for changed in self.streams.rounds():
            try:
                now = await page.look(silence=not changed)
            except CarrelError as error:
                _log.warning("A page's stream ends early: %s", error)
                return
            # In silence, whoever is charged still gets the newest sum.
            news = now != shown or (page.charging and not changed)
            shown = now
            yield message("changed") if news else ALIVE
