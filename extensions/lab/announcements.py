"""The current announcements of the site, which JupyterLab and Notebook show as notifications."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from pydantic import Field

from ...hub.errors import NotFound
from ...hub.schemas import In
from ...hub.schemas.announcements import AnnouncementsOut
from .session_place import NothingIn, SessionPlace


class AnnouncementIdIn(In):
    """An announcement, by its id."""

    id: Annotated[str, Field(min_length=1, max_length=64)]


def current(place: SessionPlace, _body: NothingIn) -> AnnouncementsOut:
    """Return the announcements that the user has not closed."""
    return AnnouncementsOut(announcements=place.client.announcements())


def close(place: SessionPlace, body: AnnouncementIdIn) -> None:
    """Do not show an announcement to this user any more."""
    with suppress(NotFound):  # an administrator removed it meanwhile
        place.client.close_announcement(body.id)
