"""Sums of device-seconds by day, owner and group, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil, floor, inf

from ....records.usage import DAY, LedgerFilter


@dataclass(slots=True)
class Sum:
    """Device-seconds, and the times of their first and last use.

    Attributes:
        charged: device-seconds.
        first: start of the earliest interval.
        last: end of the latest interval.
    """

    charged: float = 0.0
    first: float = inf
    last: float = -inf

    def add(self, new: Sum) -> None:
        self.charged += new.charged
        self.first = min(self.first, new.first)
        self.last = max(self.last, new.last)


Person = dict[str, Sum]
"""The sums of one person by group."""


@dataclass(slots=True)
class DailySums:
    """Sums of ledger lines by day, owner and group, and over all days."""

    days: dict[int, dict[str, Person]] = field(default_factory=dict)
    all_days: dict[str, Person] = field(default_factory=dict)

    def add(self, day: int, owner: str, group: str, new: Sum) -> None:
        by_day = self.days.setdefault(day, {}).setdefault(owner, {})
        for by_group in (by_day, self.all_days.setdefault(owner, {})):
            by_group.setdefault(group, Sum()).add(new)

    def matching(
        self, which: LedgerFilter, days: range | None
    ) -> Iterator[tuple[int, str, str, Sum]]:
        """Yield day, owner, group and sum for a filter on these days; None means all days."""
        for day in self.days if days is None else _common_days(self.days, days):
            people = self.days[day]
            owners = people if which.owner is None else {which.owner} & people.keys()
            for owner in owners:
                for group, total in people[owner].items():
                    if which.takes(owner, group):
                        yield day, owner, group, total


def _common_days(known: Mapping[int, object], days: range) -> Iterable[int]:
    """Return the days that are in both; iterates over the shorter one."""
    return (
        (day for day in days if day in known)
        if len(days) < len(known)
        else (day for day in known if day in days)
    )


def whole_days(which: LedgerFilter) -> range | None:
    """Return the days that lie completely within a window; None for a window without bounds.

    A window without a bound on one side gets a bound that no line reaches.
    """
    if which.since is None and which.until is None:
        return None
    first = _FIRST_EVER if which.since is None else ceil(which.since / DAY)
    end = _LAST_EVER if which.until is None else floor(which.until / DAY)
    return range(first, max(first, end))


_FIRST_EVER, _LAST_EVER = -(1 << 40), 1 << 40
