"""Bodies of announcements."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from ..errors import InvalidInput
from .base import In, Moment, Out
from .names import described, hidden_in

LONGEST_TEXT = 500
"""Characters of an announcement."""


class AnnouncementLevel(StrEnum):
    """How an announcement looks."""

    INFO = "info"
    WARNING = "warning"
    """Something will not work as usual, such as a maintenance."""
    URGENT = "urgent"


def announcement_text(given: str) -> str:
    """Return the text in one paragraph.

    Raises:
        InvalidInput: it is empty or too long, or has hidden characters.
    """
    text = " ".join(given.split())
    if not 0 < len(text) <= LONGEST_TEXT:
        raise InvalidInput(
            f"The text has {len(text)} characters.",
            accepted=f"Write 1 to {LONGEST_TEXT} characters.",
            field="text",
        )
    if hidden := hidden_in(text):
        raise InvalidInput(
            f"The text contains the hidden character {described(hidden)}.",
            accepted="Remove it: others could not see it.",
            field="text",
        )
    return text


class AnnouncementIn(In):
    """Body of ``POST /api/v1/announcements``.

    The text is plain, in one paragraph. Without ``starts_at`` it is shown at once.
    """

    text: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
    level: AnnouncementLevel = AnnouncementLevel.INFO
    starts_at: Moment | None = None
    ends_at: Moment


class AnnouncementOut(Out):
    """A banner. ``shown`` is whether it is shown now."""

    id: str
    text: str
    level: AnnouncementLevel
    starts_at: float
    ends_at: float
    author: str
    shown: bool


class AnnouncementsOut(Out):
    announcements: list[AnnouncementOut]
