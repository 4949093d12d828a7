"""Publish the progress of a start to its listeners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StartMessage:
    percent: int
    sentence: str


class StartProgress:
    """Holds the newest message and wakes the listeners when it changes."""

    def __init__(self) -> None:
        self.current = StartMessage(percent=0, sentence="Requesting the session.")
        self._changed = asyncio.Event()

    def say(self, percent: int, sentence: str) -> None:
        message = StartMessage(percent=percent, sentence=sentence)
        if message != self.current:
            self.current, changed, self._changed = message, self._changed, asyncio.Event()
            changed.set()

    async def listen(self) -> AsyncGenerator[StartMessage, None]:
        """Yield the current message, then every new one; never ends by itself."""
        last: StartMessage | None = None
        while True:
            changed = self._changed
            if self.current != last:
                last = self.current
                yield last
            else:
                await changed.wait()
