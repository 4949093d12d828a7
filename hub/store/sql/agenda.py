"""The part of ``SqlStore`` that is about terms and reservations."""

from __future__ import annotations

from ...records.audit import Change
from ...records.calendar import Reservation, Term
from . import calendar
from .transactions import Transactions


class Agenda:
    """Each method is one transaction around one function."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def terms(self) -> tuple[Term, ...]:
        return self._transactions.read(calendar.read_terms)

    def put_term(self, term: Term, *, change: Change | None = None) -> None:
        self._transactions.write(lambda c: calendar.put_term(c, term, change))

    def remove_term(self, name: str, *, change: Change | None = None) -> bool:
        return self._transactions.write(lambda c: calendar.remove_term(c, name, change))

    def reservations(self) -> tuple[Reservation, ...]:
        return self._transactions.read(calendar.read_reservations)

    def put_reservation(self, reservation: Reservation, *, change: Change | None = None) -> None:
        self._transactions.write(lambda c: calendar.put_reservation(c, reservation, change))

    def remove_reservation(self, name: str, *, change: Change | None = None) -> bool:
        return self._transactions.write(lambda c: calendar.remove_reservation(c, name, change))
