"""Parse single form fields."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, time
from typing import TypeVar

from ...errors import InvalidInput
from ...schemas import parsers

T = TypeVar("T")

USE_BUTTONS = "Use the buttons on the page."
"""What to do about a form that no page of Carrel sends."""


def read(reader: Callable[[str], T], text: str, field: str) -> T:
    """Parse a form field. Raises InvalidInput with the field."""
    try:
        return reader(text)
    except InvalidInput as error:
        error.field = field
        raise


def no_action() -> InvalidInput:
    """Return the error about a form whose button the page does not know."""
    return InvalidInput("The form contains no action.", accepted=USE_BUTTONS)


def moment(text: str, zone: str, now: float, field: str) -> float:
    """Parse a date and time in a time zone, or a duration from now; without a zone it is UTC.

    Raises:
        InvalidInput: it is neither, or the zone is unknown; with the field, or with ``zone``.
    """
    place = parsers.time_zone(zone) if zone else UTC
    return read(lambda given: parsers.moment(given, now, place), text, field)


def clock(text: str, field: str) -> time:
    """Parse a time of day. Raises InvalidInput with the field."""
    try:
        return time.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"{text!r} is not a time of day." if text else "A time of day is missing.",
            accepted="Such as 10:00.",
            field=field,
        ) from None
