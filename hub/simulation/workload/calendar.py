"""What a site has agreed for spans of time, as a simulation needs it."""

from __future__ import annotations

from dataclasses import dataclass

from ...records.calendar import Reservation, Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """The dates by which a site lives; a trace has none.

    Attributes:
        terms: by which budgets are counted.
        reservations: devices that are promised to groups.
    """

    terms: tuple[Term, ...] = ()
    reservations: tuple[Reservation, ...] = ()


NO_DATES = Calendar()
