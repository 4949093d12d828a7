"""What the event streams say.

* one request: ``status`` (a RequestOut) at once and whenever it changes, the stored events
  under their own names and ids, ``end`` after the terminal status;
* a page: ``changed`` whenever what this person sees may have changed;
* a waiting page: ``status`` (a piece of HTML), and ``ready`` once the session can be entered.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator

import anyio
from starlette.concurrency import run_in_threadpool

from ...errors import CarrelError
from ...records.identity import Identity
from ...schemas import EventOut, RequestOut
from ..dependencies.context import WebContext
from .change_feed import Clues, StreamCursor
from .page_fingerprint import VOLATILE, PageFingerprint
from .sse import ALIVE, message

_log = logging.getLogger(__name__)


async def request_events(
    web: WebContext, who: Identity | None, request_id: str, after: int
) -> AsyncGenerator[bytes, None]:
    """The life of one request; ``who`` is None for the hub itself, which then counts as present."""
    if who is not None:
        async for part in _follow(web, who, request_id, after):
            yield part
        return
    await run_in_threadpool(web.context.spawner_listeners.attach, request_id)
    try:
        async for part in _follow(web, None, request_id, after):
            yield part
    finally:
        with anyio.CancelScope(shield=True):
            await run_in_threadpool(web.context.spawner_listeners.detach, request_id)
            web.context.notifier.notify()


async def _follow(
    web: WebContext, who: Identity | None, request_id: str, after: int
) -> AsyncGenerator[bytes, None]:
    def request() -> RequestOut:
        return web.requests.request(who, request_id)

    def batch() -> list[EventOut]:
        return web.requests.events(who, request_id, after)

    shown: str | None = None
    told = StreamCursor()
    try:
        async for changed in web.streams.rounds():
            if not await web.looks.news(told, request_id, who) and changed:
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
                yield b"".join(message(e.kind, e.model_dump_json(), event_id=e.id) for e in events)
            if now.ended:
                yield status + message("end")
                return
            if status or quiet:
                yield status or ALIVE
    except CarrelError as error:
        # The reader comes back and then gets this as a proper answer.
        _log.warning("The stream of %s ends early: %s", request_id, error)


async def page_events(web: WebContext, who: Identity) -> AsyncGenerator[bytes, None]:
    """``changed`` for the desk and the other pages of one person."""

    page = PageFingerprint(web, who)
    shown: Clues | None = None
    async for changed in web.streams.rounds():
        try:
            now = await page.look(silence=not changed)
        except CarrelError as error:
            _log.warning("A page's stream ends early: %s", error)
            return
        # In silence, whoever is charged still gets the newest sum.
        news = now != shown or (page.charging and not changed)
        shown = now
        yield message("changed") if news else ALIVE
