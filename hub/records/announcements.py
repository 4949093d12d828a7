"""Announcements of administrators, shown as banners on all pages."""

from __future__ import annotations

from dataclasses import dataclass

from ..schemas.announcements import AnnouncementLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncementRecord:
    """A banner, shown from ``starts_at`` until ``ends_at``.

    Attributes:
        text: plain text, one paragraph.
        author: the administrator, as in the audit log.
    """

    id: str
    text: str
    level: AnnouncementLevel
    starts_at: float
    ends_at: float
    author: str

    def shown(self, now: float) -> bool:
        return self.starts_at <= now < self.ends_at
