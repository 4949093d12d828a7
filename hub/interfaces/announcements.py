"""The port to stored announcements."""

from __future__ import annotations

from typing import Protocol

from ..records.announcements import AnnouncementRecord
from ..records.audit import AuditEntry


class AnnouncementStore(Protocol):
    """The part of the store for announcements; see ``hub.interfaces.store``."""

    def announcements(self, *, ended_after: float) -> tuple[AnnouncementRecord, ...]:
        """Return the announcements that end after this time, by start."""

    def announcements_for(self, person: str, now: float) -> tuple[AnnouncementRecord, ...]:
        """Return what is shown now to a user, who has not closed it; "" is any visitor."""

    def add_announcement(
        self, announcement: AnnouncementRecord, *, change: AuditEntry | None = None
    ) -> None:
        """Store an announcement."""

    def remove_announcement(self, name: str, *, change: AuditEntry | None = None) -> bool:
        """Delete an announcement and return True; without one, write nothing and return False."""

    def close_announcement(self, name: str, person: str) -> None:
        """Do not show an announcement to this user any more. Raises NotFound. Idempotent."""
