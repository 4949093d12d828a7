"""The part of the store for past usage."""

from __future__ import annotations

from typing import Protocol

from ..records.ledger import LedgerEntry
from ..records.usage import (
    Capacity,
    Census,
    Granted,
    LedgerFilter,
    Levels,
    UsageBy,
    UsageRow,
    UsedRequests,
    Window,
)


class UsageStore(Protocol):
    """Queries on past usage, wait times and capacity."""

    def used(self, which: LedgerFilter, by: UsageBy, *, now: float) -> tuple[UsageRow, ...]:
        """Lines that span a day, or an end of the window, are split by the overlap.

        Ordered by time, by owner and group, by model, each group after the one above it, or
        requests by last use with the newest first. Of groups, those have a row in which
        something was used, and those above them as far as they were asked for and are the
        reader's.
        """

    def used_requests(
        self, which: LedgerFilter, *, now: float, most: int, counted: bool = True
    ) -> UsedRequests:
        """The first ``most`` of what is used by request, one at the least.

        ``counted``: all that there are; else ``total`` is no more than what is told.
        """

    def ledger_lines(
        self, which: LedgerFilter, *, limit: int, before: int | None = None
    ) -> tuple[LedgerEntry, ...]:
        """Whole lines that touch the window, newest first; ``before`` is an id."""

    def granted(self, window: Window) -> tuple[Granted, ...]:
        """Return all first grants of devices within the window."""

    def levels(self, window: Window) -> Levels: ...

    def note_capacity(self, now: float) -> None:
        """Record the number of healthy devices, if it has changed."""

    def capacity(self, until: float) -> tuple[Capacity, ...]:
        """Return all changes of the capacity before ``until``, oldest first."""

    def census(self) -> Census: ...

    def check(self) -> None:
        """Raises Unavailable unless the store answers."""
