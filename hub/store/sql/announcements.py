"""Announcements, and the users who have closed them."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import Connection, Row, delete, insert, select

from ...errors import NotFound
from ...records.announcements import AnnouncementRecord
from ...records.audit import AuditEntry
from ...schemas.announcements import AnnouncementLevel
from .marks_and_audit import record_change
from .tables.core import announcements, closed_announcements
from .transactions import Transactions
from .upserts import insert_new


class SqlAnnouncements:
    """The part of ``SqlStore`` for announcements; every method is one transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def announcements(self, *, ended_after: float) -> tuple[AnnouncementRecord, ...]:
        return self._transactions.read(lambda c: read(c, ended_after))

    def announcements_for(self, person: str, now: float) -> tuple[AnnouncementRecord, ...]:
        return self._transactions.read(lambda c: read_for(c, person, now))

    def add_announcement(
        self, announcement: AnnouncementRecord, *, change: AuditEntry | None = None
    ) -> None:
        self._transactions.write(lambda c: add(c, announcement, change))

    def remove_announcement(self, name: str, *, change: AuditEntry | None = None) -> bool:
        return self._transactions.write(lambda c: remove(c, name, change))

    def close_announcement(self, name: str, person: str) -> None:
        self._transactions.write(lambda c: close(c, name, person))


def read(connection: Connection, ended_after: float) -> tuple[AnnouncementRecord, ...]:
    query = select(announcements).where(announcements.c.ends_at > ended_after)
    query = query.order_by(announcements.c.starts_at, announcements.c.id)
    return tuple(map(_announcement, connection.execute(query)))


def read_for(connection: Connection, person: str, now: float) -> tuple[AnnouncementRecord, ...]:
    closed = select(closed_announcements.c.announcement).where(
        closed_announcements.c.person == person
    )
    query = (
        select(announcements)
        .where(
            announcements.c.starts_at <= now,
            announcements.c.ends_at > now,
            announcements.c.id.not_in(closed),
        )
        .order_by(announcements.c.starts_at, announcements.c.id)
    )
    return tuple(map(_announcement, connection.execute(query)))


def add(
    connection: Connection, announcement: AnnouncementRecord, change: AuditEntry | None
) -> None:
    values = asdict(announcement) | {"level": str(announcement.level)}
    connection.execute(insert(announcements).values(**values))
    record_change(connection, change)


def remove(connection: Connection, name: str, change: AuditEntry | None) -> bool:
    # Until the end of the transaction, no one can close it.
    connection.execute(
        select(announcements.c.id).where(announcements.c.id == name).with_for_update()
    )
    connection.execute(
        delete(closed_announcements).where(closed_announcements.c.announcement == name)
    )
    gone = connection.execute(delete(announcements).where(announcements.c.id == name))
    if gone.rowcount:
        record_change(connection, change)
    return bool(gone.rowcount)


def close(connection: Connection, name: str, person: str) -> None:
    if insert_new(connection, closed_announcements, {"announcement": name, "person": person}):
        return
    # It is closed already, or there is none.
    if connection.scalar(select(announcements.c.id).where(announcements.c.id == name)) is None:
        raise NotFound(f"There is no announcement {name[:40]!r}.")


def _announcement(row: Row[tuple[object, ...]]) -> AnnouncementRecord:
    values = dict(row._mapping)
    level = AnnouncementLevel(values.pop("level"))
    return AnnouncementRecord(**values, level=level)
