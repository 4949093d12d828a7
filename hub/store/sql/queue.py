"""Everybody who waits, for a reader who asks in every cycle."""

from __future__ import annotations

from sqlalchemy import Connection, String, cast, func, select

from ...scheduling.lifecycle import State
from ...scheduling.model import Waiting
from ..tables import requests
from .rows import MANY, WAITING, read_waiting

# In this form it opens the index of what has not ended.
QUEUED = (requests.c.ended_at.is_(None), requests.c.state == str(State.QUEUED))
_NUMBERS = select(func.aggregate_strings(cast(requests.c.number, String), ",")).where(*QUEUED)


class Queue:
    """The queue, with what was read of it before.

    What a request asks for never changes; whether it waits does. So a read fetches the numbers
    of those that wait, as one value, and rows only of those that it has not met.
    """

    def __init__(self) -> None:
        # One value, replaced as a whole: several threads may read.
        self._last: tuple[str, dict[int, Waiting], tuple[Waiting, ...]] = ("", {}, ())

    def read(self, connection: Connection) -> tuple[Waiting, ...]:
        """In the order of submission."""
        listed = connection.scalar(_NUMBERS) or ""
        before, known, waiting = self._last
        if listed == before:
            return waiting
        numbers = sorted(map(int, listed.split(","))) if listed else []
        new = [number for number in numbers if number not in known]
        for first in range(0, len(new), MANY):
            some = WAITING.where(requests.c.number.in_(new[first : first + MANY]))
            known = known | read_waiting(connection, some)
        now = {number: known[number] for number in numbers}
        self._last = (listed, now, tuple(now.values()))
        return self._last[2]
