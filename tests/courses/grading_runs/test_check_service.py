"""Check: what a student may ask for, what enters it, and what they read of it. Nothing counts."""

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
def kit(tmp_path: Path) -> CourseSite:
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


def ended(kit: CourseSite, check: CheckOut, result: VerdictIn | None, state: State) -> CheckOut:
    came_out(kit.services.access.context, check.request, result, state)
    return kit.services.checks.recent(STUDENT1, "cs101", "ps1").checks[0]


def test_a_check_is_an_interactive_request_of_its_student(kit: CourseSite) -> None:
    asked = kit.services.checks.start(STUDENT1, "cs101", "ps1", work())
    record = kit.services.access.context.store.request(asked.request)
    assert (record.kind, record.owner, record.group) == (Kind.GRADING, "student1", "cs101")
    assert (record.priority, record.seconds) == (PriorityClass.INTERACTIVE, 720)
    assert (asked.state, asked.ended, asked.passed) == ("queued", False, None)
    assert asked.sentence == "Waiting in the queue."
    assert kit.services.submissions.receipts(STUDENT1, "cs101", "ps1").receipts == []
    assert kit.services.checks.start(STUDENT1, "cs101", "ps1", work()).request == asked.request


def test_what_enters_is_the_work_and_the_order_of_grading(kit: CourseSite) -> None:
    asked = kit.services.checks.start(STUDENT1, "cs101", "ps1", work())
    path = kit.services.access.context.files.input_path(asked.request)
    given = CheckOrderOut.model_validate_json(path.read_bytes())
    assert [base64.b64decode(file.content) for file in given.files] == [b"mine"]
    assert (given.person, given.order.seconds, given.order.works) == ("student1", 600, [])
    assert b"hidden" not in path.read_bytes().lower()


def test_without_files_it_is_what_was_handed_in_last(kit: CourseSite) -> None:
    with pytest.raises(InvalidInput, match="nothing to check"):
        kit.services.checks.start(STUDENT1, "cs101", "ps1", SubmitIn())
    kit.submit("first")
    receipt = kit.submit("second")
    asked = kit.services.checks.start(STUDENT1, "cs101", "ps1", SubmitIn())
    assert asked.sha256 == receipt.sha256


def test_two_at_a_time_are_the_most(kit: CourseSite) -> None:
    for text in ("one", "two"):
        kit.services.checks.start(STUDENT1, "cs101", "ps1", work(text))
    with pytest.raises(Conflict, match="2 checks of yours are under way"):
        kit.services.checks.start(STUDENT1, "cs101", "ps1", work("three"))
    assert kit.services.checks.start(STUDENT2, "cs101", "ps1", work("three")).state == "queued"


def test_what_came_out_is_for_its_student_alone_and_for_a_day(kit: CourseSite) -> None:
    asked = kit.services.checks.start(STUDENT1, "cs101", "ps1", work())
    cells = [cell("a", "passed"), cell("b", "failed"), cell("c", "not shown")]
    result = VerdictIn(submission=1, seconds=1.0, cells=cells, notes=["Cell 3 was stopped."])
    shown = ended(kit, asked, result, State.SUCCEEDED)
    assert (shown.ended, shown.passed) == (True, False)
    assert shown.sentence == "1 of 2 tests that you can see passes."
    assert [(each.cell, each.word) for each in shown.cells] == [
        ("a", "passed"),
        ("b", "failed"),
        ("c", "not shown"),
    ]
    assert shown.notes == ["Cell 3 was stopped."]
    for other in (STUDENT2, TEACHER):
        assert kit.services.checks.recent(other, "cs101", "ps1").checks == []
    kit.clock.now += 86401
    assert kit.services.checks.recent(STUDENT1, "cs101", "ps1").checks == []
    kit.services.checks.start(STUDENT1, "cs101", "ps1", work("new"))
    assert not kit.services.access.context.files.keeps(asked.request)


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (State.TIMED_OUT, "The check took longer than 12 min, which is more than a check may."),
        (State.CANCELLED, "The check was stopped."),
        (State.FAILED, "The check did not come to its end: The engine is away."),
    ],
)
def test_a_check_without_a_result_says_why(kit: CourseSite, state: State, sentence: str) -> None:
    shown = ended(kit, kit.services.checks.start(STUDENT1, "cs101", "ps1", work()), None, state)
    assert (shown.passed, shown.cells, shown.sentence) == (None, [], sentence)


def test_who_may_not_see_an_assignment_checks_nothing(kit: CourseSite) -> None:
    kit.services.assignments.withdraw(TEACHER, "cs101", "ps1")
    with pytest.raises(NotFound):
        kit.services.checks.start(STUDENT1, "cs101", "ps1", work())


def test_a_test_that_is_all_hidden_is_no_test_that_passes() -> None:
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
