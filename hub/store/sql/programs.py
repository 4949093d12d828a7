"""Programs, their jobs, and the budget check at the submission of a job.

A job is stored in the same transaction in which the budget of its program is checked, so that
submissions at the same time cannot exceed it together, and none succeeds after a revocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import (
    Connection,
    Double,
    Row,
    bindparam,
    cast,
    func,
    insert,
    select,
    update,
)

from ...errors import Conflict, Forbidden, NotFound, OverMaximum
from ...records.audit import AuditAction, AuditEntry
from ...records.identity import Program, ProgramCharge, ProgramJob, ProgramUsage
from ..rules.program_budget import over_budget
from .marks_and_audit import record_change
from .tables.core import lease_devices, leases, ledger, program_jobs, programs, requests
from .transactions import Transactions

_WAITS = program_jobs.c.needs_approval & program_jobs.c.approved_at.is_(None)


class SqlPrograms:
    """The part of ``SqlStore`` for programs; every method is one transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def add_program(
        self, program: Program, token_hash: str, *, most: int, change: AuditEntry | None = None
    ) -> None:
        self._transactions.write(lambda c: add(c, program, token_hash, most, change))

    def program_of_token(self, token_hash: str) -> Program | None:
        query = select(programs).where(programs.c.token_hash == token_hash)
        row = self._transactions.read(lambda c: c.execute(query).first())
        return None if row is None else _program(row)

    def programs(self, owner: str | None) -> tuple[Program, ...]:
        query = select(programs).order_by(programs.c.created_at.desc(), programs.c.id)
        if owner is not None:
            query = query.where(programs.c.owner == owner)
        return self._transactions.read(lambda c: tuple(map(_program, c.execute(query))))

    def program(self, program_id: str) -> Program:
        return self._transactions.read(lambda c: read(c, program_id))

    def program_usage(self, program_ids: frozenset[str], now: float) -> Mapping[str, ProgramUsage]:
        return self._transactions.read(
            lambda c: {
                each: replace(usage(c, each, now), jobs=c.scalar(_COUNT, {"program": each}) or 0)
                for each in program_ids
            }
        )

    def programs_used(self, program_ids: frozenset[str], now: float) -> Mapping[str, float]:
        return self._transactions.read(lambda c: {each: used(c, each, now) for each in program_ids})

    def revoke_program(
        self, program_id: str, *, by: str, now: float, change: AuditEntry | None = None
    ) -> bool:
        return self._transactions.write(lambda c: revoke(c, program_id, by, now, change))

    def program_jobs(self) -> tuple[ProgramJob, ...]:
        return self._transactions.read(live_jobs)

    def approve_job(self, request_id: str, *, now: float, change: AuditEntry | None = None) -> bool:
        return self._transactions.write(lambda c: approve(c, request_id, now, change))


def add(
    connection: Connection,
    program: Program,
    token_hash: str,
    most: int,
    change: AuditEntry | None,
) -> None:
    query = select(programs).where(programs.c.owner == program.owner)
    known = [each for row in connection.execute(query) if (each := _program(row))]
    working = [each for each in known if each.works(program.created_at)]
    if any(each.name == program.name for each in working):
        raise Conflict(
            f"There is a program {program.name} already.",
            accepted="Choose another name.",
        )
    if any(each.name == program.name for each in known):
        # Its jobs are known by this name: a program of the same name could read and cancel them.
        raise Conflict(
            f"You had a program {program.name} before, and its jobs belong to that name.",
            accepted="Choose a name that you have not used.",
        )
    if len(working) >= most:
        raise OverMaximum(
            f"You have {most} programs already.", accepted="Revoke one of them first."
        )
    columns = (column.name for column in programs.c if column.name != "token_hash")
    values = {name: getattr(program, name) for name in columns}
    connection.execute(insert(programs).values(token_hash=token_hash, **values))
    record_change(connection, change)


def read(connection: Connection, program_id: str) -> Program:
    query = select(programs).where(programs.c.id == program_id).with_for_update()
    row = connection.execute(query).first()
    if row is None:
        raise NotFound(
            f"There is no program {program_id[:40]!r}.", accepted="`carrel token ls` lists yours."
        )
    return _program(row)


def charge(connection: Connection, request_id: str, charged: ProgramCharge, now: float) -> None:
    """Record the job of a program, which this transaction has stored.

    Raises:
        Forbidden: the program was revoked, or has expired.
        OverMaximum: the job may use more than what is left of the budget.
    """
    program = read(connection, charged.program.id)
    if not program.works(now):
        raise Forbidden(f"The token of the program {program.name} is no longer valid.")
    before = usage(connection, program.id, now)
    if before.committed + charged.device_seconds > program.device_seconds:
        raise over_budget(program, before, charged.device_seconds)
    connection.execute(
        insert(program_jobs).values(
            request_id=request_id,
            program=program.id,
            needs_approval=charged.needs_approval,
        )
    )
    change = AuditEntry(
        at=now,
        who=program.owner,
        action=AuditAction.PROGRAM_SUBMIT,
        target=request_id,
        after={"program": program.name, "device_seconds": charged.device_seconds},
    )
    record_change(connection, change)


def usage(connection: Connection, program_id: str, now: float) -> ProgramUsage:
    """Return the budget of a program; its jobs are not counted."""
    program = {"program": program_id}
    charged = connection.scalar(_CHARGED, program) or 0.0
    running = connection.execute(_RUNNING, program).all()
    live = connection.execute(_LIVE_JOBS, program).one()
    # The time limit covers the attempt that runs, and replaces what it was charged so far.
    replaced = sum(each.charged or 0.0 for each in running)
    return ProgramUsage(
        used=charged + _held(running, now),
        committed=charged + (live.limits or 0.0) - replaced,
        live=live.jobs,
    )


def used(connection: Connection, program_id: str, now: float) -> float:
    """Return what a program has used, as in ``ProgramUsage``, without its queued jobs."""
    program = {"program": program_id}
    charged = connection.scalar(_CHARGED, program) or 0.0
    return float(charged + _held(connection.execute(_RUNNING, program), now))


def _held(running: Iterable[Any], now: float) -> float:
    """Return the device-seconds of leases that were not charged yet, of rows of ``_RUNNING``."""
    return float(sum(each.devices * max(0.0, now - each.charged_until) for each in running))


_OF_PROGRAM = program_jobs.c.program == bindparam("program")
_COUNT = select(func.count()).select_from(program_jobs).where(_OF_PROGRAM)
_CHARGED = (
    select(func.sum(ledger.c.device_seconds))
    .join_from(program_jobs, ledger, ledger.c.request_id == program_jobs.c.request_id)
    .where(_OF_PROGRAM)
)
# Not of integers, whose product would be too large for PostgreSQL.
_LIMIT = requests.c.devices * cast(requests.c.seconds, Double)
_LIVE_JOBS = (
    select(func.count().label("jobs"), func.sum(_LIMIT).label("limits"))
    .join_from(requests, program_jobs, program_jobs.c.request_id == requests.c.id)
    .where(_OF_PROGRAM, requests.c.ended_at.is_(None))
)
_NOT_RELEASED = leases.c.released_at.is_(None)
# The leases of live jobs that are not released, what they were charged, and since when they were
# not.
_RUNNING = (
    select(
        leases.c.charged_until,
        select(func.count())
        .where(lease_devices.c.lease_id == leases.c.id)
        .scalar_subquery()
        .label("devices"),
        select(func.sum(ledger.c.device_seconds))
        .where(ledger.c.lease_id == leases.c.id)
        .scalar_subquery()
        .label("charged"),
    )
    .join_from(leases, program_jobs, program_jobs.c.request_id == leases.c.request_id)
    .join(requests, requests.c.id == leases.c.request_id)
    .where(_OF_PROGRAM, _NOT_RELEASED, requests.c.ended_at.is_(None))
)
_HOLDS = (requests.c.devices > 0) & (
    select(leases.c.id).where(leases.c.request_id == requests.c.id, _NOT_RELEASED).exists()
)
_ANY_PROGRAM = select(programs.c.id).limit(1)
# Sorted by its reader: with ORDER BY, SQLite reads all requests in their order, ended ones too.
_LIVE = (
    select(
        programs,
        program_jobs.c.request_id,
        _WAITS.label("waits"),
        _HOLDS.label("holds"),
        requests.c.submitted_at,
        requests.c.number,
    )
    .join_from(requests, program_jobs, program_jobs.c.request_id == requests.c.id)
    .join(programs, programs.c.id == program_jobs.c.program)
    .where(requests.c.ended_at.is_(None))
)


def revoke(
    connection: Connection, program_id: str, by: str, now: float, change: AuditEntry | None
) -> bool:
    query = (
        update(programs)
        .where(programs.c.id == program_id, programs.c.revoked_at.is_(None))
        .values(revoked_at=now, revoked_by=by)
    )
    if not connection.execute(query).rowcount:
        return False
    record_change(connection, change)
    return True


def live_jobs(connection: Connection) -> tuple[ProgramJob, ...]:
    if connection.scalar(_ANY_PROGRAM) is None:
        return ()
    return tuple(
        ProgramJob(
            request_id=row.request_id,
            program=_program(row),
            submitted_at=row.submitted_at,
            waits=row.waits,
            holds=row.holds,
        )
        for row in sorted(connection.execute(_LIVE), key=lambda row: row.number)
    )


def approve(connection: Connection, request_id: str, now: float, change: AuditEntry | None) -> bool:
    query = (
        update(program_jobs)
        .where(program_jobs.c.request_id == request_id, _WAITS)
        .values(approved_at=now)
    )
    if not connection.execute(query).rowcount:
        return False
    record_change(connection, change)
    return True


def _program(row: Row[tuple[object, ...]]) -> Program:
    values = row._mapping
    names = (column.name for column in programs.c if column.name != "token_hash")
    return Program(**{name: values[name] for name in names})
