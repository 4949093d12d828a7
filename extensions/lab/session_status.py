"""Poll the service for the status of this session, and publish changes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from ...hub.errors import CarrelError, Conflict, Forbidden, NotFound, NotSignedIn
from ...hub.schemas import KernelsIn, RequestOut, WatchOut
from .kernel_activity import KernelWatch

ALIVE_SECONDS = 15.0
"""Interval of repeats, so that proxies do not close the stream."""
REFRESH_SECONDS = 2.0
"""Interval between checks for new kernels."""
AFTER_AN_ERROR_SECONDS = 15.0
SAVE_SECONDS = 10.0
"""How long before the stop the documents are saved once more."""


class StatusService(Protocol):
    """The calls to the service (``hub.client.AsyncClient``)."""

    async def tell_kernels(self, request_id: str, kernels: KernelsIn) -> WatchOut: ...

    async def keep(self, request_id: str) -> RequestOut: ...


@dataclass(slots=True)
class SessionStatus:
    """The status of one session; call ``run`` once, for as long as the server lives."""

    service: StatusService
    request_id: str
    kernels: KernelWatch
    log: logging.Logger
    clock: Callable[[], float] = time.time
    now: WatchOut | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Report to the service again and again."""
        elapsed, due = asyncio.get_running_loop().time, -inf
        while True:
            self.kernels.refresh()
            if elapsed() >= due:
                try:
                    due = elapsed() + await self._report()
                except (Conflict, Forbidden, NotFound, NotSignedIn) as error:
                    # Also while the session is starting or stopping.
                    self.log.debug("Carrel does not accept reports: %s", error)
                    due = elapsed() + AFTER_AN_ERROR_SECONDS
                    self._publish(None)
                except CarrelError as error:
                    self.log.info("Carrel does not answer: %s", error)
                    due = elapsed() + AFTER_AN_ERROR_SECONDS
            # New kernels do not announce themselves, so check for them.
            await asyncio.sleep(min(REFRESH_SECONDS, max(0.1, due - elapsed())))

    async def keep(self) -> None:
        """Keep the session; raises what the service answers."""
        await self.service.keep(self.request_id)
        await self._report()

    async def changes(self) -> AsyncGenerator[WatchOut | None, None]:
        """Yield the status now and at every change, when it is time to save, and to keep alive."""
        while True:
            shown, changed = self.now, self._changed
            yield shown
            pause = ALIVE_SECONDS
            if shown is not None and shown.warning is not None:
                saving = shown.warning.stops_at - SAVE_SECONDS - self.clock()
                pause = min(pause, saving) if saving > 0 else pause
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await changed.wait()

    async def _report(self) -> float:
        answer = await self.service.tell_kernels(self.request_id, self.kernels.report())
        self._publish(answer)
        return answer.again_seconds

    def _publish(self, now: WatchOut | None) -> None:
        before = self.now.warning if self.now else None
        after = now.warning if now else None
        self.now = now
        if after != before:
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()


def last_call(now: WatchOut | None, at: float) -> bool:
    """Whether the session is about to be stopped within seconds."""
    warning = now.warning if now else None
    return warning is not None and at >= warning.stops_at - SAVE_SECONDS
