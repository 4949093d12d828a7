"""The store of leaderboards in SQL; each method is one transaction on the service's database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, insert, select, update

from ...hub.records.audit import AuditEntry
from ...hub.store.sql.marks_and_audit import record_change
from ...hub.store.sql.merkle_log.queue import PRIVATE_SCORES, queue_line
from ...hub.store.sql.tables.courses import assignments, leaderboard_entries, leaderboards
from ...hub.store.sql.transactions import Transactions
from ...hub.store.sql.upserts import put_row
from ..model.leaderboards import EntryCounts, EntryOutcome, Leaderboard, LeaderboardEntry
from . import rows
from .not_found import no_assignment


class SqlLeaderboardStore:
    """A ``LeaderboardStore`` on ``SqlStore.transactions``; usable from any thread."""

    def __init__(self, transactions: Transactions) -> None:
        self._read = transactions.read
        self._write = transactions.write

    def rule(self, course: str, assignment: str) -> Leaderboard | None:
        table = leaderboards.c
        query = select(leaderboards).where(table.course == course, table.assignment == assignment)
        found = self._read(lambda c: c.execute(query).first())
        if found is None:
            return None
        return Leaderboard(**{**found._mapping, "files": rows.folder(found.files)})

    def put_rule(self, rule: Leaderboard, *, change: AuditEntry | None = None) -> None:
        def work(connection: Connection) -> None:
            known = (assignments.c.course == rule.course, assignments.c.name == rule.assignment)
            if connection.scalar(select(func.count()).where(*known)) == 0:
                raise no_assignment(rule.course, rule.assignment)
            values = asdict(rule) | {"files": rows.folder_data(rule.files)}
            put_row(connection, leaderboards, values, "course", "assignment")
            record_change(connection, change)

        self._write(work)

    def entries(
        self, course: str, assignment: str, person: str | None = None
    ) -> Sequence[LeaderboardEntry]:
        table = leaderboard_entries.c
        which = [table.course == course, table.assignment == assignment]
        if person is not None:
            which.append(table.person == person)
        query = select(leaderboard_entries).where(*which)
        query = query.order_by(table.sent_at.desc(), table.id.desc())
        return [_entry(row) for row in self._read(lambda c: c.execute(query).all())]

    def waiting_in(self, course: str, assignment: str) -> Sequence[LeaderboardEntry]:
        table = leaderboard_entries.c
        query = select(leaderboard_entries).where(*_waiting(course, assignment))
        query = query.order_by(table.sent_at.desc(), table.id.desc())
        return [_entry(row) for row in self._read(lambda c: c.execute(query).all())]

    def counts(self, course: str, assignment: str) -> EntryCounts:
        table, count = leaderboard_entries.c, select(func.count()).select_from(leaderboard_entries)
        sent = count.where(table.course == course, table.assignment == assignment)
        waiting = count.where(*_waiting(course, assignment))
        return self._read(
            lambda c: EntryCounts(sent=c.scalar(sent) or 0, waiting=c.scalar(waiting) or 0)
        )

    def add(self, *entries: LeaderboardEntry, change: AuditEntry | None = None) -> None:
        def work(connection: Connection) -> None:
            for entry in entries:
                connection.execute(insert(leaderboard_entries).values(_values(entry)))
                _queue_lines(connection, entry)
            record_change(connection, change)

        self._write(work)

    def waiting(self) -> Sequence[tuple[str, str]]:
        table = leaderboard_entries.c
        query = select(table.course, table.assignment).distinct()
        query = query.where(table.outcome == str(EntryOutcome.WAITING))
        query = query.order_by(table.course, table.assignment)
        return [
            (row.course, row.assignment) for row in self._read(lambda c: c.execute(query).all())
        ]

    def change_waiting(self, entries: Sequence[LeaderboardEntry]) -> None:
        table = leaderboard_entries.c

        def work(connection: Connection) -> None:
            for entry in entries:
                waiting = table.id == entry.id, table.outcome == str(EntryOutcome.WAITING)
                change = update(leaderboard_entries).where(*waiting).values(_values(entry))
                if connection.execute(change).rowcount:
                    _queue_lines(connection, entry)

        self._write(work)


def _queue_lines(connection: Connection, entry: LeaderboardEntry) -> None:
    """Queue a submission with a verdict for the log."""
    if entry.outcome is EntryOutcome.WAITING:
        return
    queue_line(connection, leaderboard_entries.name, (entry.id,))
    if entry.private is not None:
        queue_line(connection, PRIVATE_SCORES, (entry.id,))


def _waiting(course: str, assignment: str) -> tuple[ColumnElement[bool], ...]:
    table = leaderboard_entries.c
    return (
        table.outcome == str(EntryOutcome.WAITING),
        table.course == course,
        table.assignment == assignment,
    )


def _values(entry: LeaderboardEntry) -> dict[str, object]:
    return asdict(entry) | {"outcome": str(entry.outcome)}


def _entry(row: Row[Any]) -> LeaderboardEntry:
    return LeaderboardEntry(**{**row._mapping, "outcome": EntryOutcome(row.outcome)})
