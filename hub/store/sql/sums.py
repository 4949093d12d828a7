"""Sums of the ledger by day, person and group, kept in memory: a written line never changes.

Pages show such sums again and again, of thousands of lines, while the ledger only grows at its
end. Each line is therefore gone through once in the life of a process, and later only those
that are newer. A line that spans midnight (UTC) belongs to two days, as in ``hub.history``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil, floor, inf
from threading import Lock

from sqlalchemy import Connection, func, select

from ...history import charged, portions
from ...ports.history import DAY, LedgerFilter, UsageBy, Used
from ..tables import ledger
from .days import first_day, spans_midnight
from .rows import to_ledger

_LAST = select(func.max(ledger.c.id))
_EVERYTHING = LedgerFilter()


@dataclass(slots=True)
class _Sum:
    """Device-seconds, and between which moments they were used."""

    charged: float = 0.0
    first: float = inf
    last: float = -inf

    def add(self, charged: float, first: float, last: float) -> None:
        self.charged += charged
        self.first = min(self.first, first)
        self.last = max(self.last, last)


_Person = dict[str, _Sum]
"""Of one person, by group."""


@dataclass(slots=True)
class _Known:
    """What the lines up to ``last`` add up to: by day, owner and group, and over all days."""

    last: int = 0
    days: dict[int, dict[str, _Person]] = field(default_factory=dict)
    all_days: dict[str, _Person] = field(default_factory=dict)

    def add(self, day: int, owner: str, group: str, new: tuple[float, float, float]) -> None:
        of_day = self.days.setdefault(day, {}).setdefault(owner, {})
        for people in (of_day, self.all_days.setdefault(owner, {})):
            people.setdefault(group, _Sum()).add(*new)


class LedgerSums:
    """Right for the view that each reader has: what another reader added is not in the way."""

    def __init__(self) -> None:
        # Readers are threads, and the sums grow in place.
        self._lock = Lock()
        self._known = _Known()

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
    ) -> list[Used]:
        """By day, or by owner and group, of these days; None means every day."""
        found: dict[tuple[int | None, str, str], _Sum] = {}
        with self._lock:
            known = self._up_to_date(connection).days
            for day in known if days is None else _both(known, days):
                for owner, group, each in _taken(known[day], which):
                    key = (day, "", "") if by is UsageBy.DAY else (None, owner, group)
                    found.setdefault(key, _Sum()).add(each.charged, each.first, each.last)
        return [
            Used(
                owner=owner,
                group=group,
                day=None if day is None else day * DAY,
                charged=each.charged,
                first=each.first,
                last=each.last,
            )
            for (day, owner, group), each in found.items()
        ]

    def _up_to_date(self, connection: Connection) -> _Known:
        last = connection.scalar(_LAST) or 0
        if last < self._known.last:  # an older view than the last reader's, or another ledger
            self._known = _Known()
        if last > self._known.last:
            found = list(_newer(connection, self._known.last))
            for day, owner, group, new in found:
                self._known.add(day, owner, group, new)
            self._known.last = last
        return self._known


def _both(known: Mapping[int, object], days: range) -> Iterable[int]:
    """The days that are in both, from the shorter of the two."""
    return (
        (day for day in days if day in known)
        if len(days) < len(known)
        else (day for day in known if day in days)
    )


def _taken(people: Mapping[str, _Person], which: LedgerFilter) -> Iterator[tuple[str, str, _Sum]]:
    owners = people if which.owner is None else {which.owner} & people.keys()
    for owner in owners:
        for group, each in people[owner].items():
            if which.takes(owner, group):
                yield owner, group, each


def _newer(
    connection: Connection, after: int
) -> Iterator[tuple[int, str, str, tuple[float, float, float]]]:
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
        amount, first, last = new
        yield number, person, name, (amount, first, last)
    for line in to_ledger(connection.execute(select(ledger).where(ledger.c.id > after, spans))):
        for part in portions(charged(line), _EVERYTHING, UsageBy.DAY):
            number = floor(part.first / DAY)
            yield number, line.owner, line.group, (part.charged, part.first, part.last)


def whole_days(which: LedgerFilter) -> range | None:
    """The days that lie within a window with all of their hours; None where it has no end.

    Without an end on one side, that side is as far away as makes no difference.
    """
    if which.since is None and which.until is None:
        return None
    first = _FIRST_EVER if which.since is None else ceil(which.since / DAY)
    end = _LAST_EVER if which.until is None else floor(which.until / DAY)
    return range(first, max(first, end))


_FIRST_EVER, _LAST_EVER = -(1 << 40), 1 << 40
