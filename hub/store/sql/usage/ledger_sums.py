"""Sums of the ledger by day, person and group, kept in memory: a written line never changes.

Pages show such sums again and again, of thousands of lines, while the ledger only grows at its
end. Each line is therefore gone through once in the life of a process, and later only those
that are newer. A line that spans midnight (UTC) belongs to two days, as in ``hub.history``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import floor
from threading import Lock

from sqlalchemy import Connection, func, select

from ....records.usage import DAY, LedgerFilter, UsageBy, UsageRow
from ....usage.aggregation import charged, portions
from ..tables.core import ledger
from ..tables.days import first_day, spans_midnight
from ..tables.request_rows import to_ledger
from .daily_sums import DailySums, Sum

LAST_LINE = select(func.max(ledger.c.id))
EVERYTHING = LedgerFilter()


@dataclass(slots=True)
class _LedgerCache:
    """What the lines up to ``last`` add up to."""

    last: int = 0
    sums: DailySums = field(default_factory=DailySums)


class LedgerSums:
    """Right for the view that each reader has: what another reader added is not in the way."""

    def __init__(self) -> None:
        # Readers are threads, and the sums grow in place.
        self._lock = Lock()
        self._known = _LedgerCache()

    def by_person(
        self, connection: Connection, owner: str | None
    ) -> Mapping[tuple[str, str], float]:
        """Device-seconds of all time by owner and group; of one owner or of all."""
        with self._lock:
            people = self._up_to_date(connection).all_days
            chosen = people if owner is None else {owner: people.get(owner, {})}
            return {
                (name, group): each.charged
                for name, of_group in chosen.items()
                for group, each in of_group.items()
            }

    def used(
        self, connection: Connection, which: LedgerFilter, days: range | None, by: UsageBy
    ) -> list[UsageRow]:
        """By day, or by owner and group, of these days; None means every day."""
        found: dict[tuple[int | None, str, str], Sum] = {}
        with self._lock:
            for day, owner, group, each in self._up_to_date(connection).taken(which, days):
                key = (day, "", "") if by is UsageBy.DAY else (None, owner, group)
                found.setdefault(key, Sum()).add(each)
        return [
            UsageRow(
                owner=owner,
                group=group,
                day=None if day is None else day * DAY,
                charged=each.charged,
                first=each.first,
                last=each.last,
            )
            for (day, owner, group), each in found.items()
        ]

    def _up_to_date(self, connection: Connection) -> DailySums:
        last = connection.scalar(LAST_LINE) or 0
        if last < self._known.last:  # an older view than the last reader's, or another ledger
            self._known = _LedgerCache()
        if last > self._known.last:
            found = list(_newer(connection, self._known.last))
            for day, owner, group, new in found:
                self._known.sums.add(day, owner, group, new)
            self._known.last = last
        return self._known.sums


def _newer(connection: Connection, after: int) -> Iterator[tuple[int, str, str, Sum]]:
    """Sums of the lines after this one, the database's own where they lie within a day."""
    spans = spans_midnight(connection)
    # As columns they would tempt SQLite to go through a whole index that is in their order.
    owner, group = ledger.c.owner.concat(""), ledger.c.group_name.concat("")
    day = first_day(connection)
    within = (
        select(day, owner, group, func.sum(ledger.c.device_seconds))
        .add_columns(func.min(ledger.c.starts_at), func.max(ledger.c.ends_at))
        .where(ledger.c.id > after, ~spans)
        .group_by(day, owner, group)
    )
    for number, person, name, *new in connection.execute(within):
        yield number, person, name, Sum(*new)
    for line in to_ledger(connection.execute(select(ledger).where(ledger.c.id > after, spans))):
        for part in portions(charged(line), EVERYTHING, UsageBy.DAY):
            number = floor(part.first / DAY)
            yield number, line.owner, line.group, Sum(part.charged, part.first, part.last)
