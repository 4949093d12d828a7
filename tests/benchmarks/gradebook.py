"""How long the pages of a large course take: its gradebook, and the grades of one assignment.

The application in this process over a store in SQLite, without network: a course of which every
student has submitted every assignment and has been graded. The gradebook of nbgrader is made by
nbgrader for one student, and its rows are copied for the others. A teacher opens each page by
turns; the statements are those on the store of the service.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import nbformat
import sqlalchemy as sa

from carrel.courses.files.bundle import FileBundle
from carrel.courses.files.transfer import store_bundle
from carrel.courses.gradebook.gradebook import CourseGradebook
from carrel.courses.grading.submission_grader import NotebookResult, SubmissionResult
from carrel.courses.grading.verdict import CellVerdict, Word
from carrel.courses.model.records import (
    Assignment,
    CellScore,
    Course,
    Member,
    NewSubmission,
    ReleasedVersion,
    SubmissionVerdict,
)
from carrel.courses.releases.student_version import prepare
from carrel.hub.config import garbage_collection
from carrel.hub.config.settings import Settings
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.schemas.grading import GradeIn

from ..courses import notebook_samples
from ..hub.doubles import TEACHER
from ..hub.web.fakes import PREFIX
from ..hub.web.site import Site, made_site
from . import report
from .report import AtMost, Row, middle

COURSE = "cs101"
STUDENTS, ASSIGNMENTS, CELLS, ROUNDS = 300, 10, 6, 10
LIMIT_MS, MOST_STATEMENTS = 1000.0, 100
SUBMITTED_AT = 1_800_000_000.0
PAGES = {
    "gradebook of the course": f"{PREFIX}course/{COURSE}/gradebook",
    "gradebook of the course (CSV)": f"{PREFIX}course/{COURSE}/gradebook/csv",
    "grades of one assignment": f"{PREFIX}course/{COURSE}/grading/ps01",
}


def people(count: int) -> list[str]:
    return [f"student{number:04}" for number in range(1, count + 1)]


def names(count: int) -> list[str]:
    return [f"ps{number:02}" for number in range(1, count + 1)]


def notebook(cells: int) -> bytes:
    """A teacher's notebook with so many tests."""
    return notebook_samples.assignment(
        *(
            (f"q{n}", f"def q{n}():", f"return {n}", f"q{n}() > 0", f"q{n}() == {n}")
            for n in range(cells)
        )
    )


# -- the class --------------------------------------------------------------------------------


def fill(site: Site, root: Path, students: int, assignments: int, cells: int) -> None:
    """Store the class, its submissions, results and nbgrader's gradebook."""
    services = site.world.web.courses
    store = services.access.store
    site.context.store.put_group(Group(name=COURSE, max_devices=2, max_devices_per_user=1))
    site.context.store.set_teachers(COURSE, [TEACHER.name])
    store.put_course(Course(name=COURSE, created_at=0.0, created_by="admin"))
    store.put_members(COURSE, [Member(course=COURSE, person=each) for each in people(students)])
    content = notebook(cells)
    files = store_bundle(services.submissions.blobs, FileBundle.of([("ps.ipynb", content)]))
    for name in names(assignments):
        version = ReleasedVersion(
            course=COURSE,
            assignment=name,
            version=1,
            files=files,
            source=files,
            released_at=SUBMITTED_AT - 1,
            released_by=TEACHER.name,
        )
        store.release(Assignment(course=COURSE, name=name), version)
        for each in people(students):
            sent = NewSubmission(
                course=COURSE, assignment=name, person=each, at=SUBMITTED_AT, files=files
            )
            store.submit(sent)
        run = services.grading.start(TEACHER, COURSE, name, GradeIn()).request
        for submission in store.submissions(COURSE, name):
            store.add_verdict(
                SubmissionVerdict(
                    request=run,
                    submission=submission.id,
                    at=SUBMITTED_AT,
                    seconds=0.5,
                    cells=tuple(scores(cells)),
                )
            )
    fill_gradebook(root / COURSE, people(students), names(assignments), content, cells)


def scores(cells: int) -> Iterator[CellScore]:
    """The last cell needs a person."""
    for number in range(cells):
        by_hand = number == cells - 1
        yield CellScore(
            notebook="ps",
            cell=f"test-q{number}",
            word=str(Word.NEEDS_A_PERSON if by_hand else Word.PASSED),
            sentence="All checks of this test passed.",
            score=None if by_hand else 2.0,
            max_score=2.0,
            review=by_hand,
        )


def fill_gradebook(
    folder: Path, students: Sequence[str], assignments: Sequence[str], content: bytes, cells: int
) -> None:
    """Write nbgrader's gradebook: by nbgrader for the first student, then copies of its rows."""
    first, *others = students
    graded = nbformat.reads(content.decode(), as_version=4)  # type: ignore[no-untyped-call]
    for cell in graded.cells:
        cell.metadata.nbgrader.checksum = "of the release"
    verdicts = tuple(
        CellVerdict(
            notebook="ps",
            grade_id=each.cell,
            word=Word(each.word),
            sentence=each.sentence,
            score=each.score,
            max_score=each.max_score,
            review=each.review,
        )
        for each in scores(cells)
    )
    result = SubmissionResult(
        student=first,
        seconds=0.5,
        notebooks=(NotebookResult(name="ps", verdicts=verdicts, node=graded),),
    )
    with closing(CourseGradebook(folder, COURSE)) as book:
        for name in assignments:
            book.save_release(prepare(name, {"ps.ipynb": content}), due=None)
            book.record(name, result, submitted_at=datetime.fromtimestamp(SUBMITTED_AT, UTC))
    with closing(sqlite3.connect(folder / "gradebook.db")) as database, database:
        for student in others:
            _copy_rows(database, first, student)


def _copy_rows(database: sqlite3.Connection, first: str, student: str) -> None:
    """Give a student the rows of the first one; the ids of copies end in the name."""
    own = {"submitted_assignment": ("id",), "submitted_notebook": ("id", "assignment_id")}
    own |= {"grade": ("id", "notebook_id"), "comment": ("id", "notebook_id")}
    database.execute(
        "insert into student (id, lms_user_id) select ?, lms_user_id from student where id = ?",
        (student, first),
    )
    for table, renamed in own.items():
        columns = [row[1] for row in database.execute(f"pragma table_info({table})")]
        changed = {name: f"{name} || '-' || :student" for name in renamed}
        changed["student_id"] = ":student"
        values = [changed.get(name, name) for name in columns]
        database.execute(
            f"insert into {table} ({', '.join(columns)}) select {', '.join(values)} "  # noqa: S608 - names
            f"from {table} where id not like '%-student%'",
            {"student": student},
        )


# -- the pages --------------------------------------------------------------------------------


@contextmanager
def counted() -> Iterator[list[str]]:
    """The statements on the store of the service in the block."""
    said: list[str] = []

    def note(_connection: object, _cursor: object, sql: str, *_: object) -> None:
        if not sql.startswith("BEGIN"):
            said.append(sql)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield said
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


def measure(site: Site, rounds: int) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Milliseconds of each page, without a first turn that warms; and its statements."""
    client = site.page(TEACHER)
    times: dict[str, list[float]] = {name: [] for name in PAGES}
    statements: dict[str, int] = {}
    for turn in range(rounds + 1):
        for name, address in PAGES.items():
            with counted() as said:
                begin = time.perf_counter()
                answer = client.get(address)
                took = 1000 * (time.perf_counter() - begin)
            assert answer.status_code == httpx.codes.OK, (name, answer.status_code)
            statements[name] = len(said)
            if turn:
                times[name].append(took)
    return times, statements


def rows(
    times: Mapping[str, Sequence[float]], statements: Mapping[str, int], command: str
) -> list[Row]:
    return [
        row
        for name in PAGES
        for row in (
            Row(
                name=f"{name}, median",
                ours=middle(times.get(name, ())),
                goal=AtMost(limit=LIMIT_MS),
                unit="ms",
                command=command,
            ),
            Row(
                name=f"{name}, SQL statements",
                ours=statements.get(name),
                goal=AtMost(limit=MOST_STATEMENTS),
                unit="statements",
                command=command,
            ),
        )
    ]


def main(words: Sequence[str]) -> int:
    parser = report.parser("How long the pages of a large course take.")
    parser.add_argument("--students", type=int, default=STUDENTS, help="(default: 300)")
    parser.add_argument("--assignments", type=int, default=ASSIGNMENTS, help="(default: 10)")
    parser.add_argument("--cells", type=int, default=CELLS, help="of a notebook (default: 6)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of all pages (default: 10)")
    options = parser.parse_args(words)
    command = report.command_line("tests.benchmarks.gradebook", *words)
    garbage_collection.raise_thresholds()  # as the service does
    with tempfile.TemporaryDirectory(prefix="carrel-gradebook-") as made:
        folder = Path(made)
        with made_site(folder, Settings(calls_per_second=0)) as site:
            fill(site, folder / "courses", options.students, options.assignments, options.cells)
            report.note("the class is stored")
            times, statements = measure(site, options.rounds)
    return report.finish(rows(times, statements, command), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
