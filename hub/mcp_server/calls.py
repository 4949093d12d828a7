"""The client of the MCP server: refusals for too many calls reach the caller at once."""

from __future__ import annotations

import httpx

from ..client import AsyncClient, SiteUrl
from ..client.transport.calls import Call, build_request
from ..client.transport.transports import LoopTransport

TIMEOUT_SECONDS = 30.0


class ImpatientTransport(LoopTransport):
    """Reports status 429 instead of waiting, so that a program learns when it may go on."""

    async def _send_admitted(self, call: Call) -> httpx.Response:
        http = self._http()
        return await http.send(build_request(http, call), stream=True)


def client(url: str, token: str) -> AsyncClient:
    """Return a client of the site for the token of a program."""
    transport = ImpatientTransport(SiteUrl.at(url), token, TIMEOUT_SECONDS)
    return AsyncClient(url, token, transport=transport)
