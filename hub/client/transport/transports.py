"""Implementations of ``Transport``: in an event loop, and blocking a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakKeyDictionary

import httpx

from ...errors import CarrelError, Unavailable
from .calls import (
    Call,
    HttpResponse,
    build_request,
    client_options,
    connection_error,
    is_from_site,
    successful,
)
from .retry import PATIENCE_SECONDS, retry_after
from .site_url import SiteUrl
from .sse import LineSplitter

POOLED_SECONDS = 15.0
"""Timeout of a call of a spawner."""

_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], httpx.AsyncClient]] = (
    WeakKeyDictionary()
)


def pooled_http(base: str = "", headers: Mapping[str, str] | None = None) -> httpx.AsyncClient:
    """Return the connection pool of this event loop for an address and a token.

    The number of connections is not limited, because every waiting spawner keeps a stream open.
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
    """Sends calls in an event loop."""

    def __init__(self, site: SiteUrl, token: str, timeout: float) -> None:
        self.site = site
        self.reached = False
        base, headers = client_options(site, token)
        self._client = httpx.AsyncClient(
            base_url=base, headers=headers, timeout=timeout, trust_env=site.trusts_environment
        )

    @property
    def closed(self) -> bool:
        return self._client.is_closed

    async def send(self, call: Call) -> HttpResponse:
        async with self._response(call) as response:
            await response.aread()
            return successful(self.site, response)

    async def lines(self, call: Call) -> AsyncGenerator[str, None]:
        async with self._response(call) as response:
            splitter = LineSplitter()
            async for part in response.aiter_bytes():
                for line in splitter.feed(part):
                    yield line

    async def parts(self, call: Call) -> AsyncGenerator[bytes, None]:
        async with self._response(call) as response:
            async for part in response.aiter_bytes():
                yield part

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def now(self) -> float:
        return time.monotonic()

    async def close(self) -> None:
        await self._client.aclose()

    @asynccontextmanager
    async def _response(self, call: Call) -> AsyncIterator[httpx.Response]:
        try:
            response = await self._send_admitted(call)
            try:
                self.reached = self.reached or is_from_site(response)
                if not response.is_success:
                    await response.aread()
                    successful(self.site, response)
                yield response
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            self.reached = self.reached or not isinstance(error, httpx.ConnectError)
            raise self._connection_error(error) from error

    async def _send_admitted(self, call: Call) -> httpx.Response:
        """Send the call; repeat it while the service answers 429 (too many requests)."""
        waited, http = 0.0, self._http()
        while True:
            response = await http.send(build_request(http, call), stream=True)
            pause = retry_after(response)
            if pause is None or waited >= PATIENCE_SECONDS:
                return response
            await response.aread()
            await response.aclose()
            await self.pause(pause)
            waited += pause

    def _http(self) -> httpx.AsyncClient:
        return self._client

    def _connection_error(self, error: httpx.TransportError) -> CarrelError:
        return connection_error(self.site, error)


class PooledTransport(LoopTransport):
    """Sends the calls of JupyterHub's spawners, which share one pool per event loop."""

    def __init__(self, site: SiteUrl, token: str) -> None:
        self.site = site
        self.reached = False
        self._base, self._headers = client_options(site, token)

    @property
    def closed(self) -> bool:
        return False

    async def close(self) -> None:
        """Keep the pool: other spawners use it."""

    def _http(self) -> httpx.AsyncClient:
        return pooled_http(self._base, self._headers)

    def _connection_error(self, error: httpx.TransportError) -> CarrelError:
        return Unavailable(
            "The Carrel service is not responding.",
            accepted=f"({str(error) or type(error).__name__})",
        )


class ThreadTransport:
    """Sends calls in programs without an event loop: its coroutines block and never suspend.

    Args:
        sleep: pauses between retries.
        clock: a monotonic clock, for the limit of the retries.
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
        base, headers = client_options(site, token)
        self._http = httpx.Client(
            base_url=base, headers=headers, timeout=timeout, trust_env=site.trusts_environment
        )

    @property
    def closed(self) -> bool:
        return self._http.is_closed

    async def send(self, call: Call) -> HttpResponse:
        with self._response(call) as response:
            response.read()
            return successful(self.site, response)

    async def lines(self, call: Call) -> AsyncGenerator[str, None]:
        with self._response(call) as response:
            splitter = LineSplitter()
            for part in response.iter_bytes():
                for line in splitter.feed(part):
                    yield line

    async def parts(self, call: Call) -> AsyncGenerator[bytes, None]:
        with self._response(call) as response:
            for part in response.iter_bytes():
                yield part

    async def pause(self, seconds: float) -> None:
        self._sleep(seconds)

    def now(self) -> float:
        return self._clock()

    async def close(self) -> None:
        self._http.close()

    @contextmanager
    def _response(self, call: Call) -> Iterator[httpx.Response]:
        try:
            response = self._send_admitted(call)
            try:
                self.reached = self.reached or is_from_site(response)
                if not response.is_success:
                    response.read()
                    successful(self.site, response)
                yield response
            finally:
                response.close()
        except httpx.TransportError as error:
            self.reached = self.reached or not isinstance(error, httpx.ConnectError)
            raise connection_error(self.site, error) from error

    def _send_admitted(self, call: Call) -> httpx.Response:
        """Send the call; repeat it while the service answers 429 (too many requests)."""
        waited = 0.0
        while True:
            response = self._http.send(build_request(self._http, call), stream=True)
            pause = retry_after(response)
            if pause is None or waited >= PATIENCE_SECONDS:
                return response
            response.read()
            response.close()
            self._sleep(pause)
            waited += pause
