"""Checks of students: who may start them, what is stored, and what they read."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from carrel.courses.grading_runs.check_worker import as_seen, unseen
from carrel.courses.releases.student_version import prepare
from carrel.hub.errors import Conflict, InvalidInput, NotFound
from carrel.hub.scheduling.model.snapshot import Kind, PriorityClass
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas.checks import CheckOrderOut, CheckOut
from carrel.hub.schemas.courses import SubmitIn
from carrel.hub.schemas.grading import CellScoreIn, VerdictIn

from ...hub.doubles import STUDENT1, STUDENT2, TEACHER
from .. import course_site
from ..checks import came_out
from ..course_site import CourseSite, files
from ..notebook_samples import SOURCE


@pytest.fixture
def site(tmp_path: Path) -> CourseSite:
    made = course_site.build_site(tmp_path)
    made.create(students="student\nstudent1\nstudent2\n")
    made.release()
    return made


def work(text: str = "mine") -> SubmitIn:
    return SubmitIn(files=files({"ps1.ipynb": text.encode()}))


def cell(name: str, word: str) -> CellScoreIn:
    return CellScoreIn(
        notebook="ps1", cell=name, word=word, sentence="Said.", score=1.0, max_score=2.0
    )


def ended(site: CourseSite, check: CheckOut, result: VerdictIn | None, state: State) -> CheckOut:
    came_out(site.services.access.context, check.request, result, state)
    return site.services.checks.recent(STUDENT1, "cs101", "ps1").checks[0]


def test_a_check_is_an_interactive_request_of_its_student(site: CourseSite) -> None:
    asked = site.services.checks.start(STUDENT1, "cs101", "ps1", work())
    record = site.services.access.context.store.request(asked.request)
    assert (record.kind, record.owner, record.group) == (Kind.GRADING, "student1", "cs101")
    assert (record.priority, record.seconds) == (PriorityClass.INTERACTIVE, 720)
    assert (asked.state, asked.ended, asked.passed) == ("queued", False, None)
    assert asked.sentence == "Waiting in the queue."
    assert site.services.submissions.receipts(STUDENT1, "cs101", "ps1").receipts == []
    assert site.services.checks.start(STUDENT1, "cs101", "ps1", work()).request == asked.request


def test_a_check_is_stored_with_the_work_and_the_grading_order(site: CourseSite) -> None:
    asked = site.services.checks.start(STUDENT1, "cs101", "ps1", work())
    path = site.services.access.context.files.input_path(asked.request)
    given = CheckOrderOut.model_validate_json(path.read_bytes())
    assert [base64.b64decode(file.content) for file in given.files] == [b"mine"]
    assert (given.person, given.order.seconds, given.order.works) == ("student1", 600, [])
    assert b"hidden" not in path.read_bytes().lower()


def test_a_check_without_files_runs_the_last_submission(site: CourseSite) -> None:
    with pytest.raises(InvalidInput, match="nothing to check"):
        site.services.checks.start(STUDENT1, "cs101", "ps1", SubmitIn())
    site.submit("first")
    receipt = site.submit("second")
    asked = site.services.checks.start(STUDENT1, "cs101", "ps1", SubmitIn())
    assert asked.sha256 == receipt.sha256


def test_a_student_has_at_most_two_live_checks(site: CourseSite) -> None:
    for text in ("one", "two"):
        site.services.checks.start(STUDENT1, "cs101", "ps1", work(text))
    with pytest.raises(Conflict, match="2 checks of yours are under way"):
        site.services.checks.start(STUDENT1, "cs101", "ps1", work("three"))
    assert site.services.checks.start(STUDENT2, "cs101", "ps1", work("three")).state == "queued"


def test_a_result_is_visible_to_its_student_alone_and_for_a_day(site: CourseSite) -> None:
    asked = site.services.checks.start(STUDENT1, "cs101", "ps1", work())
    cells = [cell("a", "passed"), cell("b", "failed"), cell("c", "not shown")]
    result = VerdictIn(submission=1, seconds=1.0, cells=cells, notes=["Cell 3 was stopped."])
    shown = ended(site, asked, result, State.SUCCEEDED)
    assert (shown.ended, shown.passed) == (True, False)
    assert shown.sentence == "1 of 2 tests that you can see passes."
    assert [(each.cell, each.word) for each in shown.cells] == [
        ("a", "passed"),
        ("b", "failed"),
        ("c", "not shown"),
    ]
    assert shown.notes == ["Cell 3 was stopped."]
    for other in (STUDENT2, TEACHER):
        assert site.services.checks.recent(other, "cs101", "ps1").checks == []
    site.clock.now += 86401
    assert site.services.checks.recent(STUDENT1, "cs101", "ps1").checks == []
    site.services.checks.start(STUDENT1, "cs101", "ps1", work("new"))
    assert not site.services.access.context.files.keeps(asked.request)


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (State.TIMED_OUT, "The check took longer than 12 min, which is more than a check may."),
        (State.CANCELLED, "The check was stopped."),
        (State.FAILED, "The check did not come to its end: The engine is away."),
    ],
)
def test_a_check_without_a_result_says_why(site: CourseSite, state: State, sentence: str) -> None:
    shown = ended(site, site.services.checks.start(STUDENT1, "cs101", "ps1", work()), None, state)
    assert (shown.passed, shown.cells, shown.sentence) == (None, [], sentence)


def test_an_invisible_assignment_cannot_be_checked(site: CourseSite) -> None:
    site.services.assignments.withdraw(TEACHER, "cs101", "ps1")
    with pytest.raises(NotFound):
        site.services.checks.start(STUDENT1, "cs101", "ps1", work())


def test_a_test_without_visible_part_does_not_pass() -> None:
    notebook = json.loads(SOURCE)
    hidden = "### BEGIN HIDDEN TESTS\nassert answer() == 42\n### END HIDDEN TESTS"
    notebook["cells"][1]["source"] = f"# Further tests\n{hidden}"
    key = prepare("ps1", {"ps1.ipynb": json.dumps(notebook).encode()}).key
    assert unseen(key) == {("ps1", "test-answer")}
    assert unseen(prepare("ps1", {"ps1.ipynb": SOURCE}).key) == frozenset()
    verdict = VerdictIn(submission=1, seconds=1.0, cells=[cell("test-answer", "passed")])
    (said,) = as_seen(verdict, unseen(key)).cells
    assert (said.word, said.sentence) == (
        "not shown",
        "This test is hidden: it runs when your work is graded.",
    )
    (said,) = as_seen(verdict, frozenset()).cells
    assert said.sentence == "All checks of this test that you can see passed."
