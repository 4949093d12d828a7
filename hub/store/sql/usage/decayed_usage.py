"""Decayed use, summed inside the database; ``scheduling.accounting.decayed`` is the formula.

A cycle asks for it again and again, while the ledger only grows at its end. What was summed once
is therefore kept and fades as a whole (all of it by the same factor), and only newer lines are
added; from time to time everything is summed anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log

from sqlalchemy import ColumnElement, Connection, Double, Select, case, func, select, type_coerce

from ....scheduling.model.snapshot import DecayedUsage
from ...rules.conversions import EPSILON, moment_of_use
from ..tables.core import ledger

HALF_LIVES = 10
"""Lines that are older count less than a thousandth, and are left out."""
ANEW_EVERY = 3600.0
_LEAST = -700.0
"""The smallest exponent whose power every database can name."""

_LAST = select(func.max(ledger.c.id))


@dataclass(frozen=True, slots=True)
class _Sums:
    """What the lines up to ``last`` count for at ``at``, by group and owner."""

    at: float
    last: int
    began: float
    found: dict[tuple[str, str], float] = field(default_factory=dict)
    shown: tuple[DecayedUsage, ...] = ()


class DecayedUsageSums:
    """Of everybody, for a reader who asks in every cycle."""

    def __init__(self, half_life: float) -> None:
        self._half_life = half_life
        # One value, replaced as a whole: several threads may read.
        self._sums: _Sums | None = None

    def read(self, connection: Connection, now: float) -> tuple[DecayedUsage, ...]:
        at, last = moment_of_use(now), connection.scalar(_LAST) or 0
        before = self._sums
        if before is not None and (before.at, before.last) == (at, last):
            return before.shown
        if before is None or not 0 <= at - before.began < ANEW_EVERY or last < before.last:
            before = _Sums(at=at, last=0, began=at)
        fading = 0.5 ** ((at - before.at) / self._half_life)
        found = {key: amount * fading for key, amount in before.found.items()}
        for group, owner, amount in connection.execute(self._newer(before.last, at)):
            found[group, owner] = found.get((group, owner), 0.0) + amount
        shown = tuple(
            DecayedUsage(group=group, owner=owner, device_seconds=found[group, owner])
            for group, owner in sorted(found)
            if found[group, owner] > EPSILON
        )
        self._sums = _Sums(at=at, last=last, began=before.began, found=found, shown=shown)
        return shown

    def _newer(self, after: int, at: float) -> Select[str, str, float]:
        per_second = log(2) / self._half_life
        newest = _power((ledger.c.ends_at - at) * per_second)
        oldest = _power((ledger.c.starts_at - at) * per_second)
        span = ledger.c.ends_at - ledger.c.starts_at
        counts = ledger.c.device_seconds / span / per_second * (newest - oldest)
        counted = type_coerce(func.sum(counts), Double)
        # As columns they would tempt SQLite to go through a whole index that is in their order.
        group, owner = ledger.c.group_name.concat(""), ledger.c.owner.concat("")
        # Asked for both, SQLite would go through all of the past to find the few newest lines.
        oldest_end = at - HALF_LIVES * self._half_life
        which = ledger.c.id > after if after else ledger.c.ends_at > oldest_end
        return select(group, owner, counted).where(which).group_by(group, owner)


def _power(exponent: ColumnElement[float]) -> ColumnElement[float]:
    return func.exp(case((exponent < _LEAST, _LEAST), else_=exponent))
