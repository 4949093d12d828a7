"""What somebody who waits for a start is told: each change once, to everybody who listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StartMessage:
    percent: int
    sentence: str


class StartProgress:
    """Holds the newest sentence and wakes the listeners when it changes."""

    def __init__(self) -> None:
        self.said = StartMessage(percent=0, sentence="Asking Carrel.")
        self._news = asyncio.Event()

    def say(self, percent: int, sentence: str) -> None:
        told = StartMessage(percent=percent, sentence=sentence)
        if told != self.said:
            self.said, news, self._news = told, self._news, asyncio.Event()
            news.set()

    async def listen(self) -> AsyncGenerator[StartMessage, None]:
        """The sentence as it is, then every new one; never ends by itself."""
        heard: StartMessage | None = None
        while True:
            news = self._news
            if self.said != heard:
                heard = self.said
                yield heard
            else:
                await news.wait()
