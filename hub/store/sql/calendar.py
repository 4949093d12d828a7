"""Terms, reservations and budget balances; functions run inside a transaction of the caller."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time

from sqlalchemy import Connection, case, delete, func, insert, select

from ...records.audit import AuditEntry
from ...records.calendar import Reservation, Term
from ...scheduling.model.snapshot import BudgetBalance, Group
from ...usage import budget_balance
from ...usage.budget_balance import Charged, Open
from ..rules import checks
from .marks_and_audit import record_change
from .pool import group
from .tables.core import leases, ledger, requests, reservations, terms
from .transactions import Transactions
from .upserts import put_row
from .usage.decayed_usage import REBUILD_EVERY

_TERMS = select(terms).order_by(terms.c.first)
_RESERVATIONS = select(reservations).order_by(reservations.c.first, reservations.c.id)


def read_terms(connection: Connection) -> tuple[Term, ...]:
    rows = connection.execute(_TERMS).all()
    return tuple(
        Term(name=row.name, first=date.fromisoformat(row.first), last=date.fromisoformat(row.last))
        for row in rows
    )


def put_term(connection: Connection, term: Term, change: AuditEntry | None) -> None:
    checks.check_term(term, read_terms(connection))
    days = {"first": term.first.isoformat(), "last": term.last.isoformat()}
    put_row(connection, terms, {"name": term.name, **days}, "name")
    record_change(connection, change)


def remove_term(connection: Connection, name: str, change: AuditEntry | None) -> bool:
    removed = connection.execute(delete(terms).where(terms.c.name == name)).rowcount
    record_change(connection, change if removed else None)
    return bool(removed)


def read_reservations(connection: Connection) -> tuple[Reservation, ...]:
    return tuple(
        Reservation(
            id=row.id,
            group=row.group_name,
            devices=row.devices,
            weekdays=tuple(int(day) for day in row.weekdays),
            begins=time.fromisoformat(row.begins),
            ends=time.fromisoformat(row.ends),
            zone=row.zone,
            first=date.fromisoformat(row.first),
            last=date.fromisoformat(row.last),
            why=row.why,
        )
        for row in connection.execute(_RESERVATIONS)
    )


def put_reservation(connection: Connection, new: Reservation, change: AuditEntry | None) -> None:
    group(connection, new.group)
    connection.execute(delete(reservations).where(reservations.c.id == new.id))
    connection.execute(
        insert(reservations).values(
            id=new.id,
            group_name=new.group,
            devices=new.devices,
            weekdays="".join(str(day) for day in new.weekdays),
            begins=new.begins.isoformat(),
            ends=new.ends.isoformat(),
            zone=new.zone,
            first=new.first.isoformat(),
            last=new.last.isoformat(),
            why=new.why,
        )
    )
    record_change(connection, change)


def remove_reservation(connection: Connection, name: str, change: AuditEntry | None) -> bool:
    removed = connection.execute(delete(reservations).where(reservations.c.id == name)).rowcount
    record_change(connection, change if removed else None)
    return bool(removed)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Device-seconds by start of a period and by group.

    Attributes:
        built_at: when they were last summed completely.
        last: id of the last ledger line that is included.
    """

    built_at: float
    last: int
    since: Mapping[float, Charged]


class SqlBudgets:
    """Reads the budget balances of groups; fast enough for every scheduling cycle.

    Lines are only appended to the ledger: the sums are cached, and only newer lines are added.
    They are rebuilt every ``REBUILD_EVERY`` seconds.
    """

    def __init__(self) -> None:
        # The value is replaced, never changed: several threads may read.
        self._sums = _Sums(built_at=0.0, last=0, since={})

    def read(
        self, connection: Connection, groups: Sequence[Group], now: float
    ) -> tuple[BudgetBalance, ...]:
        if all(group.budget is None for group in groups):
            return ()
        running = budget_balance.periods(groups, read_terms(connection), now)
        charged = self._charged(connection, budget_balance.starts(running), now)
        return budget_balance.left(groups, running, charged, read_open(connection))

    def _charged(
        self, connection: Connection, starts: Collection[float], now: float
    ) -> Mapping[float, Charged]:
        last, before = connection.scalar(_LAST) or 0, self._sums
        if last < before.last or not 0 <= now - before.built_at < REBUILD_EVERY:
            before = _Sums(built_at=now, last=0, since={})
        charged: dict[float, Charged] = {}
        for since in starts:
            known = before.since.get(since)
            if known is None:
                charged[since] = charged_since(connection, since)
            elif last == before.last:
                charged[since] = known
            else:
                newer = charged_since(connection, since, after=before.last)
                sums = {name: known.get(name, 0.0) + amount for name, amount in newer.items()}
                charged[since] = {**known, **sums}
        self._sums = _Sums(built_at=before.built_at, last=last, since=charged)
        return charged


_LAST = select(func.max(ledger.c.id))


def charged_since(connection: Connection, since: float, *, after: int = 0) -> Charged:
    """Return the device-seconds charged since then, by group.

    A line that began before is counted in part.

    Args:
        after: count only lines with a greater id.
    """
    span = ledger.c.ends_at - ledger.c.starts_at
    part = case(
        (ledger.c.ends_at <= since, 0.0),
        (ledger.c.starts_at < since, (ledger.c.ends_at - since) / span),
        else_=1.0,
    )
    # An expression, because for the plain column SQLite scans a whole index in its order.
    group_name = ledger.c.group_name.concat("")
    query = select(group_name, func.sum(ledger.c.device_seconds * part)).group_by(group_name)
    # Only one of the two conditions: with both, SQLite scans the period for the few newest lines.
    newer = query.where(ledger.c.id > after if after else ledger.c.ends_at > since)
    charged: dict[str, float] = dict(connection.execute(newer).all())
    return charged


def read_open(connection: Connection) -> tuple[Open, ...]:
    """Return the running usage of every lease with devices that is not released."""
    return tuple(
        Open(
            group=row.group_name,
            devices=row.devices,
            charged_until=row.charged_until,
            until=row.granted_at + row.seconds,
        )
        for row in connection.execute(_OPEN)
    )


_OPEN = (
    select(requests.c.group_name, requests.c.devices, requests.c.seconds)
    .add_columns(leases.c.granted_at, leases.c.charged_until)
    .join_from(leases, requests)
    .where(leases.c.released_at.is_(None), requests.c.devices > 0)
)


class SqlCalendar:
    """The part of ``SqlStore`` for terms and reservations; every method is one transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def terms(self) -> tuple[Term, ...]:
        return self._transactions.read(read_terms)

    def put_term(self, term: Term, *, change: AuditEntry | None = None) -> None:
        self._transactions.write(lambda c: put_term(c, term, change))

    def remove_term(self, name: str, *, change: AuditEntry | None = None) -> bool:
        return self._transactions.write(lambda c: remove_term(c, name, change))

    def reservations(self) -> tuple[Reservation, ...]:
        return self._transactions.read(read_reservations)

    def put_reservation(
        self, reservation: Reservation, *, change: AuditEntry | None = None
    ) -> None:
        self._transactions.write(lambda c: put_reservation(c, reservation, change))

    def remove_reservation(self, name: str, *, change: AuditEntry | None = None) -> bool:
        return self._transactions.write(lambda c: remove_reservation(c, name, change))
