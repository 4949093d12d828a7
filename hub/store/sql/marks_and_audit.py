"""Marks and the audit log; functions run inside a transaction of the caller."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from ...records import edits
from ...records.audit import AuditAction, AuditEntry, ChangeFilter
from ...scheduling.model.snapshot import Mark, MarkKind
from ...scheduling.model.states import TERMINAL
from ..rules import checks
from .merkle_log.queue import GRADE_ACTIONS, queue_line
from .pool import group
from .tables.core import changes, group_teachers, groups, marks, nodes, pins, requests
from .tables.pool_rows import read_groups, read_unmarked_devices
from .tables.secrets import secrets


def remove_group(
    connection: Connection, name: str, change: AuditEntry | None, *, at: float
) -> None:
    group(connection, name)
    query = (
        select(func.count())
        .select_from(requests)
        .where(requests.c.group_name == name, requests.c.state.not_in(sorted(map(str, TERMINAL))))
    )
    checks.check_removable(name, read_groups(connection), connection.scalar(query) or 0)
    connection.execute(update(groups).where(groups.c.name == name).values(removed_at=at))
    connection.execute(delete(group_teachers).where(group_teachers.c.group_name == name))
    connection.execute(delete(pins).where(pins.c.group_name == name))
    connection.execute(delete(secrets).where(secrets.c.group_name == name))
    record_change(connection, change)


def node_names(connection: Connection) -> tuple[str, ...]:
    return tuple(sorted(connection.scalars(select(nodes.c.name))))


def put_mark(connection: Connection, mark: Mark, change: AuditEntry | None) -> None:
    checks.check_mark(mark, read_unmarked_devices(connection).values(), node_names(connection))
    _unmark(connection, mark.target, mark.kind)
    connection.execute(
        insert(marks).values(
            target=mark.target,
            kind=str(mark.kind),
            since=mark.since,
            why=mark.why,
            set_by=mark.by,
            until=mark.until,
        )
    )
    record_change(connection, change)


def remove_mark(
    connection: Connection, target: str, kind: MarkKind, change: AuditEntry | None
) -> bool:
    removed = _unmark(connection, target, kind)
    if removed:
        record_change(connection, change)
    return removed


def _unmark(connection: Connection, target: str, kind: MarkKind) -> bool:
    query = delete(marks).where(marks.c.target == target, marks.c.kind == str(kind))
    return bool(connection.execute(query).rowcount)


def record_change(connection: Connection, change: AuditEntry | None) -> None:
    """Add the audit entry of a change that this transaction makes.

    Raises:
        ChangedMeanwhile: the change is based on an older version of what it changes.
    """
    if change is not None:
        check_unchanged(connection, change)
        add_entry(connection, change)


def check_unchanged(connection: Connection, change: AuditEntry) -> None:
    """Raise ChangedMeanwhile if another change was made after the version of this request."""
    version, related = edits.current(), edits.RELATED.get(change.action)
    if version is None or related is None:
        return
    query = (
        select(changes)
        .where(changes.c.id > version.newest, changes.c.action.in_(sorted(map(str, related))))
        .order_by(changes.c.id.desc())
    )
    edits.check_unchanged(
        [
            entry
            for entry in _changes(connection.execute(query))
            if entry.id not in version.own and edits.same_thing(change, entry)
        ]
    )


def add_entry(connection: Connection, change: AuditEntry) -> None:
    """Append an entry to the audit log; all writes to the log go through here.

    An entry that decides a grade is also a line of the log that can be proved.
    """
    added = connection.execute(
        insert(changes).values(
            at=change.at,
            who=change.who,
            action=str(change.action),
            target=change.target,
            why=change.why,
            before=dict(change.before),
            after=dict(change.after),
        )
    )
    key = added.inserted_primary_key
    if change.action in GRADE_ACTIONS and key is not None:
        queue_line(connection, changes.name, key)
    version = edits.current()
    if version is not None and key is not None:
        version.own.add(key[0])


def find_changes(connection: Connection, which: ChangeFilter) -> tuple[AuditEntry, ...]:
    query = select(changes).order_by(changes.c.id.desc()).limit(max(0, which.limit))
    if which.who is not None:
        query = query.where(changes.c.who == which.who)
    if which.action is not None:
        query = query.where(changes.c.action == str(which.action))
    if which.target is not None:
        query = query.where(changes.c.target == which.target)
    if which.older_than is not None:
        query = query.where(changes.c.id < which.older_than)
    return tuple(_changes(connection.execute(query)))


def _changes(rows: Iterable[Row[*tuple[object, ...]]]) -> Iterable[AuditEntry]:
    for row in rows:
        yield AuditEntry(
            id=row.id,
            at=row.at,
            who=row.who,
            action=AuditAction(row.action),
            target=row.target,
            why=row.why,
            before=row.before,
            after=row.after,
        )
