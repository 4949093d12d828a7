"""Numbers and spans of time as people read them, for sentences that the core makes."""

from __future__ import annotations

_VAST = 10**9


def plural(count: float, noun: str) -> str:
    """``1 device``, ``4 devices``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def number(value: float) -> str:
    """A number that somebody typed, however long it is."""
    if value >= _VAST:
        return "more than a billion"
    if value <= -_VAST:
        return "less than minus a billion"
    return str(value)


def span(seconds: float) -> str:
    """``8 hours``, ``1 hour 30 minutes``, ``45 seconds``."""
    if seconds < 0:
        return f"minus {span(-seconds)}"
    if not seconds < _VAST:
        return "more than 30 years" if seconds >= _VAST else "no number"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = [plural(count, unit) for count, unit in ((hours, "hour"), (minutes, "minute")) if count]
    if rest or not parts:
        parts.append("1 second" if rest == 1 else f"{rest:g} seconds")
    return " ".join(parts)
