"""Bodies of announcements."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .base import In, Moment, Out

LONGEST_TEXT = 500


class AnnouncementIn(In):
    """Body of ``POST /api/v1/announcements``.

    The text is plain, in one paragraph. Without ``starts_at`` it is shown at once.
    """

    text: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
    level: Literal["info", "warning", "urgent"] = "info"
    starts_at: Moment | None = None
    ends_at: Moment


class AnnouncementOut(Out):
    """A banner. ``shown`` is whether it is shown now."""

    id: str
    text: str
    level: Literal["info", "warning", "urgent"]
    starts_at: float
    ends_at: float
    author: str
    shown: bool


class AnnouncementsOut(Out):
    announcements: list[AnnouncementOut]
