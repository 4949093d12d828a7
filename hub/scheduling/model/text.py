"""Format numbers and time spans for the sentences of the core."""

from __future__ import annotations

_VAST = 10**9
_TENTH, _LEAST_HOURS = 0.095, 0.005


def plural(count: float, noun: str) -> str:
    """Return a count with its noun: ``1 device``, ``4 devices``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def number(value: float) -> str:
    """Format a number that a user typed; a very large one as "more than a billion"."""
    if value >= _VAST:
        return "more than a billion"
    if value <= -_VAST:
        return "less than minus a billion"
    return str(value)


def hours(device_seconds: float) -> str:
    """Format device-seconds as device-hours: ``300.0``.

    Small amounts have more digits (``0.03``), so that they are not shown as zero.
    """
    amount = device_seconds / 3600
    if amount <= -_LEAST_HOURS:
        return f"-{hours(-device_seconds)}"
    if amount < _LEAST_HOURS:
        return "less than 0.01" if amount > 0 else "0.0"
    return f"{amount:.2f}" if amount < _TENTH else f"{amount:,.1f}"


def span(seconds: float) -> str:
    """Format a time span: ``8 hours``, ``1 hour 30 minutes``, ``45 seconds``."""
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
