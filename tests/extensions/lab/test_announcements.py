"""A session reads the announcements of its user, and closes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carrel.extensions.lab import announcements, session_place
from carrel.extensions.lab.announcements import AnnouncementIdIn
from carrel.extensions.lab.session_place import NothingIn, SessionPlace
from carrel.hub.client import Client

from ...fake_service import PREFIX, FakeService

MAINTENANCE = {
    "id": "a-1",
    "text": "All sessions stop at 18:00.",
    "level": "warning",
    "starts_at": 0.0,
    "ends_at": 9.0,
    "author": "admin",
    "shown": True,
}


@pytest.fixture
def shown() -> list[dict[str, Any]]:
    """The announcements that the user has not closed."""
    return [MAINTENANCE]


@pytest.fixture
def place(
    shown: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[SessionPlace]:
    def close(call: Any) -> None:
        shown.clear()
        call.answer(204, b"", "application/json")

    def removed(call: Any) -> None:
        refusal = {"error": {"code": "not_found", "message": "There is no announcement."}}
        call.say(404, refusal)

    with FakeService() as service:
        service.extra = {
            ("GET", f"{PREFIX}/announcements"): lambda call: call.say(
                200, {"announcements": shown}
            ),
            ("POST", f"{PREFIX}/announcements/a-1/close"): close,
            ("POST", f"{PREFIX}/announcements/a-0/close"): removed,
        }
        with Client(service.url, "token") as client:
            monkeypatch.setattr(session_place, "client_of", lambda: client)
            yield SessionPlace(root=tmp_path, request_id="s-1")


def texts(place: SessionPlace) -> list[tuple[str, str]]:
    found = announcements.current(place, NothingIn()).announcements
    return [(each.level, each.text) for each in found]


def test_an_announcement_is_shown_until_its_user_closes_it(place: SessionPlace) -> None:
    assert texts(place) == [("warning", "All sessions stop at 18:00.")]
    announcements.close(place, AnnouncementIdIn(id="a-1"))
    assert texts(place) == []


def test_an_announcement_that_was_removed_can_be_closed(place: SessionPlace) -> None:
    announcements.close(place, AnnouncementIdIn(id="a-0"))
    assert len(texts(place)) == 1
