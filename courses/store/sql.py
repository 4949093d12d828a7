"""The store of courses in SQL; each method is one transaction on the service's database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, insert, select, update

from ...hub.records.audit import AuditEntry
from ...hub.store.sql.marks_and_audit import record_change
from ...hub.store.sql.merkle_log.queue import queue_line
from ...hub.store.sql.pool import group
from ...hub.store.sql.tables import courses as tables_courses
from ...hub.store.sql.transactions import Transactions
from ...hub.store.sql.upserts import insert_new, put_row
from ..model.records import (
    Assignment,
    Course,
    Extension,
    Feedback,
    Fetched,
    GradingRun,
    Member,
    NewSubmission,
    Outage,
    RegradeRequest,
    ReleasedVersion,
    Submission,
    SubmissionVerdict,
    TrialResult,
)
from . import regrades, rows
from .leaderboards import SqlLeaderboardStore
from .not_found import no_assignment, no_course, no_released_version, no_run, no_submission
from .official_checks import SqlOfficialCheckStore
from .prefixes import SqlPrefixStore
from .rehearsals import SqlRehearsalStore


class SqlCourseStore:
    """A ``CourseStore`` on ``SqlStore.transactions``; usable from any thread."""

    def __init__(self, transactions: Transactions) -> None:
        self._read = transactions.read
        self._read_once = transactions.read_once
        self._write = transactions.write
        self.prefixes = SqlPrefixStore(transactions)
        self.rehearsals = SqlRehearsalStore(transactions)
        self.official_checks = SqlOfficialCheckStore(transactions)
        self.leaderboards = SqlLeaderboardStore(transactions)

    # -- courses and their people ---------------------------------------------------------

    def courses(self) -> tuple[Course, ...]:
        found = self._read(lambda c: c.execute(select(tables_courses.courses)).all())
        # Sorted here: databases differ in their order of names with hyphens.
        return tuple(sorted(map(rows.course, found), key=lambda course: course.name))

    def course(self, name: str) -> Course:
        return self._read(lambda c: _course(c, name))

    def put_course(self, course: Course, *, change: AuditEntry | None = None) -> None:
        def work(connection: Connection) -> None:
            group(connection, course.name)
            put_row(connection, tables_courses.courses, asdict(course), "name")
            record_change(connection, change)

        self._write(work)

    def members(self, course: str) -> tuple[Member, ...]:
        query = select(tables_courses.course_members).where(
            tables_courses.course_members.c.course == course
        )
        found = self._read_once(("members", course), lambda c: c.execute(query).all())
        return tuple(sorted(map(rows.member, found), key=lambda member: member.person))

    def memberships(self, person: str) -> tuple[Member, ...]:
        query = select(tables_courses.course_members).where(
            tables_courses.course_members.c.person == person
        )
        found = self._read(lambda c: c.execute(query).all())
        return tuple(sorted(map(rows.member, found), key=lambda member: member.course))

    def put_members(
        self, course: str, members: Sequence[Member], *, change: AuditEntry | None = None
    ) -> None:
        def work(connection: Connection) -> None:
            _course(connection, course)
            for member in members:
                values = asdict(member) | {"role": str(member.role)}
                put_row(connection, tables_courses.course_members, values, "course", "person")
            record_change(connection, change)

        self._write(work)

    # -- assignments ----------------------------------------------------------------------

    def assignments(self, course: str) -> tuple[Assignment, ...]:
        query = select(tables_courses.assignments).where(
            tables_courses.assignments.c.course == course
        )
        found = self._read(lambda c: c.execute(query).all())
        return tuple(sorted(map(rows.assignment, found), key=lambda each: each.name))

    def assignment(self, course: str, name: str) -> Assignment:
        return self._read(lambda c: _assignment(c, course, name))

    def put_assignment(self, assignment: Assignment, *, change: AuditEntry | None = None) -> None:
        def work(connection: Connection) -> None:
            _put_assignment(connection, assignment)
            record_change(connection, change)

        self._write(work)

    def release(
        self, assignment: Assignment, version: ReleasedVersion, *, change: AuditEntry | None = None
    ) -> ReleasedVersion:
        def work(connection: Connection) -> ReleasedVersion:
            kept = _put_assignment(connection, assignment)
            record_change(connection, change)
            known = _released_version(connection, kept, kept.version) if kept.version else None
            if known and (known.files, known.source) == (version.files, version.source):
                return _tried_again(connection, known, version.tried)
            made = replace(version, version=kept.version + 1)
            connection.execute(
                insert(tables_courses.hand_outs).values(rows.released_version_data(made))
            )
            _write_assignment(connection, replace(kept, version=made.version))
            return made

        return self._write(work)

    def released_version(
        self, course: str, assignment: str, version: int | None = None
    ) -> ReleasedVersion:
        def work(connection: Connection) -> ReleasedVersion:
            known = _assignment(connection, course, assignment)
            found = _released_version(
                connection, known, known.version if version is None else version
            )
            if found is None:
                raise no_released_version(course, assignment, version)
            return found

        return self._read(work)

    def put_fetched(self, fetched: Fetched) -> None:
        def work(connection: Connection) -> None:
            _assignment(connection, fetched.course, fetched.assignment)
            key = ("course", "assignment", "person")
            put_row(connection, tables_courses.fetches, asdict(fetched), *key)

        self._write(work)

    def fetched(
        self, course: str, assignment: str | None = None, person: str | None = None
    ) -> tuple[Fetched, ...]:
        table = tables_courses.fetches
        query = select(table).where(_within(table, course, assignment, person))
        found = map(rows.fetched, self._read(lambda c: c.execute(query).all()))
        return tuple(sorted(found, key=lambda each: (each.assignment, each.person)))

    # -- what comes in --------------------------------------------------------------------

    def submit(self, new: NewSubmission) -> Submission:
        def work(connection: Connection) -> Submission:
            _assignment(connection, new.course, new.assignment)
            last = _last(connection, new)
            if last is not None and last.files.sha256 == new.files.sha256:
                return last
            values = {
                "course": new.course,
                "assignment": new.assignment,
                "person": new.person,
                "number": last.number + 1 if last else 1,
                "at": new.at,
                "files": rows.folder_data(new.files),
                "version": new.version,
            }
            table = tables_courses.submissions
            row = connection.execute(insert(table).values(values).returning(*table.c)).one()
            queue_line(connection, table.name, (row.id,))
            return rows.submission(row)

        return self._write(work)

    def submissions(
        self, course: str, assignment: str | None = None, person: str | None = None
    ) -> tuple[Submission, ...]:
        table = tables_courses.submissions
        query = select(table).where(_within(table, course, assignment, person))
        found = map(rows.submission, self._read(lambda c: c.execute(query).all()))
        return tuple(sorted(found, key=lambda s: (s.assignment, s.person, s.number)))

    def submission(self, submission_id: int) -> Submission:
        return self._read(lambda c: _submission(c, submission_id))

    def choose(
        self, submission: Submission, *, counts: bool, change: AuditEntry | None = None
    ) -> None:
        table = tables_courses.choices
        whose = {
            "course": submission.course,
            "assignment": submission.assignment,
            "person": submission.person,
        }

        def work(connection: Connection) -> None:
            if counts:
                put_row(connection, table, whose | {"number": submission.number}, *whose)
            else:
                connection.execute(delete(table).where(*_same(table, whose)))
            record_change(connection, change)

        self._write(work)

    def chosen(self, course: str, assignment: str) -> dict[str, int]:
        query = select(tables_courses.choices).where(
            _of(tables_courses.choices, course, assignment)
        )
        return {row.person: row.number for row in self._read(lambda c: c.execute(query).all())}

    # -- grading --------------------------------------------------------------------------

    def add_run(self, run: GradingRun, *, change: AuditEntry | None = None) -> None:
        def work(connection: Connection) -> None:
            _assignment(connection, run.course, run.assignment)
            connection.execute(insert(tables_courses.grading_runs).values(asdict(run)))
            record_change(connection, change)

        self._write(work)

    def runs(self, course: str, assignment: str) -> tuple[GradingRun, ...]:
        table = tables_courses.grading_runs
        query = select(table).where(_of(table, course, assignment)).order_by(table.c.id)
        return tuple(map(rows.run, self._read(lambda c: c.execute(query).all())))

    def run(self, request: str) -> GradingRun:
        return self._read(lambda c: _run(c, request))

    def add_verdict(self, verdict: SubmissionVerdict) -> bool:
        table = tables_courses.verdicts

        def work(connection: Connection) -> bool:
            if verdict.submission not in _run(connection, verdict.request).submissions:
                raise no_submission(verdict.submission)
            added = insert_new(connection, table, asdict(verdict))
            if added:
                queue_line(connection, table.name, (verdict.request, verdict.submission))
            return added

        return self._write(work)

    def verdicts(self, course: str, assignment: str) -> tuple[SubmissionVerdict, ...]:
        runs, table = tables_courses.grading_runs, tables_courses.verdicts
        query = (
            select(table)
            .join(runs, runs.c.request == table.c.request)
            .where(_of(runs, course, assignment))
            .order_by(runs.c.id, table.c.submission)
        )
        return tuple(map(rows.verdict, self._read(lambda c: c.execute(query).all())))

    # -- what goes back -------------------------------------------------------------------

    def put_feedback(self, feedback: Feedback, *, change: AuditEntry | None = None) -> None:
        def work(connection: Connection) -> None:
            _submission(connection, feedback.submission)
            table = tables_courses.feedback
            put_row(connection, table, rows.feedback_data(feedback), "submission")
            queue_line(connection, table.name, (feedback.submission,))
            record_change(connection, change)

        self._write(work)

    def feedback(
        self, course: str, assignment: str | None = None, person: str | None = None
    ) -> dict[int, Feedback]:
        sent = tables_courses.submissions
        whose = _within(sent, course, assignment, person)
        query = select(tables_courses.feedback).join(sent).where(whose)
        found = map(rows.feedback, self._read(lambda c: c.execute(query).all()))
        return {each.submission: each for each in found}

    # -- regrade requests -----------------------------------------------------------------

    def open_regrade(self, request: RegradeRequest) -> RegradeRequest:
        def work(connection: Connection) -> RegradeRequest:
            _assignment(connection, request.course, request.assignment)
            return regrades.open_request(connection, request)

        return self._write(work)

    def update_regrade(
        self, regrade_id: int, change: Callable[[RegradeRequest], RegradeRequest]
    ) -> RegradeRequest:
        return self._write(lambda c: regrades.update_request(c, regrade_id, change))

    def regrade(self, regrade_id: int) -> RegradeRequest:
        return self._read(lambda c: regrades.found(c, regrade_id))

    def regrades(
        self, course: str, assignment: str | None = None, person: str | None = None
    ) -> tuple[RegradeRequest, ...]:
        which = _within(tables_courses.regrade_requests, course, assignment, person)
        return tuple(self._read(lambda c: regrades.find(c, which)))

    # -- more time ------------------------------------------------------------------------

    def extend(self, extension: Extension, *, change: AuditEntry | None = None) -> None:
        def work(connection: Connection) -> None:
            _assignment(connection, extension.course, extension.assignment)
            connection.execute(insert(tables_courses.extensions).values(asdict(extension)))
            record_change(connection, change)

        self._write(work)

    def remove_extensions(
        self,
        course: str,
        assignment: str,
        *,
        person: str = "",
        section: str = "",
        change: AuditEntry | None = None,
    ) -> None:
        table = tables_courses.extensions
        whose = {"course": course, "assignment": assignment, "person": person, "section": section}

        def work(connection: Connection) -> None:
            connection.execute(delete(table).where(*_same(table, whose)))
            record_change(connection, change)

        self._write(work)

    def extensions(self, course: str) -> tuple[Extension, ...]:
        table = tables_courses.extensions
        query = select(table).where(table.c.course == course).order_by(table.c.id)
        found = self._read_once(("extensions", course), lambda c: c.execute(query).all())
        return tuple(map(rows.extension, found))

    def add_outage(self, outage: Outage, *, change: AuditEntry | None = None) -> None:
        def work(connection: Connection) -> None:
            connection.execute(insert(tables_courses.outages).values(asdict(outage)))
            record_change(connection, change)

        self._write(work)

    def outages(self) -> tuple[Outage, ...]:
        query = select(tables_courses.outages).order_by(tables_courses.outages.c.id)
        found = self._read_once("outages", lambda c: c.execute(query).all())
        return tuple(map(rows.outage, found))


# -- the insides of transactions --------------------------------------------------------------


def _course(connection: Connection, name: str) -> Course:
    query = select(tables_courses.courses).where(tables_courses.courses.c.name == name)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise no_course(name)
    return rows.course(row)


def _assignment(connection: Connection, course: str, name: str) -> Assignment:
    found = _known(connection, course, name)
    if found is None:
        raise no_assignment(course, name)
    return found


def _known(connection: Connection, course: str, name: str) -> Assignment | None:
    table = tables_courses.assignments
    query = select(table).where(table.c.course == course, table.c.name == name)
    row = connection.execute(query).one_or_none()
    return None if row is None else rows.assignment(row)


def _put_assignment(connection: Connection, assignment: Assignment) -> Assignment:
    """With the version that it has here."""
    _course(connection, assignment.course)
    known = _known(connection, assignment.course, assignment.name)
    kept = replace(assignment, version=known.version if known else 0)
    _write_assignment(connection, kept)
    return kept


def _write_assignment(connection: Connection, assignment: Assignment) -> None:
    values = rows.assignment_data(assignment)
    put_row(connection, tables_courses.assignments, values, "course", "name")


def _released_version(
    connection: Connection, assignment: Assignment, version: int
) -> ReleasedVersion | None:
    table = tables_courses.hand_outs
    query = select(table).where(
        _of(table, assignment.course, assignment.name), table.c.version == version
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else rows.released_version(row)


def _tried_again(
    connection: Connection, known: ReleasedVersion, tried: TrialResult | None
) -> ReleasedVersion:
    """The same version, with what was found the last time that it was tried."""
    if tried is None:
        return known
    made, table = replace(known, tried=tried), tables_courses.hand_outs
    key = {"course": made.course, "assignment": made.assignment, "version": made.version}
    values = {"tried": rows.released_version_data(made)["tried"]}
    connection.execute(update(table).where(*_same(table, key)).values(values))
    return made


def _last(connection: Connection, new: NewSubmission) -> Submission | None:
    table = tables_courses.submissions
    query = (
        select(table)
        .where(_of(table, new.course, new.assignment), table.c.person == new.person)
        .order_by(table.c.number.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else rows.submission(row)


def _submission(connection: Connection, submission_id: int) -> Submission:
    query = select(tables_courses.submissions).where(
        tables_courses.submissions.c.id == submission_id
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        raise no_submission(submission_id)
    return rows.submission(row)


def _run(connection: Connection, request: str) -> GradingRun:
    query = select(tables_courses.grading_runs).where(
        tables_courses.grading_runs.c.request == request
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        raise no_run(request)
    return rows.run(row)


def _within(
    table: Table, course: str, assignment: str | None, person: str | None
) -> ColumnElement[bool]:
    wanted = {"course": course, "assignment": assignment, "person": person}
    return and_(*_same(table, {name: value for name, value in wanted.items() if value is not None}))


def _of(table: Table, course: str, assignment: str) -> ColumnElement[bool]:
    return and_(table.c.course == course, table.c.assignment == assignment)


def _same(table: Table, key: dict[str, str] | dict[str, object]) -> list[ColumnElement[bool]]:
    return [table.c[name] == value for name, value in key.items()]
