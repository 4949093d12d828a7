"""Event stream of the waiting page of a session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator

from starlette.concurrency import run_in_threadpool

from ...errors import CarrelError
from ...records.identity import Identity
from ..dependencies.context import WebContext
from ..live.sse import ALIVE, message
from .wait_view import WaitView

_log = logging.getLogger(__name__)

_SLOWEST_POLL_SECONDS = 2.0


async def wait_events(
    web: WebContext, who: Identity, request_id: str, csrf: str, wanted: str
) -> AsyncGenerator[bytes, None]:
    """Follow one session from the queue until it can be opened."""

    def read() -> tuple[WaitView, str]:
        view = WaitView(request=web.requests.request(who, request_id))
        return view, web.render("sessions/wait_status.html", view=view, csrf=csrf, wanted=wanted)

    shown: str | None = None
    dispatcher = web.change_dispatcher
    try:
        async with dispatcher.following_request(request_id, who) as follower:
            async for changed in dispatcher.rounds(follower):
                if not changed:
                    yield ALIVE
                    continue
                view, html = await run_in_threadpool(read)
                if view.signature != shown:
                    yield message("status", html)
                shown = view.signature
                if view.request.ended:
                    yield message("end")
                    return
                if view.request.state == "running":
                    break
        pause = 0.1
        while not web.streams.closed:
            view, html = await run_in_threadpool(read)
            if view.request.ended:
                yield message("status", html) + message("end")
                return
            if await run_in_threadpool(web.sessions.ready, who.name, view.request.server_name):
                yield message("ready") + message("end")
                return
            yield ALIVE
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _SLOWEST_POLL_SECONDS)
    except CarrelError as error:
        _log.warning("The waiting page of %s ends early: %s", request_id, error)
