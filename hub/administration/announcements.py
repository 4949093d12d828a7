"""Announcements: banners that administrators show on all pages for some time."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from ..errors import InvalidInput, NotFound, OverMaximum
from ..records.announcements import AnnouncementRecord
from ..records.audit import AuditAction
from ..runtime.audit_trail import AuditTrail
from ..schemas.announcements import AnnouncementIn, AnnouncementOut, announcement_text

MOST = 10
"""Announcements that have not ended: more would hide the page below them."""
_LISTED_SECONDS = 30 * 86400.0
"""How long an announcement is listed after its end."""


@dataclass(frozen=True, slots=True)
class Announcements(AuditTrail):
    """Lists, adds and removes announcements."""

    def all(self) -> list[AnnouncementOut]:
        """Return the announcements of the last 30 days, and all later ones."""
        now = self.clock()
        found = self.store.announcements(ended_after=now - _LISTED_SECONDS)
        return [announcement_out(each, now) for each in found]

    def add(self, body: AnnouncementIn, *, who: str) -> AnnouncementOut:
        """Add an announcement.

        Raises:
            InvalidInput: the text is empty or has hidden characters, or the time is in the past.
            OverMaximum: ``MOST`` others have not ended.
        """
        now = self.clock()
        starts_at = now if body.starts_at is None else body.starts_at
        text = announcement_text(body.text)
        if body.ends_at <= now:
            raise InvalidInput(
                "The end of the announcement is in the past.",
                accepted="Choose an end in the future.",
                field="ends_at",
            )
        if body.ends_at <= starts_at:
            raise InvalidInput(
                "The announcement would end before it begins.",
                accepted="Choose an end after its beginning.",
                field="ends_at",
            )
        if len(self.store.announcements(ended_after=now)) >= MOST:
            raise OverMaximum(
                f"There are {MOST} announcements already.",
                accepted="Remove one of them first.",
            )
        made = AnnouncementRecord(
            id=f"a-{secrets.token_hex(3)}",
            text=text,
            level=body.level,
            starts_at=starts_at,
            ends_at=body.ends_at,
            author=who,
        )
        change = self._change(AuditAction.ANNOUNCE, made.id, who, after=_values(made))
        self.store.add_announcement(made, change=change)
        return announcement_out(made, now)

    def remove(self, name: str, *, who: str) -> None:
        """Remove an announcement. Raises NotFound."""
        self._check_unchanged(AuditAction.UNANNOUNCE, name, who)
        known = {each.id: each for each in self.store.announcements(ended_after=0.0)}
        if name not in known:
            raise NotFound(
                f"There is no announcement {name[:40]!r}.",
                accepted="`carrel announce ls` lists them with their ids.",
            )
        change = self._change(AuditAction.UNANNOUNCE, name, who, before=_values(known[name]))
        self.store.remove_announcement(name, change=change)


def announcement_out(each: AnnouncementRecord, now: float) -> AnnouncementOut:
    return AnnouncementOut(
        id=each.id,
        text=each.text,
        level=each.level,
        starts_at=each.starts_at,
        ends_at=each.ends_at,
        author=each.author,
        shown=each.shown(now),
    )


def _values(each: AnnouncementRecord) -> dict[str, str | float]:
    return {
        "text": each.text,
        "level": str(each.level),
        "starts_at": each.starts_at,
        "ends_at": each.ends_at,
    }
