"""The store of prefixes in SQL; each method is one transaction on the service's database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from ...hub.records.audit import AuditEntry
from ...hub.store.sql.marks_and_audit import record_change
from ...hub.store.sql.tables.courses import assignments, prefix_switches, prefix_uses, prefixes
from ...hub.store.sql.transactions import Transactions
from ...hub.store.sql.upserts import put_row
from ..model.prefixes import Prefix, PrefixOffer, PrefixSavings, PrefixSwitch
from .not_found import no_assignment


class SqlPrefixStore:
    """A ``PrefixStore`` on ``SqlStore.transactions``; usable from any thread."""

    def __init__(self, transactions: Transactions) -> None:
        self._read = transactions.read
        self._write = transactions.write

    def switches(self, course: str) -> tuple[PrefixSwitch, ...]:
        query = select(prefix_switches).where(prefix_switches.c.course == course)
        found = self._read(lambda c: c.execute(query).all())
        switches = (PrefixSwitch(**row._mapping) for row in found)
        return tuple(sorted(switches, key=lambda each: each.assignment))

    def switch_on(self, switch: PrefixSwitch, *, change: AuditEntry | None = None) -> None:
        def work(connection: Connection) -> None:
            known = (assignments.c.course == switch.course, assignments.c.name == switch.assignment)
            if connection.scalar(select(func.count()).where(*known)) == 0:
                raise no_assignment(switch.course, switch.assignment)
            put_row(connection, prefix_switches, asdict(switch), "course", "assignment")
            record_change(connection, change)

        self._write(work)

    def switch_off(self, course: str, assignment: str, *, change: AuditEntry | None = None) -> None:
        def work(connection: Connection) -> None:
            table = prefix_switches.c
            connection.execute(
                delete(prefix_switches).where(
                    table.course == course, table.assignment == assignment
                )
            )
            record_change(connection, change)

        self._write(work)

    def prefixes(self, course: str, assignment: str) -> tuple[Prefix, ...]:
        query = (
            select(prefixes)
            .where(prefixes.c.course == course, prefixes.c.assignment == assignment)
            .order_by(prefixes.c.submitted_at, prefixes.c.request)
        )
        return tuple(map(_prefix, self._read(lambda c: c.execute(query).all())))

    def put(self, prefix: Prefix) -> None:
        values = asdict(prefix) | {"models": list(prefix.models)}
        self._write(lambda c: put_row(c, prefixes, values, "request"))

    def remove(self, request: str) -> None:
        self._write(lambda c: c.execute(delete(prefixes).where(prefixes.c.request == request)))

    def add_offer(self, offer: PrefixOffer) -> None:
        def work(connection: Connection) -> None:
            this = prefix_uses.c.request == offer.request, prefix_uses.c.epoch == offer.epoch
            connection.execute(delete(prefix_uses).where(*this, prefix_uses.c.used_at.is_(None)))
            if connection.scalar(select(func.count()).where(*this)) == 0:
                connection.execute(insert(prefix_uses).values(asdict(offer)))

        self._write(work)

    def use(self, request: str, epoch: int, *, now: float) -> bool:
        change = (
            update(prefix_uses)
            .where(
                prefix_uses.c.request == request,
                prefix_uses.c.epoch == epoch,
                prefix_uses.c.used_at.is_(None),
            )
            .values(used_at=now)
        )
        return bool(self._write(lambda c: c.execute(change).rowcount))

    def savings(self, course: str) -> Mapping[str, PrefixSavings]:
        table = prefix_uses.c
        query = (
            select(
                table.assignment,
                func.count(table.request.distinct()),
                func.sum(table.seconds),
                func.sum(table.seconds * table.devices),
            )
            .where(table.course == course, table.used_at.is_not(None))
            .group_by(table.assignment)
        )
        found = self._read(lambda c: c.execute(query).all())
        return {
            name: PrefixSavings(jobs=jobs, seconds=seconds, device_seconds=device_seconds)
            for name, jobs, seconds, device_seconds in found
        }


def _prefix(row: Row[Any]) -> Prefix:
    return Prefix(**{**row._mapping, "models": tuple(row.models)})
