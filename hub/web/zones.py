"""Moments that people type into a form: without an offset they are of the zone of the browser."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ..errors import InvalidInput
from ..schemas import parsers as values


def moment(text: str, zone: str, now: float) -> float:
    """A span from now on, or a date and a time; a browser without script names no zone: UTC.

    Raises:
        InvalidInput: it is neither, or the zone is not known.
    """
    try:
        where = ZoneInfo(zone) if zone else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(
            f"Your browser's zone is {zone[:40]!r}, which is not known here.",
            accepted="A time with its offset, such as 2026-11-22T18:00+01:00, or a span.",
        ) from None
    return values.moment(text, now, where)
