"""Terms, reservations and what budgets have left: each function is inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, time

from sqlalchemy import Connection, case, delete, func, insert, select, update

from ...ports.audit import Change
from ...ports.calendar import Reservation, Term
from ...scheduling.model import Group, Left
from .. import budgets, pool
from ..tables import ledger, requests, reservations, terms
from .administration import note
from .pool import group
from .reading import live_leases
from .rows import REQUESTS, read_requests


def read_terms(connection: Connection) -> tuple[Term, ...]:
    rows = connection.execute(select(terms).order_by(terms.c.first)).all()
    return tuple(
        Term(name=row.name, first=date.fromisoformat(row.first), last=date.fromisoformat(row.last))
        for row in rows
    )


def put_term(connection: Connection, term: Term, change: Change | None) -> None:
    pool.check_term(term, read_terms(connection))
    columns = {"first": term.first.isoformat(), "last": term.last.isoformat()}
    done = connection.execute(update(terms).where(terms.c.name == term.name).values(columns))
    if not done.rowcount:
        connection.execute(insert(terms).values(name=term.name, **columns))
    note(connection, change)


def remove_term(connection: Connection, name: str, change: Change | None) -> bool:
    removed = connection.execute(delete(terms).where(terms.c.name == name)).rowcount
    note(connection, change if removed else None)
    return bool(removed)


def read_reservations(connection: Connection) -> tuple[Reservation, ...]:
    query = select(reservations).order_by(reservations.c.first, reservations.c.id)
    return tuple(
        Reservation(
            id=row.id,
            group=row.group_name,
            devices=row.devices,
            weekday=row.weekday,
            begins=time.fromisoformat(row.begins),
            ends=time.fromisoformat(row.ends),
            zone=row.zone,
            first=date.fromisoformat(row.first),
            last=date.fromisoformat(row.last),
            why=row.why,
        )
        for row in connection.execute(query)
    )


def put_reservation(connection: Connection, new: Reservation, change: Change | None) -> None:
    group(connection, new.group)
    connection.execute(delete(reservations).where(reservations.c.id == new.id))
    connection.execute(
        insert(reservations).values(
            id=new.id,
            group_name=new.group,
            devices=new.devices,
            weekday=new.weekday,
            begins=new.begins.isoformat(),
            ends=new.ends.isoformat(),
            zone=new.zone,
            first=new.first.isoformat(),
            last=new.last.isoformat(),
            why=new.why,
        )
    )
    note(connection, change)


def remove_reservation(connection: Connection, name: str, change: Change | None) -> bool:
    removed = connection.execute(delete(reservations).where(reservations.c.id == name)).rowcount
    note(connection, change if removed else None)
    return bool(removed)


class Budgets:
    """What groups used in their periods, kept until the ledger grows."""

    def __init__(self) -> None:
        # One value, replaced as a whole: several threads may read.
        self._last: tuple[int, dict[float, Mapping[str, float]]] = (0, {})

    def read(self, connection: Connection, groups: Sequence[Group], now: float) -> tuple[Left, ...]:
        if all(group.budget is None for group in groups):
            return ()
        began = budgets.periods(groups, read_terms(connection), now)
        if not began:
            return ()
        last = connection.scalar(select(func.max(ledger.c.id))) or 0
        known = self._last[1] if self._last[0] == last else {}
        since = {start for start in began.values() if start is not None}
        charged = {at: known.get(at) or charged_since(connection, at) for at in since}
        self._last = (last, charged)
        leases = live_leases(connection)
        names = [lease.request_id for lease in leases]
        found = read_requests(connection, REQUESTS.where(requests.c.id.in_(names)))
        of_request = {request.id: request for request in found}
        running = [(of_request[lease.request_id], lease) for lease in leases]
        return budgets.left(groups, began, charged, running)


def charged_since(connection: Connection, since: float) -> Mapping[str, float]:
    """Device-seconds by group; of a line that began before, what came after."""
    span = ledger.c.ends_at - ledger.c.starts_at
    part = case((ledger.c.starts_at < since, (ledger.c.ends_at - since) / span), else_=1.0)
    # As a column it would tempt SQLite to go through a whole index that is in its order.
    of_group = ledger.c.group_name.concat("")
    query = (
        select(of_group, func.sum(ledger.c.device_seconds * part))
        .where(ledger.c.ends_at > since)
        .group_by(of_group)
    )
    found: dict[str, float] = dict(connection.execute(query).all())
    return found
