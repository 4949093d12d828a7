"""Everybody who waits, for a reader who asks in every cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, String, cast, func, select

from ...scheduling.model.snapshot import PendingRequest
from ...scheduling.model.states import State
from .tables.core import CHANGED, requests
from .tables.request_rows import MANY, WAITING, read_waiting

# In this form it opens the index of what has not ended.
QUEUED = (requests.c.ended_at.is_(None), requests.c.state == str(State.QUEUED))
_NUMBERS = select(func.aggregate_strings(cast(requests.c.number, String), ",")).where(*QUEUED)
_CHANGES = select(
    requests.c.number, requests.c.changes, requests.c.moved_for, requests.c.stopped_for
).where(CHANGED)


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read last. One value, replaced as a whole: several threads may read."""

    listed: str = ""
    changes: Mapping[int, tuple[int, str, str]] = field(default_factory=dict)
    known: Mapping[int, PendingRequest] = field(default_factory=dict)
    waiting: tuple[PendingRequest, ...] = ()


class Queue:
    """The queue, with what was read of it before.

    What a request asks for changes only where its owner says so, or where it is stopped for others;
    whether it waits changes all the time. So a read fetches the numbers of those that wait, as one
    value, how often the few were changed that ever were, for whom the few were stopped, and rows
    only of those that it has not met in this form.
    """

    def __init__(self) -> None:
        self._last = _Read()

    def read(self, connection: Connection) -> tuple[PendingRequest, ...]:
        """In the order of submission."""
        listed = connection.scalar(_NUMBERS) or ""
        rows = connection.execute(_CHANGES)
        changes = {row.number: (row.changes, row.moved_for, row.stopped_for) for row in rows}
        last = self._last
        if (listed, changes) == (last.listed, last.changes):
            return last.waiting
        numbers = sorted(map(int, listed.split(","))) if listed else []
        known = {
            number: request
            for number, request in last.known.items()
            if changes.get(number) == last.changes.get(number)
        }
        new = [number for number in numbers if number not in known]
        for first in range(0, len(new), MANY):
            some = WAITING.where(requests.c.number.in_(new[first : first + MANY]))
            known = known | read_waiting(connection, some)
        now = {number: known[number] for number in numbers}
        self._last = _Read(listed, changes, now, tuple(now.values()))
        return self._last.waiting
