"""Decayed usage, summed in the database by the formula of ``scheduling.quota.accounting``.

Every scheduling cycle reads it, and lines are only appended to the ledger. The sums are therefore
cached: all of them decay by the same factor, and only newer lines are added. They are rebuilt every
``REBUILD_EVERY`` seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log

from sqlalchemy import ColumnElement, Connection, Double, Select, case, func, select, type_coerce

from ....scheduling.model.snapshot import DecayedUsage
from ...rules.conversions import EPSILON, decay_time
from ..tables.core import ledger

HALF_LIVES = 10
"""Older lines count less than a thousandth and are left out."""
REBUILD_EVERY = 3600.0
_LEAST = -700.0
"""The smallest exponent whose power every database can represent."""

_LAST = select(func.max(ledger.c.id))


@dataclass(frozen=True, slots=True)
class _Sums:
    """Decayed device-seconds of the lines up to ``last``.

    Attributes:
        at: the time to which they are decayed.
        last: id of the last ledger line that is included.
        began: when they were last summed completely.
        amounts: by group and owner.
        usage: the amounts above ``EPSILON`` as values of the scheduler.
    """

    at: float
    last: int
    began: float
    amounts: dict[tuple[str, str], float] = field(default_factory=dict)
    usage: tuple[DecayedUsage, ...] = ()


class DecayedUsageSums:
    """Reads the decayed usage of all owners; fast enough for every scheduling cycle."""

    def __init__(self, half_life: float) -> None:
        self._half_life = half_life
        # The value is replaced, never changed: several threads may read.
        self._sums: _Sums | None = None

    def read(self, connection: Connection, now: float) -> tuple[DecayedUsage, ...]:
        at, last = decay_time(now), connection.scalar(_LAST) or 0
        before = self._sums
        if before is not None and (before.at, before.last) == (at, last):
            return before.usage
        if before is None or not 0 <= at - before.began < REBUILD_EVERY or last < before.last:
            before = _Sums(at=at, last=0, began=at)
        decay = 0.5 ** ((at - before.at) / self._half_life)
        amounts = {key: amount * decay for key, amount in before.amounts.items()}
        for group, owner, amount in connection.execute(self._newer(before.last, at)):
            amounts[group, owner] = amounts.get((group, owner), 0.0) + amount
        usage = tuple(
            DecayedUsage(group=group, owner=owner, device_seconds=amounts[group, owner])
            for group, owner in sorted(amounts)
            if amounts[group, owner] > EPSILON
        )
        self._sums = _Sums(at=at, last=last, began=before.began, amounts=amounts, usage=usage)
        return usage

    def _newer(self, after: int, at: float) -> Select[str, str, float]:
        per_second = log(2) / self._half_life
        newest = _power((ledger.c.ends_at - at) * per_second)
        oldest = _power((ledger.c.starts_at - at) * per_second)
        span = ledger.c.ends_at - ledger.c.starts_at
        counts = ledger.c.device_seconds / span / per_second * (newest - oldest)
        counted = type_coerce(func.sum(counts), Double)
        # Expressions, because for plain columns SQLite scans a whole index in their order.
        group, owner = ledger.c.group_name.concat(""), ledger.c.owner.concat("")
        # Only one of the two conditions: with both, SQLite scans all lines for the few newest.
        oldest_end = at - HALF_LIVES * self._half_life
        which = ledger.c.id > after if after else ledger.c.ends_at > oldest_end
        return select(group, owner, counted).where(which).group_by(group, owner)


def _power(exponent: ColumnElement[float]) -> ColumnElement[float]:
    return func.exp(case((exponent < _LEAST, _LEAST), else_=exponent))
