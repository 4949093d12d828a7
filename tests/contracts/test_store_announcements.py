"""Contract of the store: announcements, and who has closed them."""

from __future__ import annotations

import pytest

from carrel.hub.errors import NotFound
from carrel.hub.interfaces.store import Store
from carrel.hub.records.announcements import AnnouncementRecord
from carrel.hub.records.audit import AuditAction, AuditEntry, ChangeFilter
from carrel.hub.schemas.announcements import AnnouncementLevel


def announcement(name: str, starts_at: float, ends_at: float) -> AnnouncementRecord:
    return AnnouncementRecord(
        id=f"a-{name}",
        text=f"Text of {name} 🎉",
        level=AnnouncementLevel.WARNING,
        starts_at=starts_at,
        ends_at=ends_at,
        author="admin",
    )


PAST, NOW, COMING = (
    announcement("past", 0.0, 50.0),
    announcement("now", 90.0, 110.0),
    announcement("coming", 101.0, 200.0),
)


def test_a_user_sees_the_current_ones_that_they_have_not_closed(store: Store) -> None:
    for each in (COMING, NOW, PAST):
        store.add_announcement(each)
    assert store.announcements(ended_after=0.0) == (PAST, NOW, COMING)
    assert store.announcements(ended_after=50.0) == (NOW, COMING)
    assert store.announcements_for("ada", 100.0) == (NOW,)
    assert store.announcements_for("ada", 101.0) == (NOW, COMING)
    assert store.announcements_for("ada", 110.0) == (COMING,)

    for _ in range(2):
        store.close_announcement("a-now", "ada")
    assert store.announcements_for("ada", 101.0) == (COMING,)
    assert store.announcements_for("ben", 101.0) == (NOW, COMING)
    assert store.announcements_for("", 101.0) == (NOW, COMING)
    with pytest.raises(NotFound):
        store.close_announcement("a-other", "ada")


def test_a_removed_announcement_is_gone_with_its_marks_and_audited_once(store: Store) -> None:
    change = AuditEntry(at=1.0, who="admin", action=AuditAction.UNANNOUNCE, target="a-now")
    store.add_announcement(NOW)
    store.close_announcement("a-now", "ada")
    assert store.remove_announcement("a-now", change=change)
    assert not store.remove_announcement("a-now", change=change)
    assert store.announcements(ended_after=0.0) == ()
    assert len(store.changes(ChangeFilter())) == 1
    store.add_announcement(NOW)
    assert store.announcements_for("ada", 100.0) == (NOW,)
