"""HEAD is answered wherever GET is, with the same headers and no body."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from fastapi.routing import APIRoute

from ...doubles import STUDENT1
from ..fakes import API, PREFIX
from ..site import Site, site

__all__ = ["site"]


@pytest.mark.parametrize(
    "path", [PREFIX, f"{PREFIX}submit", f"{PREFIX}static/carrel.css", f"{API}/pool", "/healthz"]
)
def test_head_has_the_headers_of_get_and_no_body(site: Site, path: str) -> None:
    client = site.api(STUDENT1) if path.startswith(API) else site.page(STUDENT1)
    got, asked = client.get(path), client.request("HEAD", path)
    assert (asked.status_code, asked.content) == (200, b"")
    same = ("content-type", "content-security-policy")
    assert [asked.headers.get(name) for name in same] == [got.headers.get(name) for name in same]


def test_no_route_of_get_refuses_head(site: Site) -> None:
    client = site.page(STUDENT1)
    for route in site.world.app.routes:
        if isinstance(route, APIRoute) and "GET" in route.methods:
            path = route.path.replace("{", "").replace("}", "").replace(":file", "")
            assert client.request("HEAD", path).status_code != 405, path


def test_head_of_an_event_stream_ends(site: Site) -> None:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(site.world.app)
        async with (
            asyncio.timeout(10),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
        ):
            headers = site.page(STUDENT1).headers
            return await client.head(f"{PREFIX}events", headers=headers)

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")
