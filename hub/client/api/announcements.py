"""Calls for announcements."""

from __future__ import annotations

from ...schemas.announcements import AnnouncementOut, AnnouncementsOut
from ..transport.calls import Call
from ..transport.connection import Connection, segment


class AnnouncementCalls(Connection):
    """The part of ``AsyncClient`` for announcements."""

    async def announcements(self) -> list[AnnouncementOut]:
        """Return the current announcements that the caller has not closed."""
        return (await self._get("announcements", AnnouncementsOut)).announcements

    async def close_announcement(self, name: str) -> None:
        """Close an announcement for the caller. Safe to repeat.

        Raises:
            NotFound: it was removed.
        """
        path = f"announcements/{segment(name)}/close"
        await self._transport.send(Call(method="POST", path=path))
