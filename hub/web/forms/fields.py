"""Parse single form fields."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ...errors import InvalidInput
from ...schemas import parsers

T = TypeVar("T")


def read(reader: Callable[[str], T], text: str, field: str) -> T:
    """Parse a form field. Raises InvalidInput with the field."""
    try:
        return reader(text)
    except InvalidInput as error:
        error.field = field
        raise


def moment(text: str, zone: str, now: float) -> float:
    """Parse a duration from now, or a date and time; without JavaScript the zone is UTC.

    Raises:
        InvalidInput: it is neither, or the zone is unknown.
    """
    try:
        time_zone = ZoneInfo(zone) if zone else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(
            f"The time zone {zone[:40]!r} of your browser is unknown.",
            accepted="Enter a time with its offset, such as 2026-11-22T18:00+01:00, or a duration.",
        ) from None
    return parsers.moment(text, now, time_zone)
