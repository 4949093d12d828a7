"""Cache which containers run on an engine: one call serves the polls of all sessions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

FRESH_SECONDS: Final = 1.0


class RunningContainers:
    """The running containers of one engine, for the tasks of one event loop.

    A hub polls each of its sessions every other second; with hundreds of sessions, one call each
    would keep the engine busy.
    """

    def __init__(
        self, ask: Callable[[], frozenset[str]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._asked_at = 0.0
        self._asking: asyncio.Task[frozenset[str]] | None = None

    async def has(self, container: str) -> bool:
        """Whether the container ran a moment ago; if not, ask the engine about it alone.

        Raises what asking raises.
        """
        now = self._clock()
        answered = self._asking is None or self._asking.done()
        if self._asking is None or (answered and now - self._asked_at >= FRESH_SECONDS):
            self._asked_at = now
            self._asking = asyncio.create_task(asyncio.to_thread(self._ask))
        return container in await asyncio.shield(self._asking)
