"""nbgrader's gradebook and formgrader work on submissions that Carrel graded."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory

from carrel.courses.feedback.page import feedback_page
from carrel.courses.gradebook.gradebook import CourseGradebook, write_files
from carrel.courses.grading.submission_grader import SubmissionGrader, SubmissionResult
from carrel.courses.releases.solution_check import ReleaseCheck
from carrel.courses.releases.student_version import prepare
from carrel.courses.sandbox.interface import SandboxEngine
from carrel.hub.errors import Conflict, InvalidInput

from ..grading import cheats, golden, ps1

WHEN = datetime(2027, 2, 1, 17, 0, tzinfo=UTC)


def grade(
    sandboxes: SandboxEngine, check: ReleaseCheck, submissions: Mapping[str, Mapping[str, bytes]]
) -> list[SubmissionResult]:
    grader = SubmissionGrader(sandboxes, check.key)
    try:
        return [grader.grade(student, files) for student, files in submissions.items()]
    finally:
        grader.close()


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course's folder with both assignments: nbgrader takes seconds to make one."""
    folder = tmp_path_factory.mktemp("made") / "cs101"
    with closing(CourseGradebook(folder, "cs101")) as book:
        book.save_release(prepare("ps1", ps1.source()), due=WHEN)
        book.save_release(prepare("secret", cheats.source()), due=None)
    return folder


@pytest.fixture
def book(tmp_path: Path, course: Path) -> Iterator[CourseGradebook]:
    shutil.copytree(course, tmp_path / "cs101")
    with closing(CourseGradebook(tmp_path / "cs101", "cs101")) as book:
        yield book


def test_scores_are_in_the_gradebook_and_formgrader_finds_its_files(
    book: CourseGradebook, tmp_path: Path, sandboxes: SandboxEngine, ps1_check: ReleaseCheck
) -> None:
    work = {"student1": ps1.SOLUTIONS["right"], "student2": ps1.SOLUTIONS["no check"]}
    for result in grade(sandboxes, ps1_check, work):
        book.record("ps1", result, files=work[result.student], submitted_at=WHEN)
    assert golden.autograded(tmp_path / "cs101", "ps1") == {
        student: golden.load()["ps1"][name]
        for student, name in (("student1", "right"), ("student2", "no-check"))
    }
    api = NbGraderAPI(CourseDirectory(root=str(tmp_path / "cs101")))
    submissions = api.get_submissions("ps1")
    assert [one["autograded"] for one in submissions] == [True, True]
    assert [one["needs_manual_grade"] for one in submissions] == [True, True]
    assert [one["score"] for one in submissions] == [3.0, 2.0]
    folder = tmp_path / "cs101/autograded/student1/ps1"
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["jupyter.png", "problem1.ipynb", "problem2.ipynb", "timestamp.txt"]
    nbformat.validate(nbformat.read(folder / "problem1.ipynb", as_version=4))


def test_a_persons_score_is_kept_and_lateness_costs_points(
    book: CourseGradebook, tmp_path: Path, sandboxes: SandboxEngine, ps1_check: ReleaseCheck
) -> None:
    (result,) = grade(sandboxes, ps1_check, {"student1": ps1.SOLUTIONS["right"]})
    book.record("ps1", result, submitted_at=WHEN)
    with Gradebook(f"sqlite:///{tmp_path / 'cs101/gradebook.db'}") as theirs:
        row = theirs.find_grade("correct_squares", "problem1", "ps1", "student1")
        row.manual_score = 0.25
        theirs.db.commit()
    book.record("ps1", result, submitted_at=WHEN, late_penalty=0.1)
    lines = {line.grade_id: line for line in book.lines("ps1")}
    assert lines["correct_squares"].score == 0.25
    assert lines["correct_squares"].needs_manual_grade
    with Gradebook(f"sqlite:///{tmp_path / 'cs101/gradebook.db'}") as theirs:
        notebook = theirs.find_submission_notebook("problem1", "ps1", "student1")
        assert notebook.late_submission_penalty == pytest.approx(0.225)
        # As formgrader changes it afterwards.
        row = theirs.find_grade("correct_squares", "problem1", "ps1", "student1")
        row.manual_score, row.extra_credit = 1.0, 0.5
        theirs.db.commit()
    with Gradebook(f"sqlite:///{tmp_path / 'cs101/gradebook.db'}") as theirs:
        notebook = theirs.find_submission_notebook("problem1", "ps1", "student1")
        assert notebook.late_submission_penalty == pytest.approx(0.1 * notebook.score)


def test_graded_cells_cannot_change_after_grading(
    book: CourseGradebook, sandboxes: SandboxEngine, ps1_check: ReleaseCheck
) -> None:
    (result,) = grade(sandboxes, ps1_check, {"student1": ps1.SOLUTIONS["right"]})
    book.record("ps1", result)
    node = nbformat.reads(ps1.source()["problem1.ipynb"].decode(), as_version=4)
    node.cells.remove(ps1.cell_of(node, "correct_squares"))
    fewer = {**ps1.source(), "problem1.ipynb": nbformat.writes(node).encode()}
    with pytest.raises(Conflict, match=r"problem1\.ipynb has other graded cells"):
        book.save_release(prepare("ps1", fewer), due=None)


@pytest.mark.parametrize("name", ["../other/x.py", "/etc/x", "a/../../x", "."])
def test_no_file_is_written_outside_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput):
        write_files(tmp_path / "student1", {name: b"x"})
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


EVIL = """
from IPython.display import HTML, SVG, Javascript, Markdown, display
display(HTML('<script>alert(1)</script><img src=x onerror=alert(2)><b>bold</b>'))
display(Javascript('alert(3)'))
display(SVG('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(4)"/>'))
display(Markdown('[x](javascript:alert(5)) <iframe src="https://example.org"></iframe>'))
print('<script>alert(6)</script>')
raise ValueError('<script>alert(7)</script>')
"""


def test_feedback_has_no_scripts_and_no_hidden_tests(
    book: CourseGradebook, tmp_path: Path, sandboxes: SandboxEngine, secret_check: ReleaseCheck
) -> None:
    def edit(node: nbformat.NotebookNode) -> None:
        node.cells.insert(0, nbformat.v4.new_code_cell(EVIL))
        text = "<script>alert(8)</script> [y](javascript:alert(9))"
        node.cells.insert(0, nbformat.v4.new_markdown_cell(text))
        node.cells[0].metadata["tags"] = ['"><script>alert(10)</script>']

    wrong = "def double(n):\n    return abs(2 * n)"
    (result,) = grade(sandboxes, secret_check, {"student1": cheats.submission(wrong, edit)})
    book.record("secret", result)
    notebook = result.notebooks[0]
    assert notebook.node is not None
    page = feedback_page(
        notebook.node,
        secret_check.key.notebooks[0],
        assignment="secret",
        student="student1",
        gradebook=f"sqlite:///{tmp_path / 'cs101/gradebook.db'}",
        sentences={one.grade_id: one.sentence for one in notebook.verdicts},
    )
    lower = page.lower()
    assert "<script" not in lower
    assert "<iframe" not in lower
    assert "<svg" not in lower
    assert 'href="javascript:' not in lower
    assert "<img src=x onerror" not in lower
    assert "<b>bold</b>" in page
    assert "Content-Security-Policy" in page
    assert "A check failed: negative numbers" in page
    assert "assert double(1) == 2" in _text(page)
    assert "21" not in _text(page)
    assert "(Score: 2.0 / 10.0)" in page


def _text(page: str) -> str:
    """Return the text of the notebook's part of the page."""
    return re.sub(r"<style.*?</style>|<[^>]+>", "", page, flags=re.DOTALL)


@pytest.fixture(autouse=True)
def _quiet() -> None:
    logging.getLogger("traitlets").setLevel(logging.ERROR)
