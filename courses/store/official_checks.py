"""The store of official checks in SQL; each method is one transaction on the service's database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from ...hub.records.audit import AuditEntry
from ...hub.store.sql.marks_and_audit import record_change
from ...hub.store.sql.tables.courses import assignments, official_check_rules, official_checks
from ...hub.store.sql.transactions import Transactions
from ...hub.store.sql.upserts import put_row
from ..model.official_checks import CheckOutcome, OfficialCheck, OfficialCheckRule
from .not_found import no_assignment


class SqlOfficialCheckStore:
    """An ``OfficialCheckStore`` on ``SqlStore.transactions``; usable from any thread."""

    def __init__(self, transactions: Transactions) -> None:
        self._read = transactions.read
        self._write = transactions.write

    def rule(self, course: str, assignment: str) -> OfficialCheckRule | None:
        table = official_check_rules.c
        query = select(official_check_rules).where(
            table.course == course, table.assignment == assignment
        )
        found = self._read(lambda c: c.execute(query).first())
        return None if found is None else OfficialCheckRule(**found._mapping)

    def put_rule(self, rule: OfficialCheckRule, *, change: AuditEntry | None = None) -> None:
        def work(connection: Connection) -> None:
            known = (assignments.c.course == rule.course, assignments.c.name == rule.assignment)
            if connection.scalar(select(func.count()).where(*known)) == 0:
                raise no_assignment(rule.course, rule.assignment)
            put_row(connection, official_check_rules, asdict(rule), "course", "assignment")
            record_change(connection, change)

        self._write(work)

    def remove_rule(
        self, course: str, assignment: str, *, change: AuditEntry | None = None
    ) -> None:
        def work(connection: Connection) -> None:
            table = official_check_rules.c
            this = table.course == course, table.assignment == assignment
            connection.execute(delete(official_check_rules).where(*this))
            record_change(connection, change)

        self._write(work)

    def checks(
        self, course: str, assignment: str, person: str | None = None
    ) -> Sequence[OfficialCheck]:
        table = official_checks.c
        which = [table.course == course, table.assignment == assignment]
        if person is not None:
            which.append(table.person == person)
        query = select(official_checks).where(*which)
        query = query.order_by(table.asked_at.desc(), table.request.desc())
        return [_check(row) for row in self._read(lambda c: c.execute(query).all())]

    def add(self, check: OfficialCheck) -> None:
        self._write(lambda c: c.execute(insert(official_checks).values(_values(check))))

    def end(self, check: OfficialCheck) -> bool:
        change = (
            update(official_checks)
            .where(
                official_checks.c.request == check.request,
                official_checks.c.outcome == str(CheckOutcome.LIVE),
            )
            .values(_values(check))
        )
        return bool(self._write(lambda c: c.execute(change).rowcount))


def _values(check: OfficialCheck) -> dict[str, object]:
    cells = [list(cell) for cell in check.cells]
    return asdict(check) | {"outcome": str(check.outcome), "cells": cells}


def _check(row: Row[Any]) -> OfficialCheck:
    cells = tuple((notebook, cell, word) for notebook, cell, word in row.cells)
    return OfficialCheck(
        **{**row._mapping, "outcome": CheckOutcome(row.outcome), "cells": cells},
    )
