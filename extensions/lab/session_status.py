"""How a session stands: asked of the service again and again, and handed to whoever listens."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Protocol

from ...hub.errors import CarrelError, Conflict, Forbidden, NotFound, NotSignedIn
from ...hub.schemas import KernelsIn, RequestOut, WatchOut
from .kernel_activity import KernelWatch

ALIVE_SECONDS = 15.0
"""Nobody in between hangs up on a stream that says something this often."""
REFRESH_SECONDS = 2.0
"""Between two looks for kernels that are new."""
AFTER_AN_ERROR_SECONDS = 15.0
SAVE_SECONDS = 10.0
"""How long before the end the documents are saved once more."""


class StatusService(Protocol):
    """What is asked of the service (``hub.client.AsyncClient``)."""

    async def tell_kernels(self, request_id: str, kernels: KernelsIn) -> WatchOut: ...

    async def keep(self, request_id: str) -> RequestOut: ...


@dataclass(slots=True)
class SessionStatus:
    """One session's; ``run`` it as long as the server lives."""

    service: StatusService
    request_id: str
    kernels: KernelWatch
    log: logging.Logger
    clock: Callable[[], float] = time.time
    now: WatchOut | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Until the service says that there is nothing (more) to be told."""
        due = 0.0
        while True:
            self.kernels.refresh()
            if self.clock() >= due:
                try:
                    due = self.clock() + await self._tell()
                except (Conflict, Forbidden, NotFound, NotSignedIn) as error:
                    # Also while it is still being started, or is already on its way out.
                    self.log.debug("Carrel does not listen: %s", error)
                    due = self.clock() + AFTER_AN_ERROR_SECONDS
                    self._publish(None)
                except CarrelError as error:
                    self.log.info("Carrel does not answer: %s", error)
                    due = self.clock() + AFTER_AN_ERROR_SECONDS
            # New kernels do not announce themselves: they are looked for.
            await asyncio.sleep(min(REFRESH_SECONDS, max(0.1, due - self.clock())))

    async def keep(self) -> None:
        """Raises what the service answers."""
        await self.service.keep(self.request_id)
        await self._tell()

    async def changes(self) -> AsyncGenerator[WatchOut | None, None]:
        """How it stands now, and whenever that changes; again when it is time to save, and
        after long silence."""
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

    async def _tell(self) -> float:
        answer = await self.service.tell_kernels(self.request_id, self.kernels.told())
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
    """Whether it is about to be stopped within moments."""
    warning = now.warning if now else None
    return warning is not None and at >= warning.stops_at - SAVE_SECONDS
