"""Wait until a newly started server answers, or has died."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import httpx

from ...hub.client.transport.transports import pooled_http

Address: TypeAlias = tuple[str, int]

FIRST_PAUSE_SECONDS = 0.03
GROWTH = 1.02
"""Servers answer after one or two seconds; longer if a whole class starts at the same time."""
LONGEST_PAUSE_SECONDS = 0.2
ANSWER_SECONDS = 1.0
"""Timeout of an HTTP request: a server may have opened its port and still be loading."""


class ServerDied(Exception):
    """The process of a server ended before it answered."""


async def wait_until_ready(
    address: Address,
    path: str,
    ended: Callable[[], Awaitable[int | None]],
    *,
    every: float = 0.0,
) -> None:
    """Return at the first HTTP response of any kind.

    JupyterHub's own wait polls the port less often, and never checks the process.

    Args:
        ended: returns the exit status of the server, None while it runs.
        every: seconds between two calls of ``ended``, for engines where it is expensive.

    Raises:
        ServerDied: the server ended; the message has its exit status.
    """
    host, port = address
    pause, checked_at = FIRST_PAUSE_SECONDS, time.monotonic() if every else 0.0
    while True:
        if time.monotonic() - checked_at >= every:
            if (status := await ended()) is not None:
                raise ServerDied(f"its server ended with status {status}.")
            checked_at = time.monotonic()
        # The port is closed in most rounds: a bare connection costs a tenth of a request.
        if await _is_open(host, port) and await _answers(f"http://{_in_url(host)}:{port}{path}"):
            return
        await asyncio.sleep(pause)
        pause = min(GROWTH * pause, LONGEST_PAUSE_SECONDS)


async def _is_open(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    return True


async def _answers(url: str) -> bool:
    try:
        await pooled_http().get(url, timeout=ANSWER_SECONDS, headers={"Connection": "close"})
    except httpx.TransportError:
        return False
    return True


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
