"""Terms and reservations of a simulated site."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf

from ...records.calendar import Reservation, Term, reserved
from ...scheduling.model.snapshot import Group, ReservedSpan


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """Terms and reservations; a trace has none.

    Attributes:
        terms: by which budgets are counted.
        reservations: devices reserved for groups.
    """

    terms: tuple[Term, ...] = ()
    reservations: tuple[Reservation, ...] = ()


NO_DATES = Calendar()


_EVERY = 31 * 86400.0
"""Seconds between two readings. A job with a time limit up to this knows all that it could run
into."""


_AHEAD = 2 * _EVERY


class SimulatedReservations:
    """The reservations of existing groups."""

    def __init__(self, reservations: Sequence[Reservation], groups: Iterable[Group]) -> None:
        names = frozenset(group.name for group in groups)
        self._names = names
        self._reservations = [each for each in reservations if each.group in names]
        self.read_at = -inf
        """When they have to be read again; infinity once all are over."""

    def __bool__(self) -> bool:
        return bool(self._reservations)

    def read(self, now: float) -> tuple[ReservedSpan, ...]:
        """Those that are due, or start within the next weeks."""
        today = datetime.fromtimestamp(now, UTC).date()
        left = any(each.last >= today for each in self._reservations)
        self.read_at = now + _EVERY if left else inf
        return reserved(self._reservations, self._names, now, _AHEAD)
