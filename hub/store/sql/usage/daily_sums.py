"""Device-seconds by day, owner and group, in memory: they are added to, and taken by a filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil, floor, inf

from ....records.usage import DAY, LedgerFilter


@dataclass(slots=True)
class Sum:
    """Device-seconds, and between which moments they were used."""

    charged: float = 0.0
    first: float = inf
    last: float = -inf

    def add(self, new: Sum) -> None:
        self.charged += new.charged
        self.first = min(self.first, new.first)
        self.last = max(self.last, new.last)


Person = dict[str, Sum]
"""Of one person, by group."""


@dataclass(slots=True)
class DailySums:
    """What some lines of the ledger add up to: by day, owner and group, and over all days."""

    days: dict[int, dict[str, Person]] = field(default_factory=dict)
    all_days: dict[str, Person] = field(default_factory=dict)

    def add(self, day: int, owner: str, group: str, new: Sum) -> None:
        of_day = self.days.setdefault(day, {}).setdefault(owner, {})
        for people in (of_day, self.all_days.setdefault(owner, {})):
            people.setdefault(group, Sum()).add(new)

    def taken(self, which: LedgerFilter, days: range | None) -> Iterator[tuple[int, str, str, Sum]]:
        """Day, owner, group and sum of what a filter asks for on these days; None means all."""
        for day in self.days if days is None else _both(self.days, days):
            people = self.days[day]
            owners = people if which.owner is None else {which.owner} & people.keys()
            for owner in owners:
                for group, each in people[owner].items():
                    if which.takes(owner, group):
                        yield day, owner, group, each


def _both(known: Mapping[int, object], days: range) -> Iterable[int]:
    """The days that are in both, from the shorter of the two."""
    return (
        (day for day in days if day in known)
        if len(days) < len(known)
        else (day for day in known if day in days)
    )


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
