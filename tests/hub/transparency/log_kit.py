"""A store with lines for the log, and what a verification finds in it."""

from __future__ import annotations

import importlib

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Connection

from carrel.courses.model.records import (
    Assignment,
    Course,
    Feedback,
    Folder,
    GradingRun,
    NewSubmission,
    SubmissionVerdict,
)
from carrel.courses.store import SqlCourseStore
from carrel.hub.proofs.verification import Head
from carrel.hub.provenance.signature import SigningKey
from carrel.hub.store import SqlStore
from carrel.hub.store.sql.merkle_log.verification import LogFinding, verify_log
from carrel.hub.transparency.log_store import SqlLogStore
from carrel.hub.transparency.service import TransparencyLog

from ...contracts.store_kit import furnish, job, running

NOW = 1_780_000_000.0
KEY = SigningKey.generate()


def log_of(store: SqlStore, key: SigningKey = KEY) -> TransparencyLog:
    log_store = SqlLogStore(store.transactions)
    return TransparencyLog(log_store, key, "https://carrel.example", lambda: NOW)


def findings(log: TransparencyLog, published: tuple[Head, ...] = ()) -> list[LogFinding]:
    found: list[LogFinding] = []
    log.store.verify(published, log.read_head, lambda _: None, found.append)
    return found


def folder(text: str) -> Folder:
    return Folder(sha256=text * 64, files=())


def fill(store: SqlStore, people: int = 3) -> None:
    """Store a course with submissions, verdicts and feedback, and charges of a lease."""
    furnish(store)
    group = store.groups()[0].name
    courses = SqlCourseStore(store.transactions)
    courses.put_course(Course(name=group, created_at=NOW, created_by="tea"))
    courses.put_assignment(Assignment(course=group, name="ps1"))
    ids = []
    for number in range(people):
        new = NewSubmission(
            course=group, assignment="ps1", person=f"s{number}", at=NOW, files=folder("a")
        )
        ids.append(courses.submit(new).id)
    run = GradingRun(
        request="j-g",
        course=group,
        assignment="ps1",
        version=1,
        person="",
        question="",
        submissions=tuple(ids),
        asked_at=NOW,
        asked_by="tea",
        expected=0,
    )
    courses.add_run(run)
    for each in ids:
        courses.add_verdict(SubmissionVerdict(request="j-g", submission=each, at=NOW, seconds=1.5))
        courses.put_feedback(
            Feedback(submission=each, files=folder("f"), released_at=NOW, released_by="tea")
        )
    lease = running(store, job("ran"), "D0")
    for minute in range(1, people + 1):
        at = lease.granted_at + 60 * minute
        store.renew({lease.id: at}, until=at + 60)
        store.charge([lease.id], now=at)


def upgrade(store: SqlStore, module: str) -> None:
    """Run one migration on a store that has all others."""
    migration = importlib.import_module(f"carrel.hub.store.migrations.versions.{module}")

    def work(connection: Connection) -> None:
        with Operations.context(MigrationContext.configure(connection)):
            migration.upgrade()

    store.transactions.write(work)


def found_after(
    store: SqlStore, *changes: str, published: tuple[Head, ...] = ()
) -> list[LogFinding]:
    """Return what is found after changes of the database, which are rolled back."""
    found: list[LogFinding] = []

    class UndoError(Exception):
        pass

    def work(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        for change in changes:
            assert connection.exec_driver_sql(change).rowcount, change
        log = log_of(store)
        found.extend(verify_log(connection, published, log.read_head, lambda _: None))
        raise UndoError

    with pytest.raises(UndoError):
        store.transactions.write(work)
    return found
