"""The site's reservations while a simulation goes on, a few weeks at a time.

A scheduler of the live service reads them with every snapshot. Here those of the next weeks are
worked out once, and again when half of that time is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from math import inf

from ..records.calendar import Reservation, reserved
from ..scheduling.model.snapshot import Group, Reserved

_EVERY = 31 * 86400.0
"""Whatever has a time limit up to this knows all that it could run into."""
_AHEAD = 2 * _EVERY


class Promises:
    """Reservations of groups that there are."""

    def __init__(self, reservations: Sequence[Reservation], groups: Iterable[Group]) -> None:
        names = frozenset(group.name for group in groups)
        self._names = names
        self._reservations = [each for each in reservations if each.group in names]
        self.read_at = -inf
        """When they are to be worked out again; infinity once all are over."""

    def __bool__(self) -> bool:
        return bool(self._reservations)

    def read(self, now: float) -> tuple[Reserved, ...]:
        """What runs now or begins within the next weeks."""
        today = datetime.fromtimestamp(now, UTC).date()
        left = any(each.last >= today for each in self._reservations)
        self.read_at = now + _EVERY if left else inf
        return reserved(self._reservations, self._names, now, _AHEAD)
