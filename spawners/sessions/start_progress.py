"""Tell listeners how a start progresses: each message once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StartMessage:
    percent: int
    sentence: str


class StartProgress:
    """Hold the newest message and wake the listeners when it changes."""

    def __init__(self) -> None:
        self.said = StartMessage(percent=0, sentence="Requesting the session.")
        self._news = asyncio.Event()

    def say(self, percent: int, sentence: str) -> None:
        message = StartMessage(percent=percent, sentence=sentence)
        if message != self.said:
            self.said, news, self._news = message, self._news, asyncio.Event()
            news.set()

    async def listen(self) -> AsyncGenerator[StartMessage, None]:
        """Yield the current message, then every new one; never ends by itself."""
        heard: StartMessage | None = None
        while True:
            news = self._news
            if self.said != heard:
                heard = self.said
                yield heard
            else:
                await news.wait()
