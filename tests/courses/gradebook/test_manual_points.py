"""Manual points of nbgrader's formgrader count, and Carrel and nbgrader agree on them."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from carrel.courses.gradebook import reader, sqlite_snapshot
from carrel.courses.gradebook.gradebook import CourseGradebook
from carrel.courses.gradebook.grades import grades
from carrel.courses.grading.class_grader import Work
from carrel.courses.grading.submission_grader import SubmissionGrader
from carrel.courses.grading_runs.work_source import verdict_of
from carrel.courses.model.records import CellScore, Folder, Member, Submission, SubmissionVerdict
from carrel.courses.releases.solution_check import ReleaseCheck
from carrel.courses.releases.student_version import prepare
from carrel.courses.sandbox.interface import SandboxEngine
from carrel.hub.errors import Unavailable
from carrel.hub.schemas.grading import CellScoreOut, GradeOut

from ..grading import ps1

AT = datetime(2027, 2, 1, 17, 0, 0, 250_000, tzinfo=UTC)
SENT = Submission(
    id=7,
    number=1,
    course="cs101",
    assignment="ps1",
    person="student1",
    at=AT.timestamp(),
    files=Folder(sha256="", files=()),
)
PENALTY = 0.1


class Graded:
    """One submission of ps1, late, with its verdicts and its page of the gradebook."""

    def __init__(self, folder: Path, sandboxes: SandboxEngine, check: ReleaseCheck) -> None:
        self.folder, self._sandboxes, self._check = folder, sandboxes, check
        self._verdicts: list[SubmissionVerdict] = []

    def grade(self, question: str = "") -> None:
        only = frozenset({question}) if question else None
        grader = SubmissionGrader(self._sandboxes, self._check.key)
        try:
            result = grader.grade("student1", ps1.SOLUTIONS["right"], only=only)
        finally:
            grader.close()
        with closing(CourseGradebook(self.folder, "cs101")) as book:
            book.record("ps1", result, submitted_at=AT, late_penalty=PENALTY)
        given = verdict_of(Work(number=SENT.id, student="student1"), result)
        cells = tuple(CellScore(**cell.model_dump()) for cell in given.cells)
        self._verdicts.append(
            SubmissionVerdict(request="g", submission=SENT.id, at=0.0, seconds=0.0, cells=cells)
        )

    @contextmanager
    def formgrader(self) -> Iterator[Gradebook]:
        with Gradebook(f"sqlite:///{self.folder / 'gradebook.db'}", "cs101") as book:
            yield book
            book.db.commit()

    def give(
        self, cell: str, notebook: str, *, score: float | None = None, extra: float | None = None
    ) -> None:
        """Set manual points as formgrader's page does (``GradeHandler.put``)."""
        with self.formgrader() as book:
            row = book.find_grade(cell, notebook, "ps1", "student1")
            row.manual_score, row.extra_credit = score, extra
            row.needs_manual_grade = score is None and row.auto_score is None

    def out(self) -> GradeOut:
        page = reader.pages(self.folder, "ps1").get("student1")
        member = Member(course="cs101", person="student1")
        return grades(member, SENT, self._verdicts, PENALTY, page=page)

    def cell(self, name: str) -> CellScoreOut:
        return next(cell for cell in self.out().cells if cell.cell == name)

    def of_nbgrader(self) -> float:
        with self.formgrader() as book:
            submission = book.find_submission("ps1", "student1")
            return float(submission.score - submission.late_submission_penalty)


@pytest.fixture
def graded(
    tmp_path: Path, ps1_book: Path, sandboxes: SandboxEngine, ps1_check: ReleaseCheck
) -> Graded:
    folder = shutil.copytree(ps1_book, tmp_path / "cs101")
    made = Graded(folder, sandboxes, ps1_check)
    made.grade()
    return made


@pytest.fixture(scope="module")
def ps1_book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "cs101"
    with closing(CourseGradebook(folder, "cs101")) as book:
        book.save_release(prepare("ps1", ps1.source()), due=None)
    return folder


def test_manual_points_count_and_both_gradebooks_agree(graded: Graded) -> None:
    waiting = [cell for cell in graded.out().cells if cell.word == "needs a person"]
    assert waiting
    assert all(cell.score is None and cell.review for cell in waiting)
    assert graded.out().score == pytest.approx(graded.of_nbgrader())

    for cell in waiting:
        graded.give(cell.cell, cell.notebook, score=cell.max_score / 2)
    graded.give("correct_squares", "problem1", score=0.25, extra=0.5)
    with graded.formgrader() as book:
        said = book.find_comment(waiting[0].cell, waiting[0].notebook, "ps1", "student1")
        said.manual_comment = "Say why."

    corrected = graded.cell("correct_squares")
    assert (corrected.word, corrected.score, corrected.by_hand) == ("by hand", 0.75, True)
    first = graded.cell(waiting[0].cell)
    assert (first.word, first.score, first.comment) == (
        *("by hand", waiting[0].max_score / 2, "Say why."),
    )
    assert not graded.out().review
    assert graded.out().score == pytest.approx(graded.of_nbgrader())


def test_grading_again_keeps_manual_points(graded: Graded) -> None:
    waiting = next(cell for cell in graded.out().cells if cell.word == "needs a person")
    graded.give(waiting.cell, waiting.notebook, score=1.0)
    graded.give("squares_invalid_input", "problem1", extra=0.5)
    graded.grade("correct_squares")
    assert (graded.cell(waiting.cell).score, graded.cell(waiting.cell).review) == (1.0, False)
    assert graded.cell("squares_invalid_input").score == 1.5
    graded.grade()
    # As in nbgrader, the points stay and need another review.
    assert (graded.cell(waiting.cell).score, graded.cell(waiting.cell).review) == (1.0, True)
    assert graded.out().score == pytest.approx(graded.of_nbgrader())


def test_a_page_of_another_submission_is_ignored(graded: Graded) -> None:
    page = reader.pages(graded.folder, "ps1")["student1"]
    assert page.is_of(SENT.at)
    assert not page.is_of(SENT.at + 3600)


def test_a_file_that_is_not_a_gradebook_is_refused(tmp_path: Path) -> None:
    assert reader.pages(tmp_path, "ps1") == {}
    (tmp_path / "gradebook.db").write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(Unavailable, match="cannot be read"):
        reader.pages(tmp_path, "ps1")
    (tmp_path / "gradebook.db").unlink()
    (tmp_path / "elsewhere.db").touch()
    (tmp_path / "gradebook.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(Unavailable, match=r"gradebook\.db is a link"):
        reader.pages(tmp_path, "ps1")


def test_the_gradebook_is_read_in_one_consistent_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_snapshot, "PATIENCE", 0.05)
    path = tmp_path / "gradebook.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as book:
        book.execute("create table assignment (id, name)")
        book.execute("begin immediate")
        book.execute("insert into assignment values (1, 'ps1')")
        # With a prepared transaction and its journal, a reader sees the state before it.
        assert reader.pages(tmp_path, "ps1") == {}
        book.execute("rollback")
        book.execute("begin exclusive")
        with pytest.raises(Unavailable, match="it is being written"):
            reader.pages(tmp_path, "ps1")
        book.execute("commit")
        assert reader.pages(tmp_path, "ps1") == {}
        # The content of a write-ahead log would be missing.
        book.execute("pragma journal_mode = wal")
        book.execute("insert into assignment values (2, 'ps2')")
        with pytest.raises(Unavailable, match="cannot be read"):
            reader.pages(tmp_path, "ps1")


def journal_that_removes(victim: Path) -> bytes:
    """A hot journal without changes, of one transaction with ``victim``, as it says.

    https://www.sqlite.org/fileformat2.html#the_rollback_journal; at its end the name of the
    "super-journal", which SQLite removes when it has played back what belongs to it.
    """
    magic = bytes.fromhex("d9d505f920a163d7")
    pages, sector, page_size = 2, 512, 4096
    head = magic + struct.pack(">5I", 0, 0, pages, sector, page_size)
    name = bytes(victim)
    end = struct.pack(">I", 0) + name + struct.pack(">2I", len(name), sum(name)) + magic
    return head.ljust(sector, b"\0") + end


def test_a_journal_beside_the_gradebook_deletes_no_files(tmp_path: Path) -> None:
    gradebook, victim = tmp_path / "gradebook.db", tmp_path / "victim"
    victim.write_text("mine")
    with closing(sqlite3.connect(gradebook)) as book:
        book.execute("create table assignment (id, name)")
    journal = tmp_path / "gradebook.db-journal"
    journal.write_bytes(journal_that_removes(victim))
    before = gradebook.read_bytes()
    with pytest.raises(Unavailable, match="its last change was not completed"):
        reader.pages(tmp_path, "ps1")
    assert victim.exists()
    assert gradebook.read_bytes() == before
    assert journal.exists()

    # Opening the database would execute the journal.
    with closing(sqlite3.connect(gradebook)) as book:
        book.execute("select * from assignment")
    assert not victim.exists()

    journal.symlink_to(victim)
    with pytest.raises(Unavailable, match=r"gradebook\.db-journal is a link"):
        reader.pages(tmp_path, "ps1")


def test_nbgrader_opens_only_copies_without_views_and_triggers(
    graded: Graded, tmp_path: Path
) -> None:
    reader.copy(graded.folder, tmp_path / "copy.db")
    with Gradebook(f"sqlite:///{tmp_path / 'copy.db'}", "cs101") as book:
        assert [each.id for each in book.students] == ["student1"]
    with closing(sqlite3.connect(graded.folder / "gradebook.db")) as book:
        book.execute("create trigger mine after update on grade begin delete from grade; end")
    with pytest.raises(Unavailable, match="nbgrader does not create the trigger mine"):
        reader.copy(graded.folder, tmp_path / "copy.db")


def test_a_gradebook_that_is_being_created_is_empty(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "gradebook.db") as book:
        book.execute("create table assignment (id, name)")
    assert reader.pages(tmp_path, "ps1") == {}


def test_reading_a_gradebook_has_a_limit(tmp_path: Path) -> None:
    """A user who can write the file can replace a table by a view, among other things."""
    columns = "0 as id, 0 as notebook_id, 0 as cell_id, 0 as auto_score"
    with sqlite3.connect(tmp_path / "gradebook.db") as book:
        book.execute(
            "create view assignment as select 'ps1' as name, i as id from (with recursive n(i) as "
            "(select 1 union all select i + 1 from n) select i from n)"
        )
        for table in ("submitted_assignment", "submitted_notebook", "notebook", "base_cell"):
            book.execute(f"create table {table} (id, assignment_id, notebook_id, student_id, name)")
        book.execute("alter table submitted_assignment add column timestamp")
        book.execute(f"create view comment as select {columns}, '' as manual_comment")
        rest = "0 as manual_score, 0 as extra_credit, 0 as needs_manual_grade"
        book.execute(f"create view grade as select {columns}, {rest}")
    with pytest.raises(Unavailable, match="interrupted"):
        reader.pages(tmp_path, "ps1")


def test_one_assignment_is_read_without_the_rows_of_others(graded: Graded) -> None:
    """Else a query over a large course would exceed its limit of steps."""
    with closing(sqlite3.connect(graded.folder / reader.NAME)) as book:
        plan = book.execute(f"explain query plan {reader.GRADES_QUERY}", ("ps1",)).fetchall()
    assert [detail for *_, detail in plan if detail.startswith(("SCAN", "MATERIALIZE"))] == [
        "SCAN n"
    ], "there are few notebooks"
