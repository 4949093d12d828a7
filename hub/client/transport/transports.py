"""The transports of calls: in an event loop, and blocking a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx

from .calls import Call, HttpAnswer, broken, built, options_for, settled, shows_a_service
from .site_url import SiteUrl


class LoopTransport:
    """For programs with an event loop."""

    def __init__(self, site: SiteUrl, token: str, timeout: float) -> None:
        self.site = site
        self.reached = False
        base, headers = options_for(site, token)
        self._http = httpx.AsyncClient(
            base_url=base, headers=headers, timeout=timeout, trust_env=site.trusts_environment
        )

    @property
    def closed(self) -> bool:
        return self._http.is_closed

    async def send(self, call: Call) -> HttpAnswer:
        async with self._answer(call) as answer:
            await answer.aread()
            return settled(self.site, answer)

    async def lines(self, call: Call) -> AsyncGenerator[str, None]:
        async with self._answer(call) as answer:
            async for line in answer.aiter_lines():
                yield line

    async def parts(self, call: Call) -> AsyncGenerator[bytes, None]:
        async with self._answer(call) as answer:
            async for part in answer.aiter_bytes():
                yield part

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def now(self) -> float:
        return time.monotonic()

    async def close(self) -> None:
        await self._http.aclose()

    @asynccontextmanager
    async def _answer(self, call: Call) -> AsyncIterator[httpx.Response]:
        try:
            request = built(self._http, call)
            answer = await self._http.send(request, stream=True)
            try:
                self.reached = self.reached or shows_a_service(answer)
                if not answer.is_success:
                    await answer.aread()
                    settled(self.site, answer)
                yield answer
            finally:
                await answer.aclose()
        except httpx.TransportError as error:
            self.reached = self.reached or not isinstance(error, httpx.ConnectError)
            raise broken(self.site, error) from error


class ThreadTransport:
    """For programs without an event loop: its coroutines block and never suspend.

    ``sleep`` and ``clock`` time the retries.
    """

    def __init__(
        self,
        site: SiteUrl,
        token: str,
        timeout: float,
        sleep: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        self.site = site
        self.reached = False
        self._sleep, self._clock = sleep, clock
        base, headers = options_for(site, token)
        self._http = httpx.Client(
            base_url=base, headers=headers, timeout=timeout, trust_env=site.trusts_environment
        )

    @property
    def closed(self) -> bool:
        return self._http.is_closed

    async def send(self, call: Call) -> HttpAnswer:
        with self._answer(call) as answer:
            answer.read()
            return settled(self.site, answer)

    async def lines(self, call: Call) -> AsyncGenerator[str, None]:
        with self._answer(call) as answer:
            for line in answer.iter_lines():
                yield line

    async def parts(self, call: Call) -> AsyncGenerator[bytes, None]:
        with self._answer(call) as answer:
            for part in answer.iter_bytes():
                yield part

    async def pause(self, seconds: float) -> None:
        self._sleep(seconds)

    def now(self) -> float:
        return self._clock()

    async def close(self) -> None:
        self._http.close()

    @contextmanager
    def _answer(self, call: Call) -> Iterator[httpx.Response]:
        try:
            request = built(self._http, call)
            answer = self._http.send(request, stream=True)
            try:
                self.reached = self.reached or shows_a_service(answer)
                if not answer.is_success:
                    answer.read()
                    settled(self.site, answer)
                yield answer
            finally:
                answer.close()
        except httpx.TransportError as error:
            self.reached = self.reached or not isinstance(error, httpx.ConnectError)
            raise broken(self.site, error) from error
