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
    """Terms and reservations of a site; a trace has none.

    Attributes:
        terms: periods of budgets.
        reservations: devices reserved for groups.
    """

    terms: tuple[Term, ...] = ()
    reservations: tuple[Reservation, ...] = ()


NO_DATES = Calendar()


_EVERY = 31 * 86400.0
"""Seconds between two readings. All reservations that a job with a shorter time limit could run
into are known."""


_AHEAD = 2 * _EVERY


class SimulatedReservations:
    """The reservations of existing groups."""

    def __init__(self, reservations: Sequence[Reservation], groups: Iterable[Group]) -> None:
        names = frozenset(group.name for group in groups)
        self._names = names
        self._reservations = [each for each in reservations if each.group in names]
        self.read_at = -inf
        """When to read them again; infinity once all are over."""

    def __bool__(self) -> bool:
        return bool(self._reservations)

    def read(self, now: float) -> tuple[ReservedSpan, ...]:
        """Return the reservations that are due, or start within the next two months."""
        today = datetime.fromtimestamp(now, UTC).date()
        left = any(each.last >= today for each in self._reservations)
        self.read_at = now + _EVERY if left else inf
        return reserved(self._reservations, self._names, now, _AHEAD)
