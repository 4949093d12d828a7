"""Cache the running containers of an engine, so that one call serves the polls of all sessions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

FRESH_SECONDS: Final = 1.0


class RunningContainers:
    """The running containers of one engine, for the tasks of one event loop.

    A hub polls its sessions every other second; with hundreds of sessions, one call per session
    would keep the engine busy.

    Args:
        query: returns the ids of the running containers; blocks.
    """

    def __init__(
        self, query: Callable[[], frozenset[str]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._query = query
        self._clock = clock
        self._queried_at = 0.0
        self._task: asyncio.Task[frozenset[str]] | None = None

    async def has(self, container: str) -> bool:
        """Whether the container was running within the last ``FRESH_SECONDS``.

        If not, the caller should inspect the container. Raises the errors of the query.
        """
        now = self._clock()
        done = self._task is None or self._task.done()
        if self._task is None or (done and now - self._queried_at >= FRESH_SECONDS):
            self._queried_at = now
            self._task = asyncio.create_task(asyncio.to_thread(self._query))
        return container in await asyncio.shield(self._task)
