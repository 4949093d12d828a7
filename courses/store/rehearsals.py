"""The store of rehearsals in SQL; each method is one transaction on the service's database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import Connection, insert, select, update

from ...hub.records.audit import AuditEntry
from ...hub.store.sql.marks_and_audit import record_change
from ...hub.store.sql.tables.courses import courses, rehearsal_jobs, rehearsals
from ...hub.store.sql.transactions import Transactions
from ..model.rehearsals import Rehearsal, RehearsalJob
from .not_found import no_course


class SqlRehearsalStore:
    """A ``RehearsalStore`` on ``SqlStore.transactions``; usable from any thread."""

    def __init__(self, transactions: Transactions) -> None:
        self._read = transactions.read
        self._write = transactions.write

    def add(self, rehearsal: Rehearsal, *, change: AuditEntry | None = None) -> None:
        def work(connection: Connection) -> None:
            if connection.scalar(select(courses).where(courses.c.name == rehearsal.course)) is None:
                raise no_course(rehearsal.course)
            values = asdict(rehearsal)
            jobs = values.pop("jobs")
            connection.execute(insert(rehearsals).values(values))
            for number, job in enumerate(jobs):
                row = {**job, "rehearsal": rehearsal.id, "number": number}
                connection.execute(insert(rehearsal_jobs).values(row))
            record_change(connection, change)

        self._write(work)

    def newest(self, course: str, most: int) -> Sequence[Rehearsal]:
        which = (
            select(rehearsals)
            .where(rehearsals.c.course == course)
            .order_by(rehearsals.c.asked_at.desc(), rehearsals.c.id.desc())
            .limit(most)
        )

        def work(connection: Connection) -> list[Rehearsal]:
            return [_read(connection, row._asdict()) for row in connection.execute(which).all()]

        return self._read(work)

    def put_result(self, request: str, *, result: str = "", why_not: str = "") -> None:
        table = rehearsal_jobs.c
        change = (
            update(rehearsal_jobs)
            .where(table.request == request, table.result == "", table.why_not == "")
            .values(result=result, why_not=why_not)
        )
        self._write(lambda c: c.execute(change))


def _read(connection: Connection, values: dict[str, str]) -> Rehearsal:
    query = (
        select(rehearsal_jobs)
        .where(rehearsal_jobs.c.rehearsal == values["id"])
        .order_by(rehearsal_jobs.c.number)
    )
    jobs = []
    for row in connection.execute(query).all():
        job = row._asdict()
        del job["rehearsal"], job["number"]
        jobs.append(RehearsalJob(**job))
    return Rehearsal(**values, jobs=tuple(jobs))  # type: ignore[arg-type]  # one row of its table
