"""The times of a cron expression in a time zone, as times in seconds since the epoch.

The expression has the five fields of Debian's cron, evaluated by cronsim, which also decides as
Debian does when clocks change: a fixed time that does not exist runs right after the change, one
that exists twice runs once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from ..errors import InvalidInput
from ..schemas import parsers

FIELDS: Final = 5
MOST_COUNTED: Final = 1000
"""Times that are counted in a gap; a longer gap counts as so many."""


@dataclass(frozen=True, slots=True)
class CronTimes:
    """A checked expression; made by ``parse``."""

    expression: str
    zone: ZoneInfo

    @classmethod
    def parse(cls, expression: str, zone: str) -> CronTimes:
        """Check an expression and the name of a time zone. Raises InvalidInput."""
        place = parsers.time_zone(zone)
        parts = expression.split()
        times = cls(" ".join(parts), place)
        if len(parts) != FIELDS or not times._has_any():
            raise InvalidInput(
                f"{expression[:80]!r} is not a cron expression that has times.",
                accepted="Five fields: minute, hour, day of month, month, weekday; such as "
                "'0 6 * * 1-5' for 06:00 from Monday to Friday, or '*/30 * * * *'.",
                field="cron",
            )
        return times

    def _has_any(self) -> bool:
        try:
            return self.after(0.0) is not None
        except CronSimError:
            return False

    def after(self, moment: float) -> float | None:
        """Return the first time after a moment; None if there is none in 50 years."""
        found = next(CronSim(self.expression, self._local(moment)), None)
        return None if found is None else found.timestamp()

    def upcoming(self, first: float, count: int) -> list[float]:
        """Return ``first``, itself a time, and those after it: ``count`` times, if there are."""
        return [first, *islice(self._following(first), count - 1)]

    def newest(self, first: float, now: float) -> tuple[float, int]:
        """Return the newest time from ``first``, itself a time, until ``now``, and the number of
        times from ``first`` before it, at most ``MOST_COUNTED``.

        Times are counted forward, so that they are the same ones that ``after`` gives.
        """
        newest, count = first, 0
        for found in takewhile(lambda moment: moment <= now, self._following(first)):
            newest, count = found, count + 1
            if count == MOST_COUNTED:
                # A gap of a year must not take a minute to count.
                return max(newest, self._before(now)), MOST_COUNTED
        return newest, count

    def _following(self, moment: float) -> Iterator[float]:
        return (found.timestamp() for found in CronSim(self.expression, self._local(moment)))

    def _before(self, now: float) -> float:
        """Return the newest time until ``now``; it has at least one."""
        begin = self._local(now) + timedelta(seconds=1)
        found = next(CronSim(self.expression, begin, reverse=True))
        return min(found.timestamp(), now)

    def _local(self, moment: float) -> datetime:
        return datetime.fromtimestamp(moment, self.zone)
