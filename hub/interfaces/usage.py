"""The port to past usage: the part of the store that sums ledger, waits and capacity."""

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
        """Return device-seconds in the window, grouped ``by`` a key.

        Ledger entries that extend over a day or an end of the window are split in proportion.
        Rows are ordered by time, by owner and group, or by model; a group follows its parent;
        requests are ordered by last use, newest first. Groups with usage have a row, and so have
        their ancestors, within the filter and the groups that the reader may see.
        """

    def used_requests(
        self, which: LedgerFilter, *, now: float, most: int, counted: bool = True
    ) -> UsedRequests:
        """Return the device-seconds of the ``most`` requests that were used last.

        Args:
            most: the maximum number of rows, at least 1.
            counted: whether ``total`` is the number of all requests, instead of that of the rows.
        """

    def ledger_lines(
        self, which: LedgerFilter, *, limit: int, before: int | None = None
    ) -> tuple[LedgerEntry, ...]:
        """Return the ledger entries that overlap the window, unsplit and newest first.

        ``before`` is the id of the last entry of the previous page.
        """

    def granted(self, window: Window) -> tuple[Granted, ...]:
        """Return the first grants of devices to requests within the window."""

    def levels(self, window: Window) -> Levels:
        """Return the starts and ends of leases and waits within the window."""

    def note_capacity(self, now: float) -> None:
        """Store the number of healthy devices if it has changed."""

    def capacity(self, until: float) -> tuple[Capacity, ...]:
        """Return all changes of the capacity before ``until``, oldest first."""

    def census(self) -> Census:
        """Count requests, leases and waits, for the metrics."""

    def check(self) -> None:
        """Raise Unavailable if the database does not answer."""
