"""Writes that meet the row of another writer, which a database with several writers allows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from carrel.courses.model.records import Assignment, Course, Fetched
from carrel.hub.records.announcements import AnnouncementRecord
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.schemas.announcements import AnnouncementLevel
from carrel.hub.store.sql.tables.core import closed_announcements
from carrel.hub.store.sql.tables.courses import fetches

from ....stores import new_course_store, new_store


@contextmanager
def another_writer(table: sa.Table, **values: object) -> Iterator[None]:
    """Insert a row in the transaction under test, between its look-up and its own insertion."""
    left = [table.insert().values(values)]

    def write(connection: sa.Connection, *_: object) -> None:
        if left:
            connection.execute(left.pop())

    def before(connection: sa.Connection, _cursor: object, sql: str, *_: object) -> None:
        if sql.startswith(f"INSERT INTO {table.name}"):
            write(connection)

    sa.event.listen(sa.Engine, "savepoint", write)
    sa.event.listen(sa.Engine, "before_cursor_execute", before)
    try:
        yield
    finally:
        sa.event.remove(sa.Engine, "savepoint", write)
        sa.event.remove(sa.Engine, "before_cursor_execute", before)
    assert not left


def test_an_announcement_is_closed_twice_at_once() -> None:
    store = new_store()
    maintenance = AnnouncementRecord(
        id="a-1", text="!", level=AnnouncementLevel.INFO, starts_at=0.0, ends_at=9.0, author="admin"
    )
    store.add_announcement(maintenance)
    with another_writer(closed_announcements, announcement="a-1", person="ada"):
        store.close_announcement("a-1", "ada")
    store.close_announcement("a-1", "ada")
    assert store.announcements_for("ada", 1.0) == ()
    store.close()


def test_the_last_of_two_values_that_are_stored_at_once_is_kept() -> None:
    store = new_store()
    store.put_group(Group(name="cs101", max_devices=1, max_devices_per_user=1))
    courses = new_course_store(store)
    courses.put_course(Course(name="cs101", created_at=0.0, created_by="admin"))
    courses.put_assignment(Assignment(course="cs101", name="ps1"))
    key = {"course": "cs101", "assignment": "ps1", "person": "ada"}
    last = Fetched(**key, version=2, at=2.0)
    with another_writer(fetches, **key, version=1, at=1.0):
        courses.put_fetched(last)
    assert courses.fetched("cs101") == (last,)
    with pytest.raises(IntegrityError):
        courses.put_fetched(Fetched(**{**key, "person": None}, version=2, at=2.0))  # type: ignore[arg-type]
    store.close()
