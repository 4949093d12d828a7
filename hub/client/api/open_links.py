"""Calls for links that open material."""

from __future__ import annotations

from ...schemas.open_links.bodies import MaterialOut
from ..transport.calls import Call
from ..transport.connection import Connection


class OpenLinkCalls(Connection):
    """The part of ``AsyncClient`` for links that open material."""

    async def material(self, ticket: str) -> MaterialOut:
        """Return what the caller has confirmed to open, by the ticket in the address."""
        call = Call(method="GET", path="open-links/material", query={"ticket": ticket})
        return await self._read_call(call, MaterialOut)
