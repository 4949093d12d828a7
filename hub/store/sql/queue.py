"""Read the queue, with a cache that makes it cheap in every scheduling cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, String, cast, func, select

from ...scheduling.model.snapshot import PendingRequest
from ...scheduling.model.states import State
from .tables.core import CHANGED, requests
from .tables.request_rows import BATCH, PENDING, read_pending

# The first condition makes the index of requests that have not ended usable.
QUEUED = (requests.c.ended_at.is_(None), requests.c.state == str(State.QUEUED))
_NUMBERS = select(func.aggregate_strings(cast(requests.c.number, String), ",")).where(*QUEUED)
_CHANGES = select(
    requests.c.number,
    requests.c.changes,
    requests.c.moved_for,
    requests.c.stopped_for,
    requests.c.expedited,
    requests.c.not_before,
).where(CHANGED)


@dataclass(frozen=True, slots=True)
class _Read:
    """The result of the last read. The value is replaced, never changed: several threads read it.

    Attributes:
        numbers: of the queued requests, as the database returns them.
        changes: by number, the columns that can change while a request is queued.
        requests: by number.
    """

    numbers: str = ""
    changes: Mapping[int, tuple[object, ...]] = field(default_factory=dict)
    requests: Mapping[int, PendingRequest] = field(default_factory=dict)
    queue: tuple[PendingRequest, ...] = ()


class Queue:
    """Reads the queued requests, and caches their rows.

    Requests enter and leave the queue all the time, but a queued request rarely changes: only when
    its owner reduces it, or when it is stopped for another one. A read therefore fetches the
    numbers of the queued requests as one value, the change columns of the few requests that have
    changed, and the rows of requests that are new or changed.
    """

    def __init__(self) -> None:
        self._last = _Read()

    def read(self, connection: Connection) -> tuple[PendingRequest, ...]:
        """Return the queued requests in the order of submission."""
        listed = connection.scalar(_NUMBERS) or ""
        rows = connection.execute(_CHANGES)
        changes = {row.number: tuple(row) for row in rows}
        last = self._last
        if (listed, changes) == (last.numbers, last.changes):
            return last.queue
        numbers = sorted(map(int, listed.split(","))) if listed else []
        known = {
            number: request
            for number, request in last.requests.items()
            if changes.get(number) == last.changes.get(number)
        }
        new = [number for number in numbers if number not in known]
        for first in range(0, len(new), BATCH):
            batch = PENDING.where(requests.c.number.in_(new[first : first + BATCH]))
            known = known | read_pending(connection, batch)
        current = {number: known[number] for number in numbers}
        self._last = _Read(listed, changes, current, tuple(current.values()))
        return self._last.queue
