"""Waiting for a new server: the number of calls to its engine."""

from __future__ import annotations

import asyncio
import socket
from itertools import count

import pytest

from carrel.spawners.sessions.readiness import ServerDied, wait_until_ready


async def answering(delay: float, port: int) -> asyncio.Server:
    """Run a server that listens after a delay."""
    await asyncio.sleep(delay)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", port)


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


@pytest.mark.parametrize(("every", "least", "most"), [(0.0, 5, 99), (60.0, 0, 0)])
def test_the_engine_is_not_asked_at_every_attempt(every: float, least: int, most: int) -> None:
    asked = count()

    async def runs() -> None:
        next(asked)

    async def scene() -> None:
        port = free_port()
        coming = asyncio.create_task(answering(0.4, port))
        await wait_until_ready(("127.0.0.1", port), "/api", runs, every=every)
        (await coming).close()

    asyncio.run(scene())
    assert least <= next(asked) <= most


def test_a_server_that_died_is_still_noticed() -> None:
    async def died() -> int:
        return 3

    with pytest.raises(ServerDied, match="status 3"):
        asyncio.run(wait_until_ready(("127.0.0.1", free_port()), "/api", died, every=0.1))
