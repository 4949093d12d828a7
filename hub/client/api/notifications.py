"""Calls for notifications."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import JsonValue

from ...schemas.notifications.bodies import (
    ChannelOut,
    ChannelsOut,
    DeliveryTestOut,
    DeliveryTestsOut,
)
from ...schemas.notifications.events import NotificationEvent
from ..transport.calls import Call
from ..transport.connection import Connection, segment


class NotificationCalls(Connection):
    """The part of ``AsyncClient`` for the channels of the caller."""

    async def notifications(self) -> ChannelsOut:
        """Return the caller's channels, and what the site offers."""
        return await self._get("notifications", ChannelsOut)

    async def add_channel(
        self, address: str = "", events: Iterable[NotificationEvent] = ()
    ) -> ChannelOut:
        """Add a channel; without an address, the e-mail address that the site knows.

        Raises:
            InvalidInput: the address is malformed or not allowed.
        """
        body: dict[str, JsonValue] = {
            "address": address,
            "events": [str(event) for event in events],
        }
        return await self._post("notifications/channels", ChannelOut, body)

    async def choose_events(self, channel: str, events: Iterable[NotificationEvent]) -> ChannelOut:
        """Replace the events of a channel. Raises NotFound."""
        body = {"events": [str(event) for event in events]}
        path = f"notifications/channels/{segment(channel)}"
        return await self._read_call(Call(method="PUT", path=path, json=body), ChannelOut)

    async def remove_channel(self, channel: str) -> None:
        """Remove a channel. Raises NotFound."""
        path = f"notifications/channels/{segment(channel)}"
        await self._transport.send(Call(method="DELETE", path=path))

    async def test_notifications(self, channel: str = "", user: str = "") -> list[DeliveryTestOut]:
        """Send a test message to one channel, or to all; return the results.

        Raises:
            NotFound: there is no such channel, or none at all.
            Forbidden: the channels are those of another user, and the caller is no administrator.
        """
        body = {"channel": channel, "user": user}
        return (await self._post("notifications/test", DeliveryTestsOut, body)).results
