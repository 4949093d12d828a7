"""The transports of calls: in an event loop, and blocking a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakKeyDictionary

import httpx

from ...errors import CarrelError, Unavailable
from .calls import Call, HttpAnswer, broken, built, options_for, settled, shows_a_service
from .retry import PATIENCE_SECONDS, retry_after
from .site_url import SiteUrl
from .sse import LineSplitter

POOLED_SECONDS = 15.0
"""Time-out of one call of a spawner."""

_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], httpx.AsyncClient]] = (
    WeakKeyDictionary()
)


def pooled_http(base: str = "", headers: Mapping[str, str] | None = None) -> httpx.AsyncClient:
    """Return the connection pool of this event loop for one address and its headers.

    The number of connections is not limited: every spawner that waits holds a stream.
    """
    pools = _pools.setdefault(asyncio.get_running_loop(), {})
    key = base, (headers or {}).get("Authorization", "")
    if key not in pools:
        pools[key] = httpx.AsyncClient(
            base_url=base,
            headers=headers,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=16),
            timeout=httpx.Timeout(POOLED_SECONDS),
            trust_env=False,
        )
    return pools[key]


class LoopTransport:
    """For programs with an event loop."""

    def __init__(self, site: SiteUrl, token: str, timeout: float) -> None:
        self.site = site
        self.reached = False
        base, headers = options_for(site, token)
        self._client = httpx.AsyncClient(
            base_url=base, headers=headers, timeout=timeout, trust_env=site.trusts_environment
        )

    @property
    def closed(self) -> bool:
        return self._client.is_closed

    async def send(self, call: Call) -> HttpAnswer:
        async with self._answer(call) as answer:
            await answer.aread()
            return settled(self.site, answer)

    async def lines(self, call: Call) -> AsyncGenerator[str, None]:
        async with self._answer(call) as answer:
            splitter = LineSplitter()
            async for part in answer.aiter_bytes():
                for line in splitter.feed(part):
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
        await self._client.aclose()

    @asynccontextmanager
    async def _answer(self, call: Call) -> AsyncIterator[httpx.Response]:
        try:
            answer = await self._admitted(call)
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
            raise self._broken(error) from error

    async def _admitted(self, call: Call) -> httpx.Response:
        """Send the call again for as long as the service refuses it as one too many."""
        waited, http = 0.0, self._http()
        while True:
            answer = await http.send(built(http, call), stream=True)
            pause = retry_after(answer)
            if pause is None or waited >= PATIENCE_SECONDS:
                return answer
            await answer.aread()
            await answer.aclose()
            await self.pause(pause)
            waited += pause

    def _http(self) -> httpx.AsyncClient:
        return self._client

    def _broken(self, error: httpx.TransportError) -> CarrelError:
        return broken(self.site, error)


class PooledTransport(LoopTransport):
    """For JupyterHub's spawners: all of one event loop share a pool, which lives as long."""

    def __init__(self, site: SiteUrl, token: str) -> None:
        self.site = site
        self.reached = False
        self._base, self._headers = options_for(site, token)

    @property
    def closed(self) -> bool:
        return False

    async def close(self) -> None:
        """Keep the pool: other spawners use it."""

    def _http(self) -> httpx.AsyncClient:
        return pooled_http(self._base, self._headers)

    def _broken(self, error: httpx.TransportError) -> CarrelError:
        return Unavailable(
            "The Carrel service is not responding.",
            accepted=f"({str(error) or type(error).__name__})",
        )


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
            splitter = LineSplitter()
            for part in answer.iter_bytes():
                for line in splitter.feed(part):
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
            answer = self._admitted(call)
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

    def _admitted(self, call: Call) -> httpx.Response:
        """Send the call again for as long as the service refuses it as one too many."""
        waited = 0.0
        while True:
            answer = self._http.send(built(self._http, call), stream=True)
            pause = retry_after(answer)
            if pause is None or waited >= PATIENCE_SECONDS:
                return answer
            answer.read()
            answer.close()
            self._sleep(pause)
            waited += pause
