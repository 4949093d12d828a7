"""Sums of the ledger by day, person and group, cached in memory.

Pages show such sums of thousands of lines often, and lines are only appended to the ledger. Every
line is therefore read once per process. A line that spans midnight (UTC) is split between two
days, as in ``hub.usage.aggregation``.
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
    """The sums of the lines up to the id ``last``."""

    last: int = 0
    sums: DailySums = field(default_factory=DailySums)


class LedgerSums:
    """Cached sums of the ledger, correct for the view of the reading transaction.

    A reader with an older view than the cache rebuilds it.
    """

    def __init__(self) -> None:
        # Readers are threads, and the sums grow in place.
        self._lock = Lock()
        self._known = _LedgerCache()

    def by_person(
        self, connection: Connection, owner: str | None
    ) -> Mapping[tuple[str, str], float]:
        """Return the device-seconds of all time by owner and group, of one owner or of all."""
        with self._lock:
            people = self._up_to_date(connection).all_days
            selected = people if owner is None else {owner: people.get(owner, {})}
            return {
                (name, group): total.charged
                for name, by_group in selected.items()
                for group, total in by_group.items()
            }

    def used(
        self, connection: Connection, which: LedgerFilter, days: range | None, by: UsageBy
    ) -> list[UsageRow]:
        """Return the usage of these days by day, or by owner and group; None means every day."""
        totals: dict[tuple[int | None, str, str], Sum] = {}
        with self._lock:
            for day, owner, group, part in self._up_to_date(connection).matching(which, days):
                key = (day, "", "") if by is UsageBy.DAY else (None, owner, group)
                totals.setdefault(key, Sum()).add(part)
        return [
            UsageRow(
                owner=owner,
                group=group,
                day=None if day is None else day * DAY,
                charged=total.charged,
                first=total.first,
                last=total.last,
            )
            for (day, owner, group), total in totals.items()
        ]

    def _up_to_date(self, connection: Connection) -> DailySums:
        last = connection.scalar(LAST_LINE) or 0
        if last < self._known.last:  # an older view than that of the last reader
            self._known = _LedgerCache()
        if last > self._known.last:
            newer = list(_newer(connection, self._known.last))
            for day, owner, group, new in newer:
                self._known.sums.add(day, owner, group, new)
            self._known.last = last
        return self._known.sums


def _newer(connection: Connection, after: int) -> Iterator[tuple[int, str, str, Sum]]:
    """Yield the sums of the lines with a greater id.

    The database adds up lines within one day; lines that span midnight are split here.
    """
    spans = spans_midnight(connection)
    # Expressions, because for plain columns SQLite scans a whole index in their order.
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
