"""Schedules and the bodies of their jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from ...errors import NotFound, OverMaximum
from ...records.schedules import Schedule, ScheduleState
from .tables.core import schedules
from .transactions import Transactions

_COLUMNS = tuple(column for column in schedules.c if column.name not in {"number", "job"})


class SqlSchedules:
    """The part of ``SqlStore`` for schedules; every method is one transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def add_schedule(self, new: Schedule, job: str, *, most: int) -> Schedule:
        return self._transactions.write(lambda c: add(c, new, job, most))

    def schedule(self, schedule_id: str) -> Schedule:
        return self._transactions.read(lambda c: read(c, schedule_id))

    def schedule_job(self, schedule_id: str) -> str:
        return self._transactions.read(lambda c: read_job(c, schedule_id))

    def schedules(self, owner: str) -> tuple[Schedule, ...]:
        return self._transactions.read(lambda c: read_of(c, owner))

    def schedules_of_course(self, course: str) -> tuple[Schedule, ...]:
        return self._transactions.read(lambda c: read_of_course(c, course))

    def due_schedules(self, now: float) -> tuple[Schedule, ...]:
        return self._transactions.read(lambda c: read_due(c, now))

    def update_schedule(self, schedule_id: str, change: Callable[[Schedule], Schedule]) -> Schedule:
        return self._transactions.write(lambda c: replace(c, schedule_id, change))

    def remove_schedule(self, schedule_id: str) -> bool:
        query = delete(schedules).where(schedules.c.id == schedule_id)
        return self._transactions.write(lambda c: bool(c.execute(query).rowcount))

    def remove_schedules_of(self, owner: str) -> int:
        query = delete(schedules).where(schedules.c.owner == owner, schedules.c.course == "")
        return self._transactions.write(lambda c: int(c.execute(query).rowcount))


def add(connection: Connection, new: Schedule, job: str, most: int) -> Schedule:
    repeated = connection.execute(
        select(*_COLUMNS).where(
            schedules.c.owner == new.owner, schedules.c.idempotency_key == new.idempotency_key
        )
    ).first()
    if repeated is not None:
        return _schedule(repeated)
    of_owner = select(func.count()).where(schedules.c.owner == new.owner)
    if (connection.scalar(of_owner) or 0) >= most:
        raise OverMaximum(
            f"You have {most} schedule{'s' * (most != 1)}, which is the maximum.",
            accepted="Remove one that you do not need any more.",
        )
    connection.execute(insert(schedules).values(**_values(new), job=job))
    return new


def read(connection: Connection, schedule_id: str) -> Schedule:
    row = connection.execute(select(*_COLUMNS).where(schedules.c.id == schedule_id)).first()
    if row is None:
        raise _missing(schedule_id)
    return _schedule(row)


def read_job(connection: Connection, schedule_id: str) -> str:
    job = connection.scalar(select(schedules.c.job).where(schedules.c.id == schedule_id))
    if job is None:
        raise _missing(schedule_id)
    return str(job)


def read_of(connection: Connection, owner: str) -> tuple[Schedule, ...]:
    query = select(*_COLUMNS).where(schedules.c.owner == owner).order_by(schedules.c.number)
    return tuple(map(_schedule, connection.execute(query)))


def read_of_course(connection: Connection, course: str) -> tuple[Schedule, ...]:
    query = select(*_COLUMNS).where(schedules.c.course == course).order_by(schedules.c.number)
    return tuple(map(_schedule, connection.execute(query)))


def read_due(connection: Connection, now: float) -> tuple[Schedule, ...]:
    # Paused schedules have no next time.
    query = select(*_COLUMNS).where(schedules.c.next_at <= now)
    query = query.order_by(schedules.c.next_at, schedules.c.number)
    return tuple(map(_schedule, connection.execute(query)))


def replace(
    connection: Connection, schedule_id: str, change: Callable[[Schedule], Schedule]
) -> Schedule:
    changed = change(read(connection, schedule_id))
    query = update(schedules).where(schedules.c.id == schedule_id)
    connection.execute(query.values(**_values(changed)))
    return changed


def _values(schedule: Schedule) -> dict[str, object]:
    values = asdict(schedule)
    values["group_name"] = values.pop("group")
    return values | {"state": str(schedule.state)}


def _schedule(row: Row[tuple[object, ...]]) -> Schedule:
    values = dict(row._mapping)
    group, state = values.pop("group_name"), ScheduleState(values.pop("state"))
    return Schedule(**values, group=group, state=state)


def _missing(schedule_id: str) -> NotFound:
    return NotFound(
        f"There is no schedule {schedule_id[:80]!r} of yours.",
        accepted="List your schedules with: carrel schedule list",
    )
