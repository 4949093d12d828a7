"""Days in the time zone of an assignment, for what a student may do so often on one day."""

from __future__ import annotations

from datetime import datetime, timedelta

from ...hub.schemas import parsers
from ..model.records import Assignment


def day_of(assignment: Assignment, now: float) -> tuple[float, float]:
    """Return the begin of the present day and of the next one, in the zone of an assignment."""
    zone = parsers.time_zone(assignment.zone)
    at = datetime.fromtimestamp(now, zone)
    today = at.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return today.timestamp(), (today + timedelta(days=1)).timestamp()


def next_day_sentence(assignment: Assignment, now: float) -> str:
    """Say when the next day begins."""
    _, next_at = day_of(assignment, now)
    at = datetime.fromtimestamp(next_at, parsers.time_zone(assignment.zone))
    return f"The next is possible from {at:%Y-%m-%d %H:%M} {assignment.zone}."
